// Every route of the JSON API, in one list. A route that is not here does not exist.
import { agentRoutes } from "./agents.ts";
import { alertRoutes } from "./alerts.ts";
import { approvalRoutes } from "./approvals.ts";
import { auditRoutes } from "./audit.ts";
import { budgetRoutes } from "./budgets.ts";
import { contextRoutes } from "./context.ts";
import { healthRoutes } from "./health.ts";
import { journalRoutes } from "./journal.ts";
import { leaseRoutes } from "./leases.ts";
import { logRoutes } from "./log.ts";
import { messageRoutes } from "./messages.ts";
import { metricsRoutes } from "./metrics.ts";
import { openapiRoute } from "./openapi.ts";
import { opsRoutes } from "./ops.ts";
import type { Route } from "./route.ts";
import { runRoutes } from "./runs.ts";
import { runtimeRoutes } from "./runtimes.ts";
import { searchRoutes } from "./search.ts";
import { sessionRoutes } from "./sessions.ts";
import { streamRoutes } from "./streams.ts";
import { syncRoutes } from "./sync.ts";
import { tokenRoutes } from "./tokens.ts";
import { webhookArrivalRoutes } from "./webhook-arrivals.ts";
import { webhookEndpointRoutes } from "./webhook-endpoints.ts";
import { webhookRoutes } from "./webhooks.ts";
import { workflowRoutes } from "./workflows.ts";

export const ROUTES: readonly Route[] = [
  // the hub itself
  ...healthRoutes,
  ...metricsRoutes,
  ...opsRoutes,
  openapiRoute(() => ROUTES),
  // what agents do
  ...agentRoutes,
  ...messageRoutes,
  ...streamRoutes,
  ...leaseRoutes,
  // what Runtimes do and people decide
  ...runtimeRoutes,
  ...syncRoutes,
  ...runRoutes,
  ...approvalRoutes,
  ...alertRoutes,
  ...budgetRoutes,
  // what coordinators do
  ...webhookRoutes,
  ...workflowRoutes,
  ...journalRoutes,
  ...contextRoutes,
  ...searchRoutes,
  // who is told
  ...webhookArrivalRoutes,
  ...webhookEndpointRoutes,
  // who may do what
  ...tokenRoutes,
  ...sessionRoutes,
  // what happened
  ...logRoutes,
  ...auditRoutes,
];

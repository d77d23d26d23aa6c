// Every screen and fragment of the dashboard, in one list. What is not here does not exist.
import * as agent from "./agent.tsx";
import * as agents from "./agents.tsx";
import * as approval from "./approval.tsx";
import * as approvalBulk from "./approval-bulk.tsx";
import * as approvals from "./approvals.tsx";
import * as audit from "./audit.tsx";
import * as budgets from "./budgets.tsx";
import * as commands from "./commands.tsx";
import * as compose from "./compose.tsx";
import * as contextPage from "./context.tsx";
import * as contextDecision from "./context-decision.tsx";
import * as contextPool from "./context-pool.tsx";
import * as costs from "./costs.tsx";
import { navFragment } from "./frame.tsx";
import * as journal from "./journal.tsx";
import * as leaseHistory from "./lease-history.tsx";
import * as leases from "./leases.tsx";
import * as listFiles from "./list-files.ts";
import * as message from "./message.tsx";
import * as messages from "./messages.tsx";
import * as overview from "./overview.tsx";
import * as palette from "./palette.tsx";
import * as run from "./run.tsx";
import * as runCancel from "./run-cancel.tsx";
import * as runStart from "./run-start.tsx";
import * as runs from "./runs.tsx";
import * as runtime from "./runtime.tsx";
import * as runtimes from "./runtimes.tsx";
import * as savedViews from "./saved-views.tsx";
import { type Screen, screen } from "./screen.ts";
import * as search from "./search.tsx";
import * as searchCompletions from "./search-completions.tsx";
import * as settings from "./settings.tsx";
import * as settingsStore from "./settings-store.tsx";
import * as sync from "./sync.tsx";
import * as syncConflict from "./sync-conflict.tsx";
import * as tokenEnd from "./token-end.tsx";
import * as tokens from "./tokens.tsx";
import * as webhookArrivals from "./webhook-arrivals.tsx";
import * as webhookDeliveries from "./webhook-deliveries.tsx";
import * as webhookEndpoint from "./webhook-endpoint.tsx";
import * as webhookEndpointForm from "./webhook-endpoint-form.tsx";
import * as webhookEndpoints from "./webhook-endpoints.tsx";
import * as workflowRun from "./workflow-run.tsx";

const nav = screen({ method: "GET", path: "/ui/nav", role: "viewer", run: navFragment });

export const SCREENS: readonly Screen[] = [
  nav,
  ...palette.screens,
  ...overview.screens,
  ...agents.screens,
  ...agent.screens,
  ...messages.screens,
  ...message.screens,
  ...compose.screens,
  ...approvals.screens,
  ...approvalBulk.screens,
  ...approval.screens,
  ...runs.screens,
  ...runStart.screens,
  ...runCancel.screens,
  ...run.screens,
  ...workflowRun.screens,
  ...commands.screens,
  ...runtimes.screens,
  ...runtime.screens,
  ...sync.screens,
  ...syncConflict.screens,
  ...leases.screens,
  ...leaseHistory.screens,
  ...webhookEndpoints.screens,
  ...webhookEndpointForm.screens,
  ...webhookEndpoint.screens,
  ...webhookArrivals.screens,
  ...webhookDeliveries.screens,
  ...audit.screens,
  ...search.screens,
  ...searchCompletions.screens,
  ...savedViews.screens,
  ...journal.screens,
  ...listFiles.screens,
  ...contextPage.screens,
  ...contextDecision.screens,
  ...contextPool.screens,
  ...settings.screens,
  ...settingsStore.screens,
  ...tokens.screens,
  ...tokenEnd.screens,
  ...costs.screens,
  ...budgets.screens,
];

// Every route of the JSON API, in one list. A route that is not here does not exist.
import { agentRoutes } from "./agents.ts";
import { auditRoutes } from "./audit.ts";
import { health } from "./health.ts";
import { leaseRoutes } from "./leases.ts";
import { logRoutes } from "./log.ts";
import { messageRoutes } from "./messages.ts";
import { openapiRoute } from "./openapi.ts";
import type { Route } from "./route.ts";
import { sessionRoutes } from "./sessions.ts";
import { streamRoutes } from "./streams.ts";
import { tokenRoutes } from "./tokens.ts";

export const ROUTES: readonly Route[] = [
  // the hub itself
  health,
  openapiRoute(() => ROUTES),
  // what agents do
  ...agentRoutes,
  ...messageRoutes,
  ...streamRoutes,
  ...leaseRoutes,
  // who may do what
  ...tokenRoutes,
  ...sessionRoutes,
  // what happened
  ...logRoutes,
  ...auditRoutes,
];

// Every route of the JSON API, in one list. A route that is not here does not exist.
import { auditRoutes } from "./audit.ts";
import { health } from "./health.ts";
import { leaseRoutes } from "./leases.ts";
import { logRoutes } from "./log.ts";
import { openapiRoute } from "./openapi.ts";
import type { Route } from "./route.ts";
import { sessionRoutes } from "./sessions.ts";
import { tokenRoutes } from "./tokens.ts";

export const ROUTES: readonly Route[] = [
  // the hub itself
  health,
  openapiRoute(() => ROUTES),
  // what agents do
  ...leaseRoutes,
  // who may do what
  ...tokenRoutes,
  ...sessionRoutes,
  // what happened
  ...logRoutes,
  ...auditRoutes,
];

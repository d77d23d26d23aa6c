// Every route of the JSON API, in one list. A route that is not here does not exist.
import { health } from "./health.ts";
import { leaseRoutes } from "./leases.ts";
import type { Route } from "./route.ts";

export const ROUTES: readonly Route[] = [health, ...leaseRoutes];

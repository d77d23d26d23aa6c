// Who a change is written down for: the caller's name and role, and where the request came from.
import type { TokenCaller } from "./credentials.ts";

const ORIGIN = /^[a-z][a-z0-9-]{0,31}$/;

/** For the audit. A client may name itself (x-kxm-client: cli); what it says proves nothing and decides nothing. */
export function byOf({ caller, request }: { caller: TokenCaller; request: Request }): { actor: string; role: string; origin: string } {
  const named = request.headers.get("x-kxm-client") ?? "";
  return { actor: caller.actor, role: caller.role, origin: ORIGIN.test(named) ? named : "api" };
}

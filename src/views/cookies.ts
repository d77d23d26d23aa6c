// Cookies of the dashboard. The session's name carries the port, because cookies are not kept apart by port and another server on this machine could set one.
import { createHmac } from "node:crypto";
import type { Hub } from "../hub/hub.ts";

/** Name of the session cookie of a hub on this port. */
export const sessionCookieName = (request: Request): string => `kxm_session_${new URL(request.url).port || "80"}`;

/** Values of a cookie, all of them: somebody else may have set one of the same name. */
export function cookieValues(request: Request, name: string): string[] {
  const pairs = (request.headers.get("cookie") ?? "").split(";").map((pair) => pair.trim());
  return pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
}

/** The header that keeps a session in the browser: not readable by scripts, never sent along from other sites, nor without TLS where the hub is behind it. */
export const sessionCookie = ({ settings: { publicUrl } }: Pick<Hub, "settings">, request: Request, secret: string, seconds: number): string =>
  `${sessionCookieName(request)}=${secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}${publicUrl === `https://${new URL(request.url).host}` ? "; Secure" : ""}`;

/** The secret that a session's forms carry: made from the session's own, so that it needs no place of its own and cannot be guessed without it. */
export const csrfOf = (sessionSecret: string): string => createHmac("sha256", sessionSecret).update("kxm csrf").digest("base64url");

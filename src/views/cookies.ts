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

const CSRF_BYTES = 32;
const xor = (a: Uint8Array, b: Uint8Array): Uint8Array => a.map((byte, index) => byte ^ b[index]!);

/** That secret as it stands in a page: under a fresh mask each time, so that the length of a compressed page tells nothing about it. */
export function maskedCsrf(csrf: string): string {
  const mask = crypto.getRandomValues(new Uint8Array(CSRF_BYTES));
  return Buffer.concat([mask, xor(Buffer.from(csrf, "base64url"), mask)]).toString("base64url");
}

/** The secret behind what a form sent; anything else comes back as it is, and fits no session. */
function unmaskedCsrf(sent: string): string {
  const bytes = Buffer.from(sent, "base64url");
  if (bytes.length !== 2 * CSRF_BYTES) return sent;
  return Buffer.from(xor(bytes.subarray(CSRF_BYTES), bytes.subarray(0, CSRF_BYTES))).toString("base64url");
}

/** The form secret that a request brings, as a field or as a header. */
export const sentCsrf = ({ form, request }: { form: URLSearchParams; request: Request }): string =>
  unmaskedCsrf(form.get("csrf") ?? request.headers.get("x-csrf-token") ?? "");

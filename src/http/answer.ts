// Answers: one place renders JSON, one place renders errors. Headers follow the wire contract.
import { ERRORS, HubError } from "../protocol/errors.ts";

const BASE = { "referrer-policy": "no-referrer", "x-content-type-options": "nosniff", "cache-control": "no-store" };

/** Headers of one answer beside the fixed ones. */
export type Headers = Record<string, string>;

/** A JSON answer. `body` is written as it is: no member may be undefined by accident, none may hold a secret. */
export const json = (status: number, body: unknown, headers: Headers): Response =>
  new Response(JSON.stringify(body), { status, headers: { ...BASE, "content-type": "application/json; charset=utf-8", ...headers } });

/** 204: nothing to say. */
export const empty = (headers: Headers): Response =>
  new Response(null, { status: 204, headers: { "referrer-policy": "no-referrer", "cache-control": "no-store", ...headers } });

/** A plain text answer of a given type (metrics, downloads). */
export const text = (status: number, body: string, contentType: string, headers: Headers): Response =>
  new Response(body, { status, headers: { ...BASE, "content-type": contentType, ...headers } });

/** What a client is told of an error: the closed code, a sentence, a hint, flat extras. Unknown errors are internal_error without detail. */
export function errorBody(error: unknown, requestId: string): { status: number; body: Record<string, unknown>; headers: Headers } {
  const known = error instanceof HubError ? error : new HubError("internal_error", "internal server error");
  const { status, hint } = ERRORS[known.code];
  const { retryAfterSeconds, ...extras } = known.extras as { retryAfterSeconds?: number };
  const wait = retryAfterSeconds ?? (known.code === "storage_unavailable" || known.code === "shutting_down" ? 1 : undefined);
  return {
    status,
    body: { error: status >= 500 ? "internal server error" : known.message, code: known.code, requestId, hint, ...extras },
    headers: wait === undefined ? {} : { "retry-after": String(wait) },
  };
}

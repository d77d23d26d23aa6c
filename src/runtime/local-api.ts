// The local API's listener: 127.0.0.1 only, a port of the system's choice, the supervisor's token on everything but the proof of who listens.
import { timingSafeEqual } from "node:crypto";
import { sha256 } from "../protocol/canonical.ts";
import { HubError } from "../protocol/errors.ts";
import { parseBody } from "../protocol/json.ts";
import { RuntimeRefusal } from "../protocol/runtime-errors.ts";
import type { LocalRoute } from "./local-route.ts";
import type { Log } from "./log.ts";

const BODY_BYTES_MAX = 1_048_576;
/** Longest silence of a connection: above the longest wait of a route. Seconds. */
const IDLE_S = 60;
const NONCE = /^[A-Za-z0-9_-]{8,128}$/;

export type LocalApiOptions = {
  routes: LocalRoute[];
  token: string;
  log: Log;
  /** What shows that the listener has the token. */
  proof(nonce: string): string;
};

/** Starts listening. `stop` ends waits and closes. */
export function serveLocalApi({ routes, token, log, proof }: LocalApiOptions): { port: number; stop(): Promise<void> } {
  const ending = new AbortController();
  const compiled = routes.map((route) => ({ ...route, parts: route.path.split("/") }));
  const expected = Buffer.from(sha256(`Bearer ${token}`));

  async function answer(request: Request, server: Bun.Server<undefined>): Promise<Response> {
    const url = new URL(request.url);
    assertLocal(request, server.port!);
    if (url.pathname === "/healthz" && request.method === "GET") {
      const nonce = url.searchParams.get("nonce") ?? "";
      if (!NONCE.test(nonce)) throw new RuntimeRefusal("runtime_protocol_error", "nonce must be 8 to 128 letters, digits, dashes or underscores");
      return json(200, { ok: true, proof: proof(nonce) });
    }
    const shown = Buffer.from(sha256(request.headers.get("authorization") ?? ""));
    if (!timingSafeEqual(shown, expected)) throw new RuntimeRefusal("runtime_unauthorized", "the Runtime's token is missing or wrong");
    const found = match(compiled, request.method, url.pathname);
    if (!found) throw new RuntimeRefusal("runtime_route_not_found", `there is no ${request.method} ${url.pathname}`);
    server.timeout(request, 0); // a caller with the token may wait as long as its route takes
    const signal = AbortSignal.any([request.signal, ending.signal]);
    const body = request.method === "POST" ? await readBody(request) : {};
    const value = await found.route.answer({ params: found.params, query: url.searchParams, body, signal });
    return json(200, value ?? {});
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: IDLE_S,
    maxRequestBodySize: BODY_BYTES_MAX,
    fetch: (request, listener) =>
      answer(request, listener).catch((error) => {
        const refusal = asRefusal(error);
        if (refusal.code === "runtime_internal_error") log("request_failed", { level: "error", reason: String(error?.stack ?? error) });
        return json(refusal.status, { error: refusal.message, code: refusal.code, hint: refusal.hint, ...refusal.options.detail });
      }),
    error: () => json(500, { error: "internal error", code: "runtime_internal_error" }),
  });
  return {
    port: server.port!,
    stop: async () => {
      ending.abort();
      await server.stop(true);
    },
  };
}

const json = (status: number, value: unknown): Response =>
  new Response(JSON.stringify(value), {
    status,
    headers: { "content-type": "application/json; charset=utf-8", "cache-control": "no-store", "x-content-type-options": "nosniff" },
  });

/** A page in a browser must not reach this: its Host would be a name, or it would send an Origin. */
function assertLocal(request: Request, port: number) {
  const host = request.headers.get("host");
  if (host !== `127.0.0.1:${port}` && host !== `localhost:${port}`)
    throw new RuntimeRefusal("runtime_unauthorized", "the Runtime answers under its own address only");
  if (request.headers.has("origin")) throw new RuntimeRefusal("runtime_unauthorized", "the Runtime answers no web page");
}

type Compiled = LocalRoute & { parts: string[] };
function match(routes: Compiled[], method: string, path: string): { route: LocalRoute; params: Record<string, string> } | undefined {
  const given = path.split("/");
  for (const route of routes) {
    if (route.method !== method || route.parts.length !== given.length) continue;
    const params: Record<string, string> = {};
    const fits = route.parts.every((part, index) => {
      if (!part.startsWith(":")) return part === given[index];
      params[part.slice(1)] = decode(given[index]!);
      return given[index] !== "";
    });
    if (fits) return { route, params };
  }
  return undefined;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new RuntimeRefusal("runtime_protocol_error", "the path is not valid percent-encoding");
  }
}

async function readBody(request: Request): Promise<Record<string, unknown>> {
  if (!/^application\/json\b/i.test(request.headers.get("content-type") ?? ""))
    throw new RuntimeRefusal("runtime_protocol_error", "send content-type: application/json");
  return parseBody(new Uint8Array(await request.arrayBuffer()));
}

function asRefusal(error: unknown): RuntimeRefusal {
  if (error instanceof RuntimeRefusal) return error;
  if (error instanceof HubError) return new RuntimeRefusal("runtime_protocol_error", error.message); // the strict JSON reader's words
  return new RuntimeRefusal("runtime_internal_error", "something unexpected went wrong in the Runtime");
}

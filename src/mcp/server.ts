// MCP over HTTP: stateless, plain JSON answers, one server object per request, so that a restart of the hub is never noticed by a client.
import { Elysia } from "elysia";
import { type Admission, type AdmissionRules, admit, checkOrigin } from "../http/admission.ts";
import { errorBody, json } from "../http/answer.ts";
import { readBytes, requireJson } from "../http/body.ts";
import { createRateLimit } from "../http/rate-limit.ts";
import type { Hub } from "../hub/hub.ts";
import { describeError } from "../hub/log.ts";
import { parseJson } from "../protocol/json.ts";
import { type Credentials, identify } from "./identity.ts";

type Server = { timeout(request: Request, seconds: number): void; requestIP?(request: Request): { address: string } | null } | null;

/** The MCP endpoint over one hub, to mount beside the API. */
export function createMcp(hub: Hub, rules: AdmissionRules, credentials: Credentials) {
  const limit = hub.settings.rateLimit && createRateLimit(hub.settings.rateLimit);
  if (limit) hub.sweepers.add(limit.sweep);
  /** One by one, or a batch would be a way around the limit. Wrong credentials are counted where they are checked. */
  const countMessages = (agentId: string, message: unknown, { headers }: Admission) => {
    if (!limit) return;
    headers["x-ratelimit-limit"] = String(hub.settings.rateLimit!.max);
    headers["x-ratelimit-remaining"] = "0";
    const messages = Array.isArray(message) ? Math.max(1, message.length) : 1;
    for (let n = 0; n < messages; n++) headers["x-ratelimit-remaining"] = String(limit.count(agentId, hub.clock()).remaining);
  };
  const answer = async (context: unknown): Promise<Response> => {
    const { request, server } = context as { request: Request; server: Server };
    const admission = admit(request, rules);
    hub.metrics.add("requests");
    try {
      checkOrigin(request, rules, true);
      const newcomer = () => void limit?.count(`new agents from ${server?.requestIP?.(request)?.address ?? "local"}`, hub.clock());
      const agent = await identify(hub, credentials, request, newcomer);
      if (request.method !== "POST") return new Response(null, { status: 405, headers: { allow: "POST", ...admission.headers } });
      requireJson(request);
      const message = parseJson(await readBytes(request));
      countMessages(agent.id, message, admission);
      server?.timeout(request, 0); // waits take longer than an idle connection may
      const { exchange } = await import("./exchange.ts");
      const response = await exchange(hub, agent, request, message);
      for (const [name, value] of Object.entries(admission.headers)) response.headers.set(name, value);
      return response;
    } catch (error) {
      const { status, body, headers } = errorBody(error, admission.requestId);
      hub.metrics.add("errors");
      if (status >= 500)
        hub.log({ event: "mcp_failed", level: "error", requestId: admission.requestId, code: String(body["code"]), error: describeError(error) });
      return json(status, body, { ...admission.headers, ...headers });
    }
  };
  return new Elysia({ strictPath: true, normalize: false })
    .post("/mcp", answer, { parse: "none" })
    .get("/mcp", answer)
    .delete("/mcp", answer, { parse: "none" });
}

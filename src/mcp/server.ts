// MCP over HTTP: stateless, plain JSON answers, one server object per request, so that a restart of the hub is never noticed by a client.
import { Elysia } from "elysia";
import { type AdmissionRules, admit, checkOrigin } from "../http/admission.ts";
import { errorBody, json } from "../http/answer.ts";
import { readBytes, requireJson } from "../http/body.ts";
import type { Hub } from "../hub/hub.ts";
import { describeError } from "../hub/log.ts";
import { parseJson } from "../protocol/json.ts";
import { type Credentials, identify } from "./identity.ts";

/** The MCP endpoint over one hub, to mount beside the API. */
export function createMcp(hub: Hub, rules: AdmissionRules, credentials: Credentials) {
  const answer = async (context: unknown): Promise<Response> => {
    const { request, server } = context as { request: Request; server: { timeout(request: Request, seconds: number): void } | null };
    const admission = admit(request, rules);
    hub.metrics.add("requests");
    try {
      checkOrigin(request, rules, true);
      const agent = await identify(hub, credentials, request);
      if (request.method !== "POST") return new Response(null, { status: 405, headers: { allow: "POST", ...admission.headers } });
      requireJson(request);
      const message = parseJson(await readBytes(request));
      server?.timeout(request, 0); // waits take longer than an idle connection may
      const { exchange } = await import("./exchange.ts");
      return await exchange(hub, agent, request, message);
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

// The JSON API: every route of the table passes the same steps: admission, rate limit, credential, body, fields, one call into the rules, answer.
// The order of the steps decides which refusal wins; it is the wire contract's.
import { type TObject, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { type Admission, type AdmissionRules, admit, checkOrigin } from "../http/admission.ts";
import { empty, errorBody, json } from "../http/answer.ts";
import { readBytes, readJson, requireJson } from "../http/body.ts";
import { createRateLimit } from "../http/rate-limit.ts";
import type { Hub } from "../hub/hub.ts";
import { describeError } from "../hub/log.ts";
import { HubError } from "../protocol/errors.ts";
import { readFields, readQuery } from "../protocol/fields.ts";
import { type Credentials, createCredentials, requireAgent } from "./credentials.ts";
import type { Answer, Route, StreamServer } from "./route.ts";
import { ROUTES } from "./routes.ts";

type Incoming = {
  request: Request;
  params: Record<string, string>;
  server: NonNullable<StreamServer> | null;
};

/** The API over one hub, as an Elysia app to listen with or to mount. @param rules who may call; `hosts` is filled in once the port is known */
export function createApi(hub: Hub, rules: AdmissionRules, routes: readonly Route[] = ROUTES, credentials = createCredentials(hub)) {
  const limit = hub.settings.rateLimit && createRateLimit(hub.settings.rateLimit);
  if (limit) hub.sweepers.add(limit.sweep);
  const app = new Elysia({ strictPath: true, normalize: false });

  const countRequest = (incoming: Incoming, admission: Admission) => {
    if (!limit) return;
    const bucket = incoming.request.headers.get("x-kxm-agent-id") ?? incoming.server?.requestIP?.(incoming.request)?.address ?? "local";
    admission.headers["x-ratelimit-limit"] = String(hub.settings.rateLimit!.max);
    admission.headers["x-ratelimit-remaining"] = "0";
    admission.headers["x-ratelimit-remaining"] = String(limit.count(bucket, hub.clock()).remaining);
  };

  const serve = async (incoming: Incoming, found: Route | undefined): Promise<Response> => {
    const admission = admit(incoming.request, rules);
    hub.metrics.add("requests");
    try {
      checkOrigin(incoming.request, rules, found?.guarded ?? incoming.request.method !== "GET");
      if (!found || !UNCOUNTED.has(found.path)) countRequest(incoming, admission);
      if (!found) throw new HubError("route_not_found", "there is no such route");
      return render(await perform(hub, credentials, found, incoming, admission), admission);
    } catch (error) {
      return refuse(hub, error, admission, found?.operationId);
    }
  };

  for (const found of routes) {
    // Named one by one: Elysia reads from the source which parts of the context a handler uses, and would make all of them for one that takes it whole.
    app.route(found.method, found.path, ({ request, params, server }) => serve({ request, params, server } as Incoming, found), { parse: "none" });
  }
  app.onError({ as: "global" }, (context) =>
    serve({ request: context.request, params: {}, server: context.server as Incoming["server"] }, undefined),
  );
  return app;
}

/** Paths that the rate limit leaves alone. */
const UNCOUNTED = new Set<string>(["/health", "/ready"]);

function render(answer: Answer, { headers }: Admission): Response {
  if (answer instanceof Response) return answer;
  const all = answer.headers ? { ...headers, ...answer.headers } : headers;
  return answer.body === undefined ? empty(all) : json(answer.status, answer.body, all);
}

function refuse(hub: Hub, error: unknown, admission: Admission, operation: string | undefined): Response {
  const { status, body, headers } = errorBody(error, admission.requestId);
  hub.metrics.add("errors");
  if (!(error instanceof HubError) || status >= 500) {
    hub.log({
      event: "request_failed",
      level: "error",
      requestId: admission.requestId,
      operation,
      code: String(body["code"]),
      error: describeError(error),
    });
  }
  return json(status, body, { ...admission.headers, ...headers });
}

/** Project routes read the fields up to `project` before the token, so that a request that names no project is told so. */
const headOf = new WeakMap<TObject, TObject>();
function fieldsUpToProject(body: TObject): TObject {
  let head = headOf.get(body);
  if (!head) {
    const names = Object.keys(body.properties);
    head = Type.Pick(body, names.slice(0, names.indexOf("project") + 1)) as TObject;
    headOf.set(body, head);
  }
  return head;
}

const NO_QUERY = new URLSearchParams();

async function perform(hub: Hub, credentials: Credentials, found: Route, incoming: Incoming, admission: Admission): Promise<Answer> {
  const { request, server } = incoming;
  const params = incoming.params ?? {};
  const search = found.query ? new URL(request.url).searchParams : NO_QUERY;
  const query = found.query ? () => readQuery(found.query as TObject, search) : () => ({});
  const readsBody = found.method === "POST" && !found.rawBody;
  const bodyOf = async () => {
    if (!readsBody) return {};
    if (found.body) return readJson(request);
    requireJson(request); // contents are ignored, but type and size still count
    await readBytes(request);
    return {};
  };
  let caller: unknown;
  let body: Record<string, unknown> = {};
  if (found.credential === "project") {
    body = await bodyOf();
    const head = readsBody
      ? readFields(fieldsUpToProject(found.body as TObject), body)
      : readQuery(fieldsUpToProject(found.query as TObject), search);
    const holder = await credentials.project(request, (head as { project: string }).project);
    requireAgent(holder, found.namesAgent ? String(body["name"]).trim() : undefined);
    caller = holder;
  } else if (found.credential.startsWith("agent-or-admin") && readsBody) {
    body = await bodyOf();
    if (found.body) readFields(fieldsUpToProject(found.body as TObject), body);
    caller = await callerOf(credentials, found, request, params, search);
  } else {
    caller = await callerOf(credentials, found, request, params, search);
    body = await bodyOf();
  }
  const fields = found.fieldsLate ? body : found.body ? readFields(found.body as TObject, body) : {};
  return found.run({
    hub,
    caller,
    params: found.params ? readFields(found.params as TObject, params) : params,
    query: query(),
    body: fields,
    request,
    server,
    requestId: admission.requestId,
    headers: admission.headers,
  } as never);
}

async function callerOf(credentials: Credentials, found: Route, request: Request, params: Record<string, string>, search: URLSearchParams) {
  const { credential, agentIdFrom } = found;
  if (credential === "none") return undefined;
  if (credential === "agent") {
    if (agentIdFrom?.path) return credentials.agent(request, params[agentIdFrom.path] ?? "");
    if (agentIdFrom?.query) {
      const { [agentIdFrom.query]: id } = readQuery(found.query as TObject, search) as Record<string, string>;
      return credentials.agent(request, id);
    }
    return credentials.agent(request);
  }
  if (credential.startsWith("agent-or-")) {
    if (request.headers.get("x-kxm-agent-id")?.trim()) return credentials.agent(request);
    return credentials.role(request, credential.slice("agent-or-".length) as "admin" | "operator" | "viewer");
  }
  return credentials.role(request, credential as "admin");
}

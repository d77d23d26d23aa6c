// Incoming webhooks: signed starts and signals. The body is verified as raw bytes before anything in it is believed.
import { Type } from "@sinclair/typebox";
import { readBytes, requireJson } from "../http/body.ts";
import * as commands from "../hub/commands.ts";
import type { Hub } from "../hub/hub.ts";
import * as arrivals from "../hub/webhook-arrivals.ts";
import { valueAt } from "../hub/workflows/prompts.ts";
import * as workflows from "../hub/workflows/runs.ts";
import * as signals from "../hub/workflows/signals.ts";
import { sha256 } from "../protocol/canonical.ts";
import { HubError } from "../protocol/errors.ts";
import { readFields, text } from "../protocol/fields.ts";
import { parseBody } from "../protocol/json.ts";
import { verifyDelivery } from "../protocol/webhook-signature.ts";
import { SIGNAL_KEY, SignalRequest, type WorkflowDefinition } from "../protocol/workflows.ts";
import { type Answer, route, type StreamServer } from "./route.ts";

/** The part of a call that deliveries are judged by. */
type Call = { hub: Hub; request: Request; server: StreamServer };

function definitionOf(hub: Hub, id: string): WorkflowDefinition {
  const definition = hub.definitions.get(id);
  if (!definition) throw new HubError("webhook_not_found", `this hub has no workflow definition ${id}`);
  return definition;
}

/** What a request claims to be, before anything of it is believed. */
function claimOf(definition: WorkflowDefinition, kind: "start" | "signal", { request, server }: Pick<Call, "request" | "server">): arrivals.Arrival {
  const header = (name: string) => request.headers.get(name) ?? undefined;
  const own = definition.source === "jira" ? header("x-atlassian-webhook-identifier") : header("x-github-delivery");
  return {
    project: definition.project,
    definitionId: definition.id,
    kind,
    verified: false,
    deliveryId: header("x-kxm-delivery-id") ?? own,
    event: header("x-github-event"),
    sender: server?.requestIP?.(request)?.address,
    program: header("user-agent"),
  };
}

const filled = (value: unknown) => (typeof value === "string" && value.trim() !== "" ? value.trim() : undefined);

const startWorkflow = route({
  method: "POST",
  path: "/v1/webhooks/:definitionId",
  operationId: "startWorkflow",
  tag: "webhooks",
  summary: "Starts a workflow run from a signed delivery.",
  credential: "none",
  rawBody: true,
  params: Type.Object({ definitionId: Type.String() }),
  answers: {
    202: Type.Object({ run: Type.Unknown(), runId: Type.String(), duplicate: Type.Literal(false) }),
    200: Type.Object({ duplicate: Type.Literal(true), runId: Type.String(), status: Type.String() }),
    204: null,
  },
  errors: [
    "webhook_not_found",
    "webhook_signature_missing",
    "webhook_signature_unsupported",
    "webhook_signature_invalid",
    "webhook_timestamp_expired",
    "webhook_delivery_conflict",
    "webhook_payload_replayed",
    "workflow_target_unavailable",
    "workflow_evidence_policy_invalid",
    "workflow_evidence_policy_unresolvable",
    "protocol_error",
  ],
  run: async (call) => {
    const definition = definitionOf(call.hub, call.params.definitionId);
    const arrival = claimOf(definition, "start", call);
    return arrivals.watched(call.hub, arrival, () => startBy(call, definition, arrival));
  },
});

/** The signed body of a signal for a run of a Runtime: its project's id tells which. */
const RuntimeSignal = Type.Object({ projectId: text(160), status: text(64), summary: text(1000) });

/** Sends a run's Runtime the signal it waits for, once per delivery. @throws HubError run_not_found, run_not_accepting, idempotency_conflict, protocol_error */
async function signalRuntimeRun(
  hub: Hub,
  { id, project }: WorkflowDefinition,
  { runId, signalKey, deliveryId }: { runId: string; signalKey: string; deliveryId: string },
  body: Record<string, unknown>,
) {
  const { projectId, status, summary } = readFields(RuntimeSignal, body);
  const payload = { signal: signalKey, status, summary };
  const by = { actor: `signal:${id}`, role: "webhook", origin: "webhook" };
  const idempotencyKey = `signal:${id}:${sha256(deliveryId)}`;
  const { command, created } = await commands.send(hub, by, { project, kind: "signal", projectId, runId, payload, idempotencyKey });
  if (created) hub.metrics.add("workflow_signals");
  return { status: created ? (202 as const) : (200 as const), body: { commandId: command.id, runId, duplicate: !created } };
}

/** Starts the run of a delivery, or says why not. @throws HubError */
async function startBy({ hub, request }: Pick<Call, "hub" | "request">, definition: WorkflowDefinition, arrival: arrivals.Arrival): Promise<Answer> {
  requireJson(request);
  const body = await readBytes(request);
  const envelope = { kind: "start" as const, definitionId: definition.id, runId: "", signalKey: "" };
  const verified = verifyDelivery({
    header: (name) => request.headers.get(name),
    body,
    secret: definition.secret,
    source: definition.source,
    envelope,
    now: hub.clock(),
  });
  Object.assign(arrival, { verified: true, deliveryId: verified.deliveryId });
  const payload = parseBody(body);
  const event = filled(request.headers.get("x-github-event")) ?? filled(payload["webhookEvent"]) ?? filled(payload["event"]);
  arrival.event = event;
  const unwanted = unwantedBecause(definition, event, payload);
  if (unwanted !== undefined) {
    hub.arrivals.note(arrival, { outcome: "ignored", reason: unwanted });
    return { status: 204 };
  }
  const delivery = { ...verified, payloadHash: sha256(body), payload, event };
  const started = await hub.engine.write(definition.project, async (tx) => {
    const made = await workflows.start(tx, definition, delivery);
    const [outcome, runId] = made.duplicate ? (["duplicate", made.runId] as const) : (["accepted", made.run.id] as const);
    await arrivals.record(tx, arrival, { outcome, runId });
    return made;
  });
  if (started.duplicate) return { status: 200, body: started };
  hub.metrics.add("webhooks_accepted");
  return { status: 202, body: { run: started.run, runId: started.run.id, duplicate: false } };
}

/** Why a definition does not want a delivery that is signed all right; undefined when it does. */
function unwantedBecause({ event: wanted, filter }: WorkflowDefinition, event: string | undefined, payload: Record<string, unknown>) {
  if (wanted !== undefined && wanted !== event) return `only the event ${wanted} is wanted`;
  if (!filter) return undefined;
  const value = valueAt(payload, filter.path);
  const text = value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  return text === filter.equals ? undefined : `${filter.path} is not ${filter.equals}`;
}

const signalWorkflow = route({
  method: "POST",
  path: "/v1/webhooks/:definitionId/runs/:runId/signals/:signalKey",
  operationId: "signalWorkflow",
  tag: "webhooks",
  summary: "Resumes a waiting workflow run by a signed signal; with `projectId` in the body, the waiting run of a Runtime.",
  credential: "none",
  rawBody: true,
  params: Type.Object({ definitionId: Type.String(), runId: Type.String(), signalKey: Type.String() }),
  answers: { 202: Type.Unknown(), 200: Type.Unknown() },
  errors: [
    "invalid_signal_key",
    "webhook_not_found",
    "webhook_signature_missing",
    "webhook_signature_unsupported",
    "webhook_signature_invalid",
    "webhook_timestamp_expired",
    "workflow_not_found",
    "workflow_signal_delivery_conflict",
    "workflow_signal_context_mismatch",
    "workflow_not_waiting",
    "workflow_signal_mismatch",
    "workflow_evidence_incomplete",
    "invalid_workflow_evidence",
    "invalid_checkpoint_status",
    "run_not_found",
    "run_not_accepting",
    "idempotency_conflict",
    "protocol_error",
  ],
  run: async (call) => {
    const { definitionId, runId, signalKey } = call.params;
    if (signalKey.length > 128 || !SIGNAL_KEY.test(signalKey))
      throw new HubError("invalid_signal_key", "the signal key has a form that is not allowed");
    const definition = definitionOf(call.hub, definitionId);
    const arrival = { ...claimOf(definition, "signal", call), runId, signalKey };
    return arrivals.watched(call.hub, arrival, () => signalBy(call, definition, { arrival, runId, signalKey }));
  },
});

type Signal = { arrival: arrivals.Arrival; runId: string; signalKey: string };

/** Resumes a run by a signal, or says why not. @throws HubError */
async function signalBy(
  { hub, request }: Pick<Call, "hub" | "request">,
  definition: WorkflowDefinition,
  { arrival, runId, signalKey }: Signal,
): Promise<Answer> {
  const definitionId = definition.id;
  requireJson(request);
  const body = await readBytes(request);
  const { deliveryId } = verifyDelivery({
    header: (name) => request.headers.get(name),
    body,
    secret: definition.signalSecret ?? definition.secret,
    source: definition.source,
    envelope: { kind: "signal", definitionId, runId, signalKey },
    now: hub.clock(),
  });
  Object.assign(arrival, { verified: true, deliveryId });
  const payload = parseBody(body);
  if (payload["projectId"] !== undefined) {
    arrival.runId = undefined; // not one of the hub's own
    const sent = await signalRuntimeRun(hub, definition, { runId, signalKey, deliveryId }, payload);
    hub.arrivals.note(arrival, { outcome: sent.body.duplicate ? "duplicate" : "accepted", reason: `for ${runId} of a Runtime` });
    return sent;
  }
  const delivery = { definitionId, runId, signalKey, deliveryId, payloadHash: sha256(body) };
  const result = await hub.engine.write(definition.project, async (tx) => {
    const made = await signals.signal(tx, delivery, () => readFields(SignalRequest, payload));
    await arrivals.record(tx, arrival, { outcome: made.duplicate ? "duplicate" : "accepted", runId });
    return made;
  });
  if (!result.duplicate) {
    hub.metrics.add("workflow_signals");
    hub.metrics.add("workflow_checkpoints");
  }
  return { status: result.resumed && !result.duplicate ? 202 : 200, body: result };
}

export const webhookRoutes = [startWorkflow, signalWorkflow];

// Operations of one project: the snapshot, and a stream that says when it changed.
import { type SseSink, streamAnswer } from "../http/sse.ts";
import type { Hub } from "../hub/hub.ts";
import * as ops from "../hub/ops.ts";
import * as tokens from "../hub/tokens.ts";
import { HubError } from "../protocol/errors.ts";
import { OpsQuery, OpsSnapshot } from "../protocol/ops.ts";
import { iso } from "../protocol/time.ts";
import { requireProject, type TokenCaller } from "./credentials.ts";
import { type Route, route } from "./route.ts";

const snapshot = route({
  method: "GET",
  path: "/v1/ops/snapshot",
  operationId: "getOpsSnapshot",
  tag: "operations",
  summary: "One project at a glance: agents, open messages, runs, Runtimes and plans, without message bodies.",
  credential: "viewer",
  query: OpsQuery,
  answers: { 200: OpsSnapshot },
  errors: [],
  run: async ({ hub, caller, query: { project } }) => {
    requireProject(caller, project);
    return { status: 200, body: await ops.snapshot(hub, project) };
  },
});

const events = route({
  method: "GET",
  path: "/v1/ops/events",
  operationId: "streamOpsEvents",
  tag: "operations",
  summary: "Says which part of the snapshot changed, as server-sent events; resumes by Last-Event-ID.",
  credential: "viewer",
  query: OpsQuery,
  answers: { 200: "stream" },
  errors: ["too_many_streams"],
  guarded: true,
  run: ({ hub, caller, query: { project }, request, server, headers }) => {
    requireProject(caller, project);
    const leave = admitStream(hub, caller);
    const lastEventId = request.headers.get("last-event-id") ?? undefined;
    return streamAnswer({
      request,
      server,
      stopping: hub.stopping,
      headers,
      produce: (sink) => signal(hub, sink, { caller, project, lastEventId }).finally(leave),
    });
  },
});

const openStreams = new WeakMap<Hub, Map<string, number>>();

/** Counts a caller's open streams. @throws HubError too_many_streams */
function admitStream(hub: Hub, { actor }: TokenCaller): () => void {
  const counts = openStreams.get(hub) ?? new Map<string, number>();
  openStreams.set(hub, counts);
  const count = counts.get(actor) ?? 0;
  if (count >= hub.settings.streamsPerToken) throw new HubError("too_many_streams", `this token has ${count} streams open`);
  counts.set(actor, count + 1);
  return () => {
    const left = counts.get(actor)! - 1;
    if (left > 0) counts.set(actor, left);
    else counts.delete(actor);
  };
}

/** `ready`, then one frame per change; ends with the client, the hub, or the token. */
async function signal(hub: Hub, sink: SseSink, asked: { caller: TokenCaller; project: string; lastEventId: string | undefined }) {
  const { caller, project, lastEventId } = asked;
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  sink.signal.addEventListener("abort", () => end(), { once: true });
  const send = (topic: string, id: string, at: string, event = "ops") =>
    sink.send({ event, id, data: JSON.stringify({ type: "ops", project, topic, at }) });
  const early: ops.OpsChange[] = []; // changes between joining and `ready`
  let live = false;
  const deliver = ({ topic, id, at }: ops.OpsChange) => void send(topic, id, at);
  const watch = await ops.watch(hub, project, lastEventId, { change: (change) => (live ? deliver(change) : early.push(change)), lost: end });
  const forgetToken = caller.actor === "admin" ? undefined : await tokens.watchEnd(hub, { id: caller.actor, project: caller.project }, end);
  try {
    const at = iso(hub.clock());
    send("agents", watch.id, at, "ready");
    if (watch.missed === undefined) sink.send({ event: "reset", id: watch.id, data: JSON.stringify({ type: "reset", project, at }) });
    for (const topic of watch.missed ?? []) send(topic, watch.id, at);
    early.forEach(deliver);
    live = true;
    await ended;
  } finally {
    watch.leave();
    forgetToken?.();
  }
}

export const opsRoutes: readonly Route[] = [snapshot, events];

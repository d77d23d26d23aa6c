// The page's one stream: signals, never HTML. Each committed change becomes `event: <topic>`; a region refetches its own fragment.
// A burst of one topic is one signal; a page that was away is told what changed meanwhile, or to refetch everything.
import type { SessionRow } from "../db/schema.ts";
import { type SseSink, streamAnswer } from "../http/sse.ts";
import type { Hub } from "../hub/hub.ts";
import * as sessions from "../hub/sessions.ts";
import { HubError } from "../protocol/errors.ts";
import { formatCursor, parseCursor } from "../protocol/events.ts";
import { SSE_HEARTBEAT_MS, STREAMS_PER_SESSION_MAX } from "../protocol/limits.ts";

const PROJECTS_MAX = 200; // projects one page over all of them follows
const CATCH_UP_MAX = 2_000; // events looked at for a page that was away; beyond it everything is refetched
const open = new WeakMap<Hub, Map<string, number>>(); // streams per session

/** Topics a change is signalled under: runs are what synced events and workflow runs both change. */
const topicsOf = (topic: string): string[] =>
  topic === "sync" || topic === "workflows" ? [topic, "runs"] : topic === "runtimes" ? [topic, "agents"] : [topic];

type Asked = {
  request: Request;
  server: { timeout(request: Request, seconds: number): void } | null;
  session: SessionRow;
  project: string | undefined;
};

/** The stream of a session. @throws HubError too_many_streams */
export function signalsAnswer(hub: Hub, { request, server, session, project }: Asked): Response {
  const counts = open.get(hub) ?? new Map<string, number>();
  open.set(hub, counts);
  const count = counts.get(session.id) ?? 0;
  if (count >= STREAMS_PER_SESSION_MAX) throw new HubError("too_many_streams", `this session has ${count} open streams`);
  counts.set(session.id, count + 1);
  const after = new URL(request.url).searchParams.get("after") ?? request.headers.get("last-event-id") ?? undefined;
  return streamAnswer({
    request,
    server,
    stopping: hub.stopping,
    headers: {},
    produce: (sink) =>
      produce(hub, sink, { session, project, after }).finally(() => {
        const left = counts.get(session.id)! - 1;
        if (left > 0) counts.set(session.id, left);
        else counts.delete(session.id);
      }),
  });
}

async function produce(
  hub: Hub,
  sink: SseSink,
  { session, project, after }: { session: SessionRow; project: string | undefined; after: string | undefined },
) {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  sink.signal.addEventListener("abort", () => end(), { once: true });
  const beat = () => sink.send({ event: "beat", data: JSON.stringify({ now: hub.clock() }) });
  const check = async () => {
    const current = await hub.engine.read.sessions.find(session.id);
    if (!current || !sessions.isLive(current, hub.seenSessions.lastSeen(current.id, current.lastSeenAt), hub.clock())) end();
  };
  const listener = {
    event: (event: { project: string; seq: number; at: number; topic: string }) => {
      if (event.topic === "settings") void check().catch(end);
      const id = project === undefined ? undefined : formatCursor(hub.engine.generation, event.seq);
      for (const topic of topicsOf(event.topic))
        sink.send({ event: topic, ...(id !== undefined && event.project === project && { id }), data: JSON.stringify({ at: event.at }) });
    },
    lost: () => end(), // the page reconnects and refetches
  };
  const followed = project === undefined ? (await hub.engine.read.projects.page("", PROJECTS_MAX)).map((row) => row.project) : [project];
  const joined = await Promise.all([...new Set([...followed, ""])].map((name) => hub.feeds.join(name, listener)));
  const timer = setInterval(() => {
    beat();
    void check().catch(end);
  }, SSE_HEARTBEAT_MS);
  try {
    beat();
    if (project !== undefined && after !== undefined) await catchUp(hub, sink, project, after);
    await ended;
  } finally {
    clearInterval(timer);
    for (const { leave } of joined) leave();
  }
}

/** What a page missed while it was away: one signal a topic, or `reset` when its place is unknown here. */
async function catchUp(hub: Hub, sink: SseSink, project: string, after: string) {
  const { generation, read } = hub.engine;
  const cursor = parseCursor(after);
  const last = await read.events.lastSeq(project);
  const first = await read.projects.firstSeq(project);
  const known =
    cursor !== undefined &&
    cursor.generation === generation &&
    cursor.seq <= last &&
    cursor.seq + 1 >= (first ?? last + 1) &&
    last - cursor.seq <= CATCH_UP_MAX;
  if (!known) {
    sink.send({ event: "reset", data: JSON.stringify({ now: hub.clock() }) });
    return;
  }
  const missed = await read.events.after(project, cursor.seq, CATCH_UP_MAX);
  const topics = new Map(missed.flatMap(({ topic, at, seq }) => topicsOf(topic).map((name) => [name, { at, seq }] as const)));
  for (const [topic, { at }] of topics) sink.send({ event: topic, id: formatCursor(generation, last), data: JSON.stringify({ at }) });
}

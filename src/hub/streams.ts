// The streams of agents: the open mailbox first, then the event log filtered to one agent, in order and each event once, or `reset`.
// A stream reads what it missed from the log itself until it stands where the project's channel stands; then it is live.
// Codes: too_many_streams, presence_stream_forbidden.
import type { AgentRow } from "../db/schema.ts";
import { HubError } from "../protocol/errors.ts";
import { formatCursor, parseCursor, type ResetReason } from "../protocol/events.ts";
import { RESUME_EVENTS_MAX } from "../protocol/limits.ts";
import * as agents from "./agents.ts";
import { Channel, type Sink, Subscriber } from "./channel.ts";
import { audienceOf, type Built, buildFrame, includes, messageFrame } from "./frames.ts";
import type { Hub } from "./hub.ts";
import { describeError } from "./log.ts";
import { settleDue } from "./mailbox.ts";
import { isDue } from "./messages.ts";
import { createPushed, type Pushed } from "./pushed.ts";
import * as tokens from "./tokens.ts";

/** Which stream an agent asks for. `lastEventId` is whatever the client sent; `token` is what opened the project, and revoking it ends the stream. */
export type StreamRequest = { agent: AgentRow; presenceOnly: boolean; lastEventId: string | null; token?: OpenedBy };
type OpenedBy = { actor: string; project: string | null };
/** The streams of one process. */
export interface Streams {
  /** Call it before the answer starts. @throws HubError too_many_streams, presence_stream_forbidden */
  admit(request: StreamRequest): void;
  /** Serves a stream until its client leaves, its agent signs off or gets a new key, its token is revoked or expires, or the feed is lost. */
  serve(request: StreamRequest, sink: Sink): Promise<void>;
  /** Open streams of this process. */
  readonly size: number;
  /** Times of pushed messages, written in batches. */
  readonly pushed: Pushed;
}
type Source = Omit<Hub, "streams">;
/** A stream on its way. `at` = everything up to this event has been sent or does not concern it. */
type Journey = StreamRequest & { hub: Source; channel: Channel; pushed: Pushed; sink: Sink; at: number };

type SharedChannel = { users: number; opened: Promise<Channel> };

const READ_EVENTS = 2_000; // of the log at a time while catching up
const REPLAY_ROWS = 20; // messages at a time: each may be 64 KiB, and the next page waits for the client
const NEAR_EVENTS = 50; // this close behind the channel a stream joins it

/** The streams of one process over one store. */
export function createStreams(hub: Source): Streams {
  const channels = new Map<string, SharedChannel>();
  const perAgent = new Map<string, number>();
  const pushed = createPushed(hub);

  /** The project's channel, kept open until `release`. Counted before any wait, so that nobody closes it in between. */
  function use(project: string) {
    const known = channels.get(project);
    const shared = known ?? { users: 0, opened: Channel.open(hub, project, (error) => lost(error)) };
    const forget = () => void (channels.get(project) === shared && channels.delete(project));
    const lost = (error: unknown) => {
      forget();
      hub.log({ event: "feed_lost", level: "warn", project, streams: shared.users, error: describeError(error) });
    };
    if (!known) channels.set(project, shared);
    shared.users++;
    const release = () => {
      if (--shared.users > 0) return;
      forget();
      shared.opened.then((channel) => channel.close()).catch(() => {}); // it never opened; whoever waited for it was told
    };
    return { opened: shared.opened, release };
  }

  return {
    pushed,
    get size() {
      return perAgent.values().reduce((sum, streams) => sum + streams, 0);
    },
    admit({ agent, presenceOnly }) {
      if (presenceOnly && agent.model !== "tui") {
        throw new HubError("presence_stream_forbidden", "a stream of comings and goings alone is for the terminal view");
      }
      const max = hub.settings.streamsPerToken;
      if ((perAgent.get(agent.id) ?? 0) >= max) throw new HubError("too_many_streams", `this agent has ${max} streams open`);
    },
    async serve(request, sink) {
      const { id, project } = request.agent;
      perAgent.set(id, (perAgent.get(id) ?? 0) + 1);
      const { opened, release } = use(project);
      try {
        await travel({ ...request, hub, channel: await opened, pushed, sink, at: 0 });
      } catch (error) {
        // The client comes back by its cursor; what went wrong here is the operator's business.
        hub.log({ event: "stream_failed", level: "error", project, agentId: id, error: describeError(error) });
      } finally {
        release();
        const open = perAgent.get(id)! - 1;
        if (open === 0) perAgent.delete(id);
        else perAgent.set(id, open);
      }
    },
  };
}

/** From the first frame to the end of a stream. */
async function travel(journey: Journey): Promise<void> {
  const { hub, channel, sink, agent, presenceOnly, token } = journey;
  const resumed = await start(journey);
  while (!sink.signal.aborted && channel.position - journey.at > NEAR_EVENTS) {
    await readLog(journey, Math.min(channel.position, journey.at + READ_EVENTS));
  }
  const subscriber = new Subscriber(agent, presenceOnly, sink, journey.pushed, journey.at);
  channel.join(subscriber);
  const forgetToken = await endWithToken(hub, token, subscriber.end);
  try {
    await readLog(journey, channel.position);
    if (resumed !== undefined && (await isCutOff(hub, agent.project, resumed))) return; // retention was faster: the client gets reset when it returns
    const now = await hub.engine.read.agents.find(agent.id);
    if (now?.keyHash !== agent.keyHash || now.online === 0 || !channel.live) return; // it left while the stream caught up
    subscriber.goLive();
    sink.cursor = () => formatCursor(hub.engine.generation, Math.max(channel.position, subscriber.floor));
    await subscriber.ended;
  } finally {
    channel.leave(subscriber);
    forgetToken();
  }
}

/** Ends a stream with the token it was opened with. */
async function endWithToken(hub: Source, token: OpenedBy | undefined, end: () => void): Promise<() => void> {
  if (!token?.actor.startsWith("tok_")) return () => {}; // from the environment, or none at all
  return tokens.watchEnd(hub, { id: token.actor, project: token.project }, end);
}

/** `ready`, and what belongs before the log: a reset, the replay. @returns the event a resumed stream goes on from */
async function start(journey: Journey): Promise<number | undefined> {
  const { hub, sink, agent, lastEventId } = journey;
  const ready = { frame: { event: "ready" as const, data: JSON.stringify({ agent: agents.toAgent(hub, agent) }) } };
  const place = await placeOf(hub, agent.project, lastEventId);
  if (typeof place === "number") {
    journey.at = place;
    sink.send(ready.frame);
    return place;
  }
  await replay(journey, place === undefined ? [ready] : [ready, resetFrame(place)]);
  return;
}

const resetFrame = (reason: ResetReason): Built => ({ frame: { event: "reset", data: JSON.stringify({ type: "reset", reason }) } });

/** The event to resume after, why that is impossible, or undefined for a new stream. */
async function placeOf({ engine }: Source, project: string, lastEventId: string | null): Promise<number | ResetReason | undefined> {
  if (lastEventId === null || lastEventId === "") return;
  const cursor = parseCursor(lastEventId);
  if (!cursor) return "unreadable";
  if (cursor.generation !== engine.generation) return "other_generation";
  const last = await engine.read.events.lastSeq(project);
  if (cursor.seq > last) return "from_the_future";
  if (last - cursor.seq > RESUME_EVENTS_MAX) return "too_old";
  return (await isCutOff({ engine }, project, cursor.seq)) ? "too_old" : cursor.seq;
}

/** Whether events after `seq` are no longer there. */
async function isCutOff({ engine }: Pick<Source, "engine">, project: string, seq: number): Promise<boolean> {
  const oldest = await engine.read.events.oldest(project);
  return oldest !== undefined && oldest.seq > seq + 1;
}

/**
 * Sends the opening frames and every message that waits to be acknowledged, oldest first. Only the last frame carries the cursor: a client that is cut
 * off in the middle has none yet and gets the whole mailbox again.
 */
async function replay(journey: Journey, opening: Built[]): Promise<void> {
  const { hub, sink, agent, presenceOnly } = journey;
  const { messages } = hub.engine.read;
  const { seq, recipientSeq: upTo } = await messages.streamStart(agent.project, agent.id);
  let last = opening.pop()!;
  for (const built of opening) sink.send(built.frame);
  let after = presenceOnly ? upTo : 0;
  while (after < upTo && !sink.signal.aborted) {
    const rows = await messages.queued(agent.id, { after, upTo, limit: REPLAY_ROWS });
    for (const row of rows) {
      if (isDue(row, hub.clock())) await settleDue(hub, row.project, row.id);
      else {
        send(journey, last);
        last = messageFrame(row);
      }
    }
    await sink.drained();
    after = rows.length < REPLAY_ROWS ? upTo : rows.at(-1)!.recipientSeq;
  }
  send(journey, { ...last, frame: { ...last.frame, id: formatCursor(hub.engine.generation, seq) } });
  journey.at = seq;
}

function send({ sink, pushed }: Journey, { frame, message }: Built) {
  if (sink.send(frame) && message?.pushedAt === null) pushed.note(message);
}

/** Sends what the log holds for the stream, up to an event. */
async function readLog(journey: Journey, upTo: number): Promise<void> {
  const { hub, sink, agent, presenceOnly, at } = journey;
  if (upTo <= at) return;
  for (const event of await hub.engine.read.events.concerning(agent.project, agent.id, { after: at, upTo })) {
    const audience = audienceOf(event);
    if (!audience || !includes(audience, agent.id) || (presenceOnly && audience.name !== "presence")) continue;
    const built = await buildFrame(hub, event, audience.name);
    if (built) send(journey, built);
    await sink.drained();
    if (sink.signal.aborted) return;
  }
  journey.at = upTo;
}

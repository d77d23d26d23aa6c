// The live end of a project's streams: one place at the feed, from which each event goes to those it concerns.
import type { AgentRow, EventRow } from "../db/schema.ts";
import type { Feeds, Listener } from "./feed.ts";
import { audienceOf, type Built, buildFrame, type Frame, type FrameSource } from "./frames.ts";
import type { Pushed } from "./pushed.ts";

/** The client's end of a stream. */
export interface Sink {
  /** False once the client is gone or was dropped because it does not read. */
  send(frame: Frame): boolean;
  /** Resolves when little is waiting for the client, or it is gone. */
  drained(): Promise<void>;
  readonly signal: AbortSignal;
  /** Set by the hub once the stream is live: the cursor up to which its client has everything. Heartbeats carry it. */
  cursor: (() => string) | undefined;
}

/** Live frames that may wait for a stream that is about to go live. Beyond it the client comes back and resumes. */
const HELD_FRAMES_MAX = 1_000;

/** A stream that has joined its channel. */
export class Subscriber {
  readonly ended: Promise<void>;
  readonly end: () => void;
  #held: Built[] | undefined = [];
  /** @param floor the last event that the stream gets from elsewhere */
  constructor(
    readonly agent: AgentRow,
    readonly presenceOnly: boolean,
    readonly sink: Sink,
    readonly pushed: Pushed,
    public floor: number,
  ) {
    const { promise, resolve } = Promise.withResolvers<void>();
    [this.ended, this.end] = [promise, resolve];
    if (sink.signal.aborted)
      this.end(); // the client left while the stream caught up
    else sink.signal.addEventListener("abort", this.end, { once: true });
  }
  /** A live frame: sent, or kept until `goLive`. */
  take(built: Built) {
    if (!this.#held) this.send(built);
    else if (this.#held.length < HELD_FRAMES_MAX) this.#held.push(built);
    else this.end();
  }
  /** What was kept goes out; from now on frames are sent as they come. */
  goLive() {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const built of held) this.send(built);
  }
  /** Sends a frame and notes a message that was written. */
  send({ frame, message }: Built): boolean {
    const sent = this.sink.send(frame);
    if (sent && message?.pushedAt === null) this.pushed.note(message);
    return sent;
  }
}

/** The streams of one project in this process. It lives as long as streams use it. */
export class Channel implements Listener {
  /** Events up to this one have been given to the subscribers. */
  position = 0;
  /** False once the feed was lost: nothing more will come. */
  live = true;
  #byAgent = new Map<string, Set<Subscriber>>();
  #leaveFeed = () => {};
  private constructor(
    readonly hub: FrameSource,
    readonly onLost: (error: unknown) => void,
  ) {}

  /** Joins the project's feed. @param onLost called when the feed ends early; the channel is of no use then */
  static async open(hub: FrameSource & { feeds: Feeds }, project: string, onLost: (error: unknown) => void): Promise<Channel> {
    const channel = new Channel(hub, onLost);
    const { position, leave } = await hub.feeds.join(project, channel);
    channel.position = Math.max(channel.position, position);
    channel.#leaveFeed = leave;
    return channel;
  }
  close() {
    this.#leaveFeed();
  }

  /** From here on the subscriber gets what comes after `position`. */
  join(subscriber: Subscriber) {
    subscriber.floor = Math.max(subscriber.floor, this.position);
    const { id } = subscriber.agent;
    const streams = this.#byAgent.get(id) ?? new Set();
    this.#byAgent.set(id, streams.add(subscriber));
  }
  leave(subscriber: Subscriber) {
    const { id } = subscriber.agent;
    const streams = this.#byAgent.get(id);
    if (streams?.delete(subscriber) && streams.size === 0) this.#byAgent.delete(id);
  }

  async event(event: EventRow) {
    this.position = event.seq; // before any wait: a stream that joins from now on reads this event from the log
    const own = event.topic === "agents" ? this.#streamsOf([event.subjectId], event) : [];
    const audience = audienceOf(event);
    if (audience) {
      const streams = "ids" in audience ? this.#streamsOf(audience.ids, event) : this.#streamsBut(audience.except, event);
      const heard = audience.name === "presence" ? streams : streams.filter(({ presenceOnly }) => !presenceOnly);
      const built = heard.length > 0 ? await buildFrame(this.hub, event, audience.name) : undefined;
      if (built) for (const stream of heard) stream.take(built);
    }
    if (own.length > 0) await this.#endUnwelcome(own, event);
  }

  /** The log was cut off or cannot be read: clients come back by their cursor. */
  lost(error: unknown) {
    this.live = false;
    for (const streams of this.#byAgent.values()) for (const stream of streams) stream.end();
    this.onLost(error);
  }

  #streamsOf(ids: readonly string[], { seq }: EventRow): Subscriber[] {
    return ids.flatMap((id) => [...(this.#byAgent.get(id) ?? [])]).filter(({ floor }) => floor < seq);
  }
  #streamsBut(except: string, { seq }: EventRow): Subscriber[] {
    const streams: Subscriber[] = [];
    for (const [id, ofAgent] of this.#byAgent) {
      if (id !== except) for (const stream of ofAgent) if (stream.floor < seq) streams.push(stream);
    }
    return streams;
  }

  /** A new key, or signing off, ends the streams of before. What the row says now decides: the feed may be behind the stream. */
  async #endUnwelcome(streams: readonly Subscriber[], event: EventRow) {
    const now = await this.hub.engine.read.agents.find(event.subjectId);
    const left = event.data["reason"] === "signed_off" && now?.online === 0;
    for (const { agent, end } of streams) if (left || now?.keyHash !== agent.keyHash) end();
  }
}

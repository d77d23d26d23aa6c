// One follower of a project's event log per process, however many streams and waits listen. It runs while somebody listens.
// A listener sees every committed event after its position, in order, each once; or it is told that it lost its place.
import type { Engine } from "../db/engine.ts";
import type { EventRow } from "../db/schema.ts";

/** What a listener does with events. The feed waits for a returned promise, so a slow listener slows the feed and nothing is queued. */
export interface Listener {
  event(event: EventRow): void | Promise<void>;
  /** The feed ended early: the log was cut off behind its back, or the store cannot be read. Nothing more will come. */
  lost(error: unknown): void;
}
/** A place among the listeners of a project. */
export interface Joined {
  /** The listener is called for events after this one; perhaps already before `join` returned. */
  position: number;
  leave(): void;
}
/** One follower per project and process, shared by all who listen. */
export interface Feeds {
  /** @param subjectId only events about this one thing */
  join(project: string, listener: Listener, subjectId?: string): Promise<Joined>;
  /** Projects that are being followed, for metrics and tests. */
  readonly size: number;
}

type Feed = {
  position: number;
  everything: Set<Listener>;
  bySubject: Map<string, Set<Listener>>;
  started: Promise<number>;
  running: boolean;
  abort: AbortController;
};

/** The feeds of one process over one store. */
export function createFeeds(engine: Engine): Feeds {
  const feeds = new Map<string, Feed>();

  function open(project: string): Feed {
    const started = engine.read.events.lastSeq(project).then((seq) => {
      feed.position = seq;
      feed.running = true;
      void run(project, feed);
      return seq;
    });
    const feed: Feed = { position: 0, everything: new Set(), bySubject: new Map(), started, running: false, abort: new AbortController() };
    feeds.set(project, feed);
    return feed;
  }

  async function run(project: string, feed: Feed) {
    try {
      for await (const event of engine.follow(project, feed.position, feed.abort.signal)) {
        if (event) await deliver(feed, event);
      }
    } catch (error) {
      drop(project, feed);
      for (const listener of listenersOf(feed)) listener.lost(error);
    }
  }

  function drop(project: string, feed: Feed) {
    feed.abort.abort();
    if (feeds.get(project) === feed) feeds.delete(project);
  }

  return {
    get size() {
      return feeds.size;
    },
    async join(project, listener, subjectId) {
      const feed = feeds.get(project) ?? open(project);
      const listeners = subjectId === undefined ? feed.everything : (feed.bySubject.get(subjectId) ?? new Set());
      if (subjectId !== undefined) feed.bySubject.set(subjectId, listeners);
      listeners.add(listener); // before any wait, so that the feed is not closed meanwhile
      const leave = () => {
        listeners.delete(listener);
        if (subjectId !== undefined && listeners.size === 0 && feed.bySubject.get(subjectId) === listeners) feed.bySubject.delete(subjectId);
        if (feed.everything.size === 0 && feed.bySubject.size === 0) drop(project, feed);
      };
      if (feed.running) return { position: feed.position, leave };
      try {
        return { position: await feed.started, leave };
      } catch (error) {
        leave();
        throw error;
      }
    },
  };
}

async function deliver(feed: Feed, event: EventRow) {
  feed.position = event.seq;
  // Taken before any wait: who joins during this event has a position that includes it.
  const listeners = [...(feed.bySubject.get(event.subjectId) ?? []), ...feed.everything];
  for (const listener of listeners) await listener.event(event);
}

const listenersOf = ({ everything, bySubject }: Feed) => [...everything, ...[...bySubject.values()].flatMap((set) => [...set])];

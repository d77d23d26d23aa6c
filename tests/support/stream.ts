// Reads a stream of server-sent events as a strict client does: field by field, with the cursor it would come back with.
import type { HubSeat, Sender } from "./fleet.ts";
import { headersOf } from "./fleet.ts";

/** One event as a client sees it. `lastEventId` is the cursor after it. */
export type Seen = { event: string; data: any; lastEventId: string };

/** A parser of the event-stream format, fed with text in any pieces. */
export function sseParser(onEvent: (seen: Seen) => void, onComment: (text: string) => void = () => {}) {
  let [buffer, event, lastEventId] = ["", "", ""];
  let data: string[] = [];
  const line = (text: string) => {
    if (text === "") {
      if (data.length > 0) onEvent({ event: event || "message", data: JSON.parse(data.join("\n")), lastEventId });
      [event, data] = ["", []];
    } else if (text.startsWith(":")) onComment(text);
    else {
      const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(text)!;
      if (name === "event") event = value!;
      else if (name === "data") data.push(value!);
      else if (name === "id") lastEventId = value!;
    }
  };
  return {
    feed(text: string) {
      buffer += text;
      const lines = buffer.split("\n");
      buffer = lines.pop()!;
      for (const one of lines) line(one);
    },
    get lastEventId() {
      return lastEventId;
    },
  };
}

/** A client on one stream. */
export interface StreamClient extends AsyncDisposable {
  status: number;
  headers: Headers;
  /** Everything seen so far, and not yet taken by `next`. */
  seen: Seen[];
  comments: string[];
  /** The next event in order. Undefined once the stream has ended. @throws after five seconds without any */
  next(): Promise<Seen | undefined>;
  /** The next event of a kind; those before it are dropped. */
  nextOf(event: string): Promise<Seen>;
  /** Resolves when the hub has ended the stream. @throws after five seconds */
  ended: Promise<void>;
  lastEventId(): string;
  close(): Promise<void>;
}

const WAIT_MS = 5_000;

/** Reads a streaming answer. */
export function readStream(response: Response, abort: AbortController): StreamClient {
  const seen: Seen[] = [];
  const comments: string[] = [];
  let wake = () => {};
  let over = false;
  const parser = sseParser(
    (one) => void seen.push(one),
    (text) => void comments.push(text),
  );
  const finished = (async () => {
    const text = new TextDecoder();
    try {
      for await (const chunk of response.body!) {
        parser.feed(text.decode(chunk as Uint8Array, { stream: true }));
        wake();
      }
    } catch {
      // the test closed it, or the hub went away
    }
    over = true;
    wake();
  })();
  const client: StreamClient = {
    status: response.status,
    headers: response.headers,
    seen,
    comments,
    async next() {
      const late = setTimeout(() => wake(), WAIT_MS);
      const deadline = performance.now() + WAIT_MS - 1;
      while (seen.length === 0 && !over) {
        if (performance.now() > deadline) throw new Error("no event came within five seconds");
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        await promise;
      }
      clearTimeout(late);
      return seen.shift();
    },
    async nextOf(event) {
      for (;;) {
        const one = await client.next();
        if (!one) throw new Error(`the stream ended before an event ${event}`);
        if (one.event === event) return one;
      }
    },
    get ended() {
      const { promise, reject } = Promise.withResolvers<never>();
      const late = setTimeout(() => reject(new Error("the stream did not end within five seconds")), WAIT_MS);
      return Promise.race([finished, promise]).finally(() => clearTimeout(late));
    },
    lastEventId: () => parser.lastEventId,
    async close() {
      abort.abort();
      await finished;
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
  return client;
}

/** Opens an agent's stream in process. */
export async function openStream(
  seat: Pick<HubSeat, "fetch">,
  agent: Exclude<Sender, string | undefined>,
  options: { lastEventId?: string; presenceOnly?: boolean } = {},
): Promise<StreamClient> {
  const abort = new AbortController();
  const { lastEventId, presenceOnly } = options;
  const headers = { ...headersOf(agent), ...(lastEventId !== undefined && { "last-event-id": lastEventId }) };
  const url = `http://127.0.0.1:7331/v1/events?agentId=${agent.id}${presenceOnly ? "&presenceOnly=true" : ""}`;
  return readStream(await seat.fetch(new Request(url, { headers, signal: abort.signal })), abort);
}

// Server-sent events: our own encoder, because a line break in data must never start a new field, and a bounded stream per client.
import { SSE_BACKLOG_BYTES_MAX, SSE_HEARTBEAT_MS } from "../protocol/limits.ts";

/** One frame. `id` and `event` come from us, never from agents; `data` may hold anything. */
export type Frame = { event?: string; id?: string; data: string };

const oneLine = (text: string) => text.replaceAll(/[\r\n\0]/g, "");

/** A frame as text: every line of data gets its own `data:` field. */
const encodeFrame = ({ event, id, data }: Frame): string =>
  `${event ? `event: ${oneLine(event)}\n` : ""}${id ? `id: ${oneLine(id)}\n` : ""}${data
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}\n`)
    .join("")}\n`;

const encoder = new TextEncoder();
/** A frame that goes to many clients is encoded once. */
const encoded = new WeakMap<Frame, Uint8Array>();
function bytesOf(frame: Frame): Uint8Array {
  let bytes = encoded.get(frame);
  if (!bytes) encoded.set(frame, (bytes = encoder.encode(encodeFrame(frame))));
  return bytes;
}

const SSE_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  connection: "keep-alive",
  "x-accel-buffering": "no",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

/** Backlog below which a producer of many frames goes on. */
const LOW_WATER_BYTES = SSE_BACKLOG_BYTES_MAX / 4;
const HEARTBEAT = encoder.encode(": heartbeat\n\n");

/** What a stream's producer holds. */
export interface SseSink {
  /** False once the client is gone or was dropped at its backlog cap. */
  send(frame: Frame): boolean;
  /** Resolves when little is waiting for the client, or it is gone. Await it between the frames of a long replay. */
  drained(): Promise<void>;
  /** Ends when the client leaves, is dropped, or the hub stops. */
  readonly signal: AbortSignal;
  /** When set, heartbeats carry it as `id:`, so that a client of a quiet stream comes back close to where it left. */
  cursor: (() => string) | undefined;
}

/** How a streaming answer is made. */
export type StreamOptions = {
  request: Request;
  /** Lifts Bun's idle timeout for this request, or a quiet stream would be cut. */
  server: { timeout(request: Request, seconds: number): void } | null | undefined;
  stopping: AbortSignal;
  headers: Record<string, string>;
  /** Runs until its signal ends; the stream ends when it returns. */
  produce: (sink: SseSink) => Promise<void>;
};

/** A streaming answer. A client that does not read is dropped at SSE_BACKLOG_BYTES_MAX and resumes by its cursor. */
export function streamAnswer(options: StreamOptions): Response {
  const { request, server, stopping, headers, produce } = options;
  server?.timeout(request, 0);
  const stream = new ClientStream(request.signal, stopping);
  const body = new ReadableStream<Uint8Array>(
    { start: (controller) => stream.start(controller, produce), pull: () => stream.wake(), cancel: () => stream.end() },
    { highWaterMark: 0, size: (chunk) => chunk?.byteLength ?? 0 },
  );
  return new Response(body, { headers: { ...SSE_HEADERS, ...headers } });
}

/** One client's end: its backlog, its heartbeat, its end. */
class ClientStream implements SseSink {
  cursor: (() => string) | undefined;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #ended = new AbortController();
  #heartbeat: ReturnType<typeof setInterval> | undefined;
  #beaten: string | undefined;
  #wakers: (() => void)[] = [];
  constructor(
    readonly left: AbortSignal,
    readonly stopping: AbortSignal,
  ) {}
  get signal() {
    return this.#ended.signal;
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>, produce: (sink: SseSink) => Promise<void>) {
    this.#controller = controller;
    if (this.stopping.aborted) return this.#stop();
    if (this.left.aborted) return this.end();
    this.left.addEventListener("abort", this.end, { once: true });
    this.stopping.addEventListener("abort", this.#stop, { once: true });
    this.#heartbeat = setInterval(this.#beat, SSE_HEARTBEAT_MS);
    void produce(this).then(this.end, this.end);
  }

  send(frame: Frame) {
    return this.#write(bytesOf(frame));
  }

  async drained() {
    while (!this.signal.aborted && -(this.#controller?.desiredSize ?? 0) > LOW_WATER_BYTES) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wakers.push(resolve);
      await promise;
    }
  }

  /** The client has read something. */
  wake() {
    for (const waker of this.#wakers.splice(0)) waker();
  }

  readonly end = () => {
    if (this.signal.aborted) return;
    this.#ended.abort();
    clearInterval(this.#heartbeat);
    this.left.removeEventListener("abort", this.end);
    this.stopping.removeEventListener("abort", this.#stop);
    this.wake();
    try {
      this.#controller?.close();
    } catch {
      // the client closed it first
    }
  };

  readonly #stop = () => {
    this.#write(encoder.encode("retry: 1000\n\n"));
    this.end();
  };

  readonly #beat = () => {
    const cursor = this.cursor?.();
    const moved = cursor !== undefined && cursor !== this.#beaten;
    this.#beaten = cursor;
    this.#write(moved ? encoder.encode(`: heartbeat\nid: ${oneLine(cursor)}\n\n`) : HEARTBEAT);
  };

  #write(bytes: Uint8Array): boolean {
    if (this.signal.aborted) return false;
    const controller = this.#controller!;
    if (-(controller.desiredSize ?? 0) > SSE_BACKLOG_BYTES_MAX) {
      controller.error(new Error("the client does not read")); // drops the backlog, too: closing would keep it until the client has read it
      this.end();
      return false;
    }
    controller.enqueue(bytes);
    return true;
  }
}

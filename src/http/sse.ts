// Server-sent events: our own encoder, because a line break in data must never start a new field, and a bounded stream per client.
import { SSE_BACKLOG_BYTES_MAX, SSE_HEARTBEAT_MS } from "../protocol/limits.ts";

/** One frame. `id` and `event` come from us, never from agents; `data` may hold anything. */
export type Frame = { event?: string; id?: string; data: string };

const oneLine = (text: string) => text.replaceAll(/[\r\n\0]/g, "");

/** A frame as text: every line of data gets its own `data:` field. */
export const encodeFrame = ({ event, id, data }: Frame): string =>
  `${event ? `event: ${oneLine(event)}\n` : ""}${id ? `id: ${oneLine(id)}\n` : ""}${data
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}\n`)
    .join("")}\n`;

export const SSE_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  connection: "keep-alive",
  "x-accel-buffering": "no",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

/** What a stream's producer holds. `send` returns false once the client is gone or was dropped at its backlog cap. */
export interface SseSink {
  send(frame: Frame): boolean;
  /** Ends when the client leaves, is dropped, or the hub stops. */
  readonly signal: AbortSignal;
}

/**
 * A streaming answer. `produce` runs until its signal ends; a client that does not read is dropped at SSE_BACKLOG_BYTES_MAX and resumes by its cursor.
 * @param server lifts Bun's idle timeout for this request, or a quiet stream would be cut
 */
export function streamAnswer(options: {
  request: Request;
  server: { timeout(request: Request, seconds: number): void } | null | undefined;
  stopping: AbortSignal;
  headers: Record<string, string>;
  produce: (sink: SseSink) => Promise<void>;
}): Response {
  const { request, server, stopping, headers, produce } = options;
  server?.timeout(request, 0);
  const ended = new AbortController();
  const end = () => ended.abort();
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const encoder = new TextEncoder();
        const heartbeat = setInterval(() => write(": heartbeat\n\n"), SSE_HEARTBEAT_MS);
        const write = (text: string) => {
          if (ended.signal.aborted) return false;
          if ((controller.desiredSize ?? 0) < -SSE_BACKLOG_BYTES_MAX) {
            end();
            return false;
          }
          controller.enqueue(encoder.encode(text));
          return true;
        };
        const close = () => {
          clearInterval(heartbeat);
          request.signal.removeEventListener("abort", end);
          stopping.removeEventListener("abort", stop);
          try {
            controller.close();
          } catch {
            // the client closed it first
          }
        };
        const stop = () => {
          write("retry: 1000\n\n");
          end();
        };
        ended.signal.addEventListener("abort", close, { once: true });
        request.signal.addEventListener("abort", end, { once: true });
        stopping.addEventListener("abort", stop, { once: true });
        if (stopping.aborted) return stop();
        void produce({ send: (frame) => write(encodeFrame(frame)), signal: ended.signal }).then(end, end);
      },
      cancel: end,
    },
    { highWaterMark: 0, size: (chunk) => chunk?.byteLength ?? 0 },
  );
  return new Response(body, { headers: { ...SSE_HEADERS, ...headers } });
}

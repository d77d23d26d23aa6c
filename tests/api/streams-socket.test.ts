// Streams over real sockets: what a strict client reads, a client that never reads, and one that goes away.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { range, sqliteWorld } from "../support/engines.ts";
import { type Fleet, openFleet, type Registered, until } from "../support/fleet.ts";
import { readStream, type Seen, sseParser } from "../support/stream.ts";

const WAIT_MS = 20_000;
let it: Fleet;
let server: ReturnType<Fleet["listen"]>;
let [ada, bob]: Registered[] = [] as unknown as [Registered, Registered];
beforeEach(async () => {
  it = await openFleet(sqliteWorld);
  server = it.listen();
  [ada, bob] = [await it.register("ada"), await it.register("bob")];
});
afterEach(async () => {
  await server.stop();
  await it[Symbol.asyncDispose]();
});

const post = (content: string) => it.call(ada, "POST", "/v1/messages", { target: "bob", content, allowOffline: true });
const requestText = (more = "") =>
  `GET /v1/events?agentId=${bob!.id} HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\nx-kxm-agent-key: ${bob!.key}\r\n${more}\r\n`;
/** A raw connection that has sent its request. */
function dial(text: string): Socket {
  const socket = connect(server.port, "127.0.0.1");
  socket.on("error", () => {}); // the hub may cut it
  socket.write(text);
  return socket;
}
async function follow(lastEventId = "") {
  const abort = new AbortController();
  const headers = { "x-kxm-agent-key": bob!.key, ...(lastEventId && { "last-event-id": lastEventId }) } as Record<string, string>;
  return readStream(await fetch(`${server.url}/v1/events?agentId=${bob!.id}`, { headers, signal: abort.signal }), abort);
}

test("frames arrive whole, in order and with their cursors, in whatever pieces the socket brings them", async () => {
  const seen: Seen[] = [];
  const parser = sseParser((one) => void seen.push(one));
  const socket = dial(requestText());
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => void chunks.push(Buffer.from(chunk as Buffer)));
  const received = () => Buffer.concat(chunks);
  await until(() => it.hub.streams.size === 1 && received().includes("event: ready"), "the stream", WAIT_MS);
  const contents = range(40).map((n) => `${n} ${"é😀\n".repeat(n * 20)}x`);
  for (const content of contents) await post(content);
  await until(
    () => {
      const body = unchunk(received());
      return (body.match(/^event: message$/gm) ?? []).length === 40 && body.endsWith("\n\n");
    },
    "all frames",
    WAIT_MS,
  );
  const [head] = received().toString("latin1").split("\r\n\r\n");
  expect(head!.toLowerCase()).toContain("content-type: text/event-stream\r\n");
  expect(head).toStartWith("HTTP/1.1 200");
  parser.feed(unchunk(received()));
  expect(seen.map(({ event }) => event)).toEqual(["ready", ...contents.map(() => "message")]);
  expect(seen.slice(1).map(({ data }) => data.message.content)).toEqual(contents);
  const seqs = seen.slice(1).map(({ lastEventId }) => Number(lastEventId.split(".")[1]));
  expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
  socket.destroy();
  await until(() => it.hub.streams.size === 0, "the end of the stream", WAIT_MS);
});

test("a client that does not read is dropped at its backlog, holds nobody up, and comes back by its cursor", async () => {
  const stalled = dial(requestText());
  stalled.pause();
  await until(() => it.hub.streams.size === 1, "the stalled stream", WAIT_MS);
  const healthy = await follow();
  expect((await healthy.next())!.event).toBe("ready");
  const start = healthy.lastEventId();
  const sent: string[] = [];
  const big = "x".repeat(31_000);
  while (it.hub.streams.size === 2 && sent.length < 2_000) {
    const answers = await Promise.all(range(20).map(() => post(big)));
    sent.push(...answers.map(({ body }) => body.message.id));
    while (healthy.seen.length > 0) await healthy.next();
  }
  expect(it.hub.streams.size).toBe(1);
  expect(sent.length).toBeLessThan(2_000);
  const probe = await post("still served");
  expect(probe.status).toBe(202);
  let last = healthy.lastEventId();
  await until(
    async () => {
      while (healthy.seen.length > 0) last = (await healthy.next())!.data.message?.id ?? last;
      return last === probe.body.message.id;
    },
    "the healthy client",
    WAIT_MS,
  );
  stalled.destroy();
  const back = await follow(start);
  expect((await back.next())!.event).toBe("ready");
  for (const id of sent) expect((await back.next())!.data.message.id).toBe(id);
  await healthy.close();
  await back.close();
}, 60_000);

test("hostile headers get a refusal or a reset, never silence and never a broken hub", async () => {
  await post("waits");
  const answerTo = async (header: string) => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const socket = dial(requestText(header));
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (!text.startsWith("HTTP/1.1 200") ? text.includes("\r\n\r\n") : text.includes("waits")) resolve(text);
    });
    socket.on("close", () => resolve(text || "closed"));
    const answer = await promise;
    socket.destroy();
    return answer.startsWith("HTTP/1.1 200")
      ? answer.includes("event: reset")
        ? "reset"
        : "replay"
      : (/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? answer);
  };
  expect(await answerTo("last-event-id: garbage\r\n")).toBe("reset");
  expect(await answerTo("last-event-id: \r\n")).toBe("replay");
  expect(await answerTo(`last-event-id: ${"x".repeat(65_536)}\r\n`)).toBeOneOf(["431", "400", "reset"]);
  expect(await answerTo("last-event-id: a\0b\r\n")).toBeOneOf(["400", "reset"]);
  expect(await answerTo("last-event-id: a\r\nlast-event-id: b\r\n")).toBe("reset");
  expect((await post("after all that")).status).toBe(202);
});

test("clients that vanish leave no stream, no feed and no timer behind", async () => {
  const sockets = range(20).map(() => dial(requestText()));
  await until(() => it.hub.streams.size === 20, "twenty streams", WAIT_MS);
  for (const [index, socket] of sockets.entries()) index % 2 ? socket.destroy() : socket.resetAndDestroy();
  await until(() => it.hub.streams.size === 0 && it.hub.feeds.size === 0, "the end of all streams", WAIT_MS);
});

/** The body of a chunked answer. */
function unchunk(bytes: Buffer): string {
  let rest = bytes.subarray(bytes.indexOf("\r\n\r\n") + 4);
  const parts: Buffer[] = [];
  for (;;) {
    const end = rest.indexOf("\r\n");
    const size = Number.parseInt(rest.subarray(0, Math.max(0, end)).toString(), 16);
    if (end === -1 || !(size > 0) || rest.length < end + 2 + size) return Buffer.concat(parts).toString();
    parts.push(rest.subarray(end + 2, end + 2 + size));
    rest = rest.subarray(end + 4 + size);
  }
}

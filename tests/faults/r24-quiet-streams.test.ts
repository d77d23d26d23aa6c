// R24. A quiet stream stays open although the server cuts idle connections, and says so with a comment at least every ten seconds; nothing else is spared.
import { expect, jest, test } from "bun:test";
import { SSE_HEARTBEAT_MS } from "../../src/protocol/limits.ts";
import { range, sqliteWorld } from "../support/engines.ts";
import { openFleet, until } from "../support/fleet.ts";
import { openStream, readStream } from "../support/stream.ts";

const FULL = process.env["KXM_FAULTS"] === "full";
const STREAMS = 100;
/** The server's own idle limit; in full it is the product's. Bun looks at it every four seconds. */
const IDLE_SECONDS = FULL ? 10 : 1;
const QUIET_MS = FULL ? 90_000 : 9_000;

/** Resolves after so long: quiet is what is tested. */
const quiet = (ms: number) => new Promise<void>((resolve) => AbortSignal.timeout(ms).addEventListener("abort", () => resolve()));

test(`${STREAMS} streams on real sockets live through ${QUIET_MS / 1000} quiet seconds and then hear the next event; an ordinary slow answer is cut`, async () => {
  await using it = await openFleet(sqliteWorld);
  const [ada, bob] = [await it.register("ada"), await it.register("bob")];
  const watchers = await Promise.all(range(STREAMS / 10).map((n) => it.register(`watcher-${n}`)));
  const server = it.listen({ idleTimeout: IDLE_SECONDS });
  const streams = await Promise.all(
    range(STREAMS).map(async (n) => {
      const { id, key } = watchers[n % watchers.length]!;
      const abort = new AbortController();
      return readStream(await fetch(`${server.url}/v1/events?agentId=${id}`, { headers: { "x-kxm-agent-key": key }, signal: abort.signal }), abort);
    }),
  );
  try {
    for (const stream of streams) expect((await stream.next())!.event).toBe("ready");
    const slow = idle(server.port); // a connection that is no stream: its request never ends
    await quiet(QUIET_MS);
    expect(await Promise.race([slow, Promise.resolve("open")])).toBe("cut");
    await it.call(bob, "DELETE", `/v1/agents/${bob.id}`);
    const heard = await Promise.all(streams.map((stream) => stream.next()));
    expect(heard.filter((one) => one?.event === "presence" && one.data.agent.id === bob.id)).toHaveLength(STREAMS);
    if (FULL) for (const { comments } of streams) expect(comments.length).toBeGreaterThanOrEqual(8);
    expect((await it.call(ada, "GET", "/v1/agents")).status).toBe(200);
  } finally {
    await Promise.all(streams.map((stream) => stream.close()));
    await server.stop();
  }
}, 120_000);

/** A request that is never finished. Resolves when the server cuts it. */
async function idle(port: number): Promise<"cut"> {
  const { promise, resolve } = Promise.withResolvers<"cut">();
  const text = "POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 10\r\n\r\n";
  const socket = {
    open: (it: { write(data: string): number }) => void it.write(text),
    data() {},
    close: () => resolve("cut"),
    error: () => resolve("cut"),
  };
  await Bun.connect({ hostname: "127.0.0.1", port, socket });
  return promise;
}

test("ninety quiet seconds bring nine comments, ten seconds apart, and the cursor", async () => {
  await using it = await openFleet(sqliteWorld);
  const [ada, bob] = [await it.register("ada"), await it.register("bob")];
  await it.register("cy");
  expect(SSE_HEARTBEAT_MS).toBeLessThanOrEqual(10_000);
  jest.useFakeTimers();
  try {
    const stream = await openStream(it, ada);
    expect((await stream.next())!.event).toBe("ready");
    const start = stream.lastEventId();
    const others = await it.world.engine.read.events.lastSeq("p");
    await it.call(bob, "POST", "/v1/messages", { target: "cy", content: "of no concern to ada" });
    await until(async () => (await it.world.engine.read.events.lastSeq("p")) > others);
    for (const beats of range(9)) {
      expect(stream.comments).toHaveLength(beats);
      jest.advanceTimersByTime(SSE_HEARTBEAT_MS);
      await until(() => stream.comments.length === beats + 1, "a heartbeat");
    }
    expect(stream.lastEventId()).not.toBe(start); // others' events have moved it, and a client that comes back has nothing to catch up
    expect(stream.seen).toEqual([]);
    expect(stream.comments.every((text) => text === ": heartbeat")).toBe(true);
    await stream.close();
  } finally {
    jest.useRealTimers();
  }
});

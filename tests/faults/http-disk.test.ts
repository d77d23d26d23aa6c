// R6. A full disk under a hub that serves: writes are refused with a code, reads and streams go on, nothing acknowledged is lost, and it comes back by itself.
import { expect, test } from "bun:test";
import { mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ask, HubRefusal } from "../../src/client/http.ts";
import { readFrames } from "../../src/client/sse.ts";
import { openPlace } from "../support/program.ts";

const isRoot = process.geteuid?.() === 0;
const WRITERS = 8;
const READERS = 20;

/** A disk of its own, as small as told. */
function smallDisk(path: string, megabytes: number): Disposable {
  mkdirSync(path);
  const run = (...command: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync(command);
    if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr}`);
  };
  run("mount", "-t", "tmpfs", "-o", `size=${megabytes}m,mode=700`, "tmpfs", path);
  return { [Symbol.dispose]: () => run("umount", "-l", path) };
}

function freeBytes(path: string): number {
  const { bsize, bavail } = statfsSync(path);
  return bsize * bavail;
}

test.skipIf(!isRoot)(
  "R6 a hub on a full disk refuses writes, serves reads, loses nothing it acknowledged, and writes again within five seconds of there being room",
  async () => {
    await using place = await openPlace();
    const disk = join(place.folder, "small");
    using _ = smallDisk(disk, 8);
    const hub = await place.startHub({ env: { KXM_WORKSPACE_DIR: join(disk, "kxm"), KXM_LOG_PATH: join(place.folder, "logs", "hub.jsonl") } });
    writeFileSync(join(disk, "ballast"), Buffer.alloc(3 * 1024 * 1024, 1)); // what is given back later
    const to = { url: hub.url };
    const register = async (name: string) => {
      const { agent, agentKey } = (await ask(to, "POST", "/v1/agents/register", { body: { name, project: "p" } })).body;
      return { id: agent.id as string, headers: { "x-kxm-agent-id": agent.id as string, "x-kxm-agent-key": agentKey as string } };
    };
    const writers = await Promise.all(Array.from({ length: WRITERS }, (_, n) => register(`writer-${n}`)));
    const reader = await register("reader");
    const stop = new AbortController();
    const received = new Set<string>();
    const cut: unknown[] = [];
    const streams = Array.from({ length: READERS }, async () => {
      try {
        const response = await fetch(`${hub.url}/v1/events?agentId=${reader.id}`, { headers: reader.headers, signal: stop.signal });
        for await (const { event, data } of readFrames(response)) if (event === "message") received.add(JSON.parse(data).message.id);
      } catch (error) {
        if (!stop.signal.aborted) cut.push(error);
      }
    });

    const acked: string[] = [];
    const refusals = new Map<string, number>();
    let full = false;
    const content = "x".repeat(20_000);
    const write = async (writer: (typeof writers)[number], round: number, text = content) => {
      const body = { target: "reader", content: text, idempotencyKey: `${writer.id}-${round}` };
      try {
        acked.push((await ask(to, "POST", "/v1/messages", { body, headers: writer.headers })).body.message.id);
      } catch (error) {
        if (!(error instanceof HubRefusal)) throw error;
        refusals.set(`${error.status} ${error.code}`, (refusals.get(`${error.status} ${error.code}`) ?? 0) + 1);
        full = true;
      }
    };
    for (let round = 0; !full && round < 200; round++) await Promise.all(writers.map((writer) => write(writer, round)));
    writeFileSync(join(disk, "rest"), Buffer.alloc(freeBytes(disk), 1));
    for (let round = 200; round < 210; round++) await Promise.all(writers.map((writer) => write(writer, round)));
    expect([...refusals.keys()]).toEqual(["503 storage_unavailable"]);
    expect(refusals.values().next().value!).toBeGreaterThan(WRITERS);
    let ready = await fetch(`${hub.url}/ready`);
    for (let round = 300; ready.status === 200 && round < 2_000; round++) {
      await write(writers[0]!, round, "small"); // until the log has not even room for the probe
      ready = await fetch(`${hub.url}/ready`);
    }
    expect([ready.status, ((await ready.json()) as { reason: string }).reason]).toEqual([503, "disk_full"]);

    const times: number[] = [];
    for (let n = 0; n < 100; n++) {
      const began = performance.now();
      const { status } = await ask(to, "GET", `/v1/messages/${acked[n % acked.length]}`, { headers: reader.headers });
      expect(status).toBe(200);
      times.push(performance.now() - began);
    }
    expect(times.sort((a, b) => a - b)[98]!).toBeLessThan(1_000); // 100 ms on a machine of its own; the tests share two processors

    rmSync(join(disk, "ballast"));
    const freed = performance.now();
    for (let round = 1_000; ; round++) {
      const before = acked.length;
      await write(writers[0]!, round);
      if (acked.length > before) break;
      expect(performance.now() - freed).toBeLessThan(5_000);
    }
    expect((await fetch(`${hub.url}/ready`)).status).toBe(200);
    const stored = await Promise.all(
      acked.map((id) => ask(to, "GET", `/v1/messages/${id}`, { headers: reader.headers }).then(({ body }) => body.message.content.length)),
    );
    expect(stored.every((length) => length === content.length || length === "small".length)).toBe(true);
    while (acked.some((id) => !received.has(id))) await new Promise((resolve) => setImmediate(resolve)); // each was pushed to the streams
    expect(cut).toEqual([]);
    stop.abort();
    await Promise.all(streams);
    expect((await hub.end()).code).toBe(0);
  },
  90_000,
);

// R42. An agent's key is replaced again and again under load: the new key works from the answer that shows it, the old one is dead from that answer on,
// streams of the old one end within a second, and no key is written anywhere.

import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { range, WORLDS } from "../support/engines.ts";
import { type Fleet, openFleet, type Registered } from "../support/fleet.ts";
import { openStream } from "../support/stream.ts";

const FULL = process.env["KXM_FAULTS"] === "full";
const CLIENTS = 8;
const END_MS_MAX = 1_000;

/** Signs the agent off and registers it again. @returns its new key, after the answer that shows it */
async function rotate(it: Fleet, agent: Registered): Promise<Registered> {
  await it.call(agent, "DELETE", `/v1/agents/${agent.id}`);
  for (;;) {
    const { status, body } = await it.call(undefined, "POST", "/v1/agents/register", { name: agent.name, project: "p" });
    if (status === 200) return { ...agent, key: body.agentKey };
    if (body.code !== "duplicate_agent_name") throw new Error(body.code);
    await it.call(agent, "DELETE", `/v1/agents/${agent.id}`); // a client that came in between has brought it back
  }
}

describe.each(WORLDS)("%s", (kind, open) => {
  const ROTATIONS = FULL ? 1_000 : kind === "sqlite" ? 150 : 25;

  test(`${ROTATIONS} rotations under ${CLIENTS} clients: no current key is refused, no old one is taken`, async () => {
    await using it = await openFleet(open);
    let current = await it.register("rotating");
    let epoch = 0; // odd while a rotation is under way
    const keys = [current.key];
    const wrong: string[] = [];
    let [served, over] = [0, false];
    const client = async () => {
      while (!over) {
        const [used, before] = [current, epoch];
        const { status } = await it.call(used, "GET", "/v1/agents");
        if (status === 200) served++;
        else if (before % 2 === 0 && epoch === before) wrong.push(`a current key was refused with ${status} in epoch ${before}`);
        await new Promise<void>((turn) => setImmediate(turn));
      }
    };
    const clients = range(CLIENTS).map(client);
    let refusals = 0;
    for (const _ of range(ROTATIONS)) {
      epoch++;
      const old = current;
      current = await rotate(it, old);
      epoch++;
      keys.push(current.key);
      const [dead, alive] = await Promise.all([it.call(old, "GET", "/v1/agents"), it.call(current, "GET", "/v1/agents")]);
      if (dead.status === 401 || dead.status === 429)
        refusals++; // 429: so many failures look like guessing
      else wrong.push(`an old key was answered ${dead.status}`);
      if (alive.status !== 200) wrong.push(`a new key was answered ${alive.status}`);
    }
    over = true;
    await Promise.all(clients);
    expect(wrong).toEqual([]);
    expect([refusals, new Set(keys).size]).toEqual([ROTATIONS, ROTATIONS + 1]);
    expect(served).toBeGreaterThan(ROTATIONS);
    it.clock.now += 60_000;
    for (const key of keys.slice(0, 3)) expect((await it.call({ id: current.id, key }, "GET", "/v1/agents")).status).toBe(401);
    expect(JSON.stringify(it.logged)).not.toContain("kxa_");
    if (kind === "sqlite") expectNowhere(dirname(it.world.location), keys);
  }, 120_000);

  test("streams of an old key end within a second, those of the new one stay", async () => {
    await using it = await openFleet(open);
    let current = await it.register("streaming");
    for (const _ of range(FULL ? 50 : 5)) {
      const streams = await Promise.all(range(3).map(() => openStream(it, current)));
      for (const stream of streams) expect((await stream.next())!.event).toBe("ready");
      current = await rotate(it, current);
      const started = performance.now();
      await Promise.all(streams.map((stream) => stream.ended));
      expect(performance.now() - started).toBeLessThan(END_MS_MAX);
      await using fresh = await openStream(it, current);
      expect((await fresh.next())!.event).toBe("ready");
      await it.call(current, "GET", "/v1/agents");
      await it.register(`newcomer-${current.key.slice(-6)}`);
      expect((await fresh.nextOf("presence")).event).toBe("presence"); // still open
    }
  }, 60_000);
});

test("the search for keys finds one that is there", () => {
  const folder = new URL(".", import.meta.url).pathname;
  expect(() => expectNowhere(folder, ["the search for keys finds one that is there"])).toThrow();
});

/** No file of a folder holds one of these texts. */
function expectNowhere(folder: string, texts: readonly string[]) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(files.length).toBeGreaterThan(0);
  for (const { parentPath, name } of files) {
    const bytes = readFileSync(join(parentPath, name));
    for (const text of texts) if (bytes.includes(text)) throw new Error(`${name} holds a key`);
  }
}

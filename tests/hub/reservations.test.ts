// Reserved paths, on both engines: one lease per pattern, and never two agents with patterns that can match one path.
import { describe, expect, test } from "bun:test";
import * as leases from "../../src/hub/leases.ts";
import * as reservations from "../../src/hub/reservations.ts";
import { RESERVATIONS_MAX } from "../../src/protocol/limits.ts";
import { WORLDS } from "../support/engines.ts";
import { openFleet } from "../support/fleet.ts";

const TTL = { ttlMs: 60_000 };
const code = (error: unknown) => (error as { code?: string }).code;

describe.each(WORLDS)("%s:", (_, open) => {
  test("an overlap is refused with its holder, what is free is granted in the same call, and one's own is extended", async () => {
    await using it = await openFleet(open);
    const [ann, bob] = [await it.agent("ann"), await it.agent("bob")];
    const first = await reservations.reserve(it.hub, ann, { patterns: ["src/**", "README.md"], ...TTL });
    expect(first.granted.map(({ lease }) => [lease.name, lease.fence])).toEqual([
      ["file:src/**", 1],
      ["file:README.md", 1],
    ]);
    const second = await reservations.reserve(it.hub, bob, { patterns: ["./src/app.ts", "docs/*.md"], ...TTL });
    expect(second.granted.map(({ pattern }) => pattern)).toEqual(["docs/*.md"]);
    expect(second.conflicts.map(({ pattern, holders }) => [pattern, holders.map(({ holderName, name }) => `${holderName} ${name}`)])).toEqual([
      ["src/app.ts", ["ann file:src/**"]],
    ]);
    it.clock.now += 30_000;
    const again = await reservations.reserve(it.hub, ann, { patterns: ["src/**", "src/app.ts"], ...TTL });
    expect(again.granted.map(({ lease }) => lease.expiresAt)).toEqual([it.clock.now + 60_000, it.clock.now + 60_000]);
    expect(again.granted[0]!.lease.fence).toBe(1);
  });

  test("of many who ask for overlapping patterns at once, one gets them", async () => {
    await using it = await openFleet(open);
    const all = await Promise.all(Array.from({ length: 8 }, (_, n) => it.agent(`a${n}`)));
    const patterns = ["src/**", "src/app.ts", "src/*.ts", "src", "**/app.ts", "{src,lib}/app.ts", "src/a*", "*.ts"];
    const outcomes = await Promise.all(all.map((agent, n) => reservations.reserve(it.hub, agent, { patterns: [patterns[n]!], ...TTL })));
    expect(outcomes.filter(({ granted }) => granted.length === 1)).toHaveLength(1);
  });

  test("what was given back or lapsed is free, with a higher fence; plain leases of files count", async () => {
    await using it = await openFleet(open);
    const [ann, bob] = [await it.agent("ann"), await it.agent("bob")];
    await reservations.reserve(it.hub, ann, { patterns: ["a.x", "b.x", "c.x"], ...TTL });
    expect(await reservations.release(it.hub, ann, ["./b.x", "other.x"])).toEqual(["b.x"]);
    const get = async () => (await reservations.reserve(it.hub, bob, { patterns: ["{a,b}.x"], ...TTL })).granted.length;
    expect(await get()).toBe(0);
    expect(await reservations.release(it.hub, ann)).toEqual(["a.x", "c.x"]);
    expect(await get()).toBe(1);
    it.clock.now += 60_001; // nobody has swept
    expect((await reservations.reserve(it.hub, ann, { patterns: ["b.x"], ...TTL })).granted[0]!.lease.fence).toBe(2);
    await leases.acquire(it.hub, bob, { name: "file:src/app.ts", ttlMs: 60_000, waitMs: 0 });
    await leases.acquire(it.hub, bob, { name: "file:{odd", ttlMs: 60_000, waitMs: 0 });
    await leases.acquire(it.hub, bob, { name: "branch:src", ttlMs: 60_000, waitMs: 0 });
    expect((await reservations.reserve(it.hub, ann, { patterns: ["src/**"], ...TTL })).conflicts).toHaveLength(1);
  });

  test("another project's reservations are not in the way", async () => {
    await using it = await openFleet(open);
    const [ann, eve] = [await it.agent("ann"), await it.agent("eve", "q")];
    await reservations.reserve(it.hub, ann, { patterns: ["**"], ...TTL });
    expect((await reservations.reserve(it.hub, eve, { patterns: ["**"], ...TTL })).granted).toHaveLength(1);
  });
});

describe.each(WORLDS.slice(0, 1))("%s:", (_, open) => {
  test("a project has a limit, and a call that goes beyond it changes nothing", async () => {
    await using it = await openFleet(open);
    const [ann, bob] = [await it.agent("ann"), await it.agent("bob")];
    for (let n = 0; n < RESERVATIONS_MAX - 1; n++) await reservations.reserve(it.hub, ann, { patterns: [`f${n}.x`], ...TTL });
    expect(await reservations.reserve(it.hub, bob, { patterns: ["y.x", "z.x"], ...TTL }).catch(code)).toBe("protocol_error");
    expect((await reservations.reserve(it.hub, bob, { patterns: ["y.x"], ...TTL })).granted).toHaveLength(1);
    expect((await reservations.reserve(it.hub, ann, { patterns: ["f0.x"], ...TTL })).granted).toHaveLength(1); // an extension is no new one
    expect(await reservations.reserve(it.hub, ann, { patterns: ["../up"], ...TTL }).catch(code)).toBe("protocol_error");
  });
});

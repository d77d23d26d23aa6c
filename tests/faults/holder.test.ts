// R11: one process per data file, however many start at once; the others are told who it is; a killed one is replaced at once.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { readHolder } from "../../src/db/holder.ts";
import { openEngine } from "../../src/db/open.ts";
import { newId } from "../../src/protocol/ids.ts";
import { attempt, range } from "../support/engines.ts";
import { temporaryFolder } from "../support/folders.ts";
import { FULL, lateness, startStore } from "./store-client.ts";

const ROUNDS = FULL ? 100 : 6;

describe("R11: several hubs on one file", () => {
  for (const count of [2, 5, 10]) {
    test(`of ${count} that start at once one serves, the others name it within 2 s, and after kill -9 the next serves within 2 s`, async () => {
      using folder = temporaryFolder();
      for (let round = 0; round < ROUNDS; round++) {
        const path = `${folder.path}/${round % 2 ? "known" : `new-${round}`}/kxm.db`; // made by the race itself, and already there
        const began = performance.now();
        const starts = await Promise.all(range(count).map((n) => attempt(startStore({ path, address: `http://127.0.0.1:${7400 + n}` }))));
        expect(performance.now() - began).toBeLessThan((2_000 + count * 150) * lateness()); // a few cores start ten processes one after another
        const serving = starts.flatMap(({ value }) => (value ? [value] : []));
        expect(serving.length).toBe(1);
        const refusals = starts.flatMap(({ error }) => (error ? [error.message] : []));
        for (const said of refusals) expect(said).toContain(`${path} is in use by process ${serving[0]!.pid} on `);
        expect((await serving[0]!.call({ op: "send", key: `${round}` }))?.seq).toBeGreaterThan(0);

        serving[0]!.kill();
        await serving[0]!.exited; // until then it may hold its lock
        const killed = performance.now();
        const next = await startStore({ path });
        expect(performance.now() - killed).toBeLessThan(2_000 * lateness());
        expect(await next.end()).toBe(0);
      }
    }, 300_000);
  }

  test("the refusal names the address once the hub has one, and the hub's own process is refused, too", async () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/kxm.db`;
    const options = { path, clock: Date.now, newId };
    const engine = await openEngine(options);
    engine.announce("http://127.0.0.1:7331");
    expect((await attempt(openEngine(options))).error?.message).toContain(`process ${process.pid} on `);
    expect(readHolder(path)).toMatchObject({ pid: process.pid, address: "http://127.0.0.1:7331" });
    expect((await attempt(startStore({ path }))).error?.message).toContain("serving http://127.0.0.1:7331");
    await engine.write("p", (tx) => tx.meta.put("still", "locked")); // looking did not drop the lock
    expect((await attempt(startStore({ path }))).error?.message).toContain("serving http://127.0.0.1:7331");
    await engine.close();
    expect(readHolder(path)).toBeUndefined();
    await (await openEngine(options)).close();
  });

  test("while a hub serves, other programs can read the data file", async () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/kxm.db`;
    const store = await startStore({ path });
    await store.call({ op: "send", key: "1" });
    using database = new Database(path, { readonly: true });
    expect(database.query("select count(*) as n from messages").get()).toEqual({ n: 1 });
    expect(await store.end()).toBe(0);
  });

  test("without the lock two hubs would serve one file: removing it shows that it is what keeps them apart", async () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/kxm.db`;
    const first = await startStore({ path });
    rmSync(`${path}-lock`);
    rmSync(`${path}-holder`);
    const second = await startStore({ path });
    await Promise.all([first.end(), second.end()]);
  });
});

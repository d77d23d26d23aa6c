// R8 and R35: the write-ahead log. Torn or flipped, what is left of it is a prefix of what was committed; pinned by a reader, it comes down by itself.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { type OpenOptions, openEngine } from "../../src/db/open.ts";
import { newId } from "../../src/protocol/ids.ts";
import { WAL_BYTES_MAX } from "../../src/protocol/limits.ts";
import { range } from "../support/engines.ts";
import { temporaryFolder } from "../support/folders.ts";
import { syncEventRow, testedEvent } from "../support/rows.ts";
import { FULL } from "./store-client.ts";

const options = { clock: Date.now, newId };

describe("R8: a damaged log", () => {
  const COMMITS = 120;

  /** Files of a store that was killed with every commit still in its log. */
  async function crashed(folder: string) {
    const path = `${folder}/live/kxm.db`;
    const engine = await openEngine({ path, ...options });
    for (const n of range(COMMITS)) await engine.write("p", async (tx) => tx.append(testedEvent("p", n)));
    const files = Object.fromEntries(["", "-wal", "-holder"].map((suffix) => [suffix, readFileSync(path + suffix)]));
    await engine.close();
    const { log } = JSON.parse(files["-holder"]!.toString());
    return { ...files, "-holder": Buffer.from(JSON.stringify({ log })) };
  }

  test("opens whatever happened to its log, with a prefix of the commits", async () => {
    using folder = temporaryFolder();
    const files = await crashed(folder.path);
    const wal = (files as Record<string, Buffer>)["-wal"]!;
    const path = `${folder.path}/torn/kxm.db`;
    mkdirSync(`${folder.path}/torn`, { mode: 0o700 });
    const rounds = FULL ? 1_000 : 150;
    const lengths = new Set<number>();
    for (const round of range(rounds)) {
      for (const [suffix, bytes] of Object.entries(files)) writeFileSync(path + suffix, bytes, { mode: 0o600 });
      rmSync(`${path}-shm`, { force: true });
      const at = Math.floor(Math.random() * wal.length);
      if (round % 2) truncateSync(`${path}-wal`, at);
      else {
        const flipped = Buffer.from(wal);
        flipped[at]! ^= 1 << Math.floor(Math.random() * 8);
        writeFileSync(`${path}-wal`, flipped);
      }
      const engine = await openEngine({ path, ...options });
      const events = await engine.read.events.after("p", 0, 1_000);
      expect(events.map(({ seq, subjectId }) => `${seq} ${subjectId}`)).toEqual(range(events.length).map((n) => `${n + 1} s${n}`));
      expect(await engine.read.events.lastSeq("p")).toBe(events.length);
      lengths.add(events.length);
      await engine.write("p", async (tx) => tx.append(testedEvent("p"))); // and goes on from there
      await engine.close();
    }
    expect(lengths.size).toBeGreaterThan(20);
  }, 120_000);

  test("a log whose first pages are lost is not mistaken for a whole one", async () => {
    using folder = temporaryFolder();
    const files = (await crashed(folder.path)) as Record<string, Buffer>;
    const path = `${folder.path}/torn/kxm.db`;
    mkdirSync(`${folder.path}/torn`, { mode: 0o700 });
    for (const [suffix, bytes] of Object.entries(files)) writeFileSync(path + suffix, bytes, { mode: 0o600 });
    const wal = files["-wal"]!;
    writeFileSync(`${path}-wal`, Buffer.concat([wal.subarray(0, 32), wal.subarray(32 + 4120 * 2)])); // two frames cut out of the middle
    const engine = await openEngine({ path, ...options });
    expect(await engine.read.events.lastSeq("p")).toBe(0);
    await engine.close();
  });
});

describe("R35: a reader that keeps the log from starting over", () => {
  const MEGABYTE = "x".repeat(100_000);
  /** Writes about 80 MB while an outside reader holds an old snapshot; sizes of the log before and after it lets go. */
  async function pinned(more: Partial<OpenOptions> = {}) {
    using folder = temporaryFolder();
    const path = `${folder.path}/kxm.db`;
    const engine = await openEngine({ path, ...options, ...more });
    const put = (n: number) => engine.write("p", (tx) => tx.sync.insertEvents([syncEventRow("p", "run", n, MEGABYTE)]));
    await put(0);
    const reader = new Database(path, { readonly: true });
    reader.exec("begin");
    reader.query("select count(*) from sync_events").get();
    for (let n = 1; n < 800; n += 8) await Promise.all(range(8).map((i) => put(n + i)));
    const health = await engine.health(); // may write a row of its own
    const during = statSync(`${path}-wal`).size;
    reader.exec("commit");
    reader.close(true);
    const released = performance.now();
    while (statSync(`${path}-wal`).size > WAL_BYTES_MAX && performance.now() - released < 10_000) await Bun.sleep(50); // nobody writes any more
    const after = statSync(`${path}-wal`).size;
    await engine.close();
    return { during, after, health };
  }

  test("health tells its size, and it shrinks within 10 s of the reader's end without a write or a restart", async () => {
    const { during, after, health } = await pinned();
    expect(during).toBeGreaterThan(WAL_BYTES_MAX);
    expect(health.walBytes).toBe(during);
    expect(health.ok).toBe(true); // it is large, not broken
    expect(after).toBeLessThanOrEqual(WAL_BYTES_MAX);
  }, 60_000);

  test.skipIf(!FULL)(
    "without the watch it stays as large as it grew",
    async () => {
      const { during, after } = await pinned({ walMax: Number.POSITIVE_INFINITY });
      expect(after).toBe(during);
    },
    60_000,
  );
});

// A disk that is full, reports errors, or loses its file: refused writes say so, acknowledged ones stay, and the lane comes back by itself.
import { describe, expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import type { Engine } from "../../src/db/engine.ts";
import { openEngine } from "../../src/db/open.ts";
import { newId } from "../../src/protocol/ids.ts";
import { attempt, range } from "../support/engines.ts";
import { temporaryFolder } from "../support/folders.ts";
import { leaseRow } from "../support/rows.ts";
import { check, NOTHING_WRONG, nothingYet } from "./store-checks.ts";
import { readLines, STORE_PROCESS } from "./store-client.ts";
import type { AnswerLine, Setup } from "./store-process.ts";

const isRoot = process.geteuid?.() === 0;
const STRACE = Bun.which("strace");
const reasonOf = (error: unknown) => (error as { reason?: string } | undefined)?.reason;

/** Closed at the end of its scope, before the disk under it goes. */
const closing = (engine: Engine): Engine & AsyncDisposable => ({ ...engine, [Symbol.asyncDispose]: () => engine.close() });

function freeBytes(path: string): number {
  const { bsize, bavail } = statfsSync(path);
  return bsize * bavail;
}

describe("a full disk", () => {
  /** A small disk of its own. */
  function smallDisk(folder: string, megabytes: number): Disposable & { path: string } {
    const path = `${folder}/small`;
    mkdirSync(path);
    const run = (...command: string[]) => {
      const { exitCode, stderr } = Bun.spawnSync(command);
      if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr}`);
    };
    run("mount", "-t", "tmpfs", "-o", `size=${megabytes}m,mode=700`, "tmpfs", path);
    return { path, [Symbol.dispose]: () => run("umount", path) };
  }

  test.skipIf(!isRoot)("refuses what does not fit as unknown, keeps what it acknowledged, and goes on when there is room", async () => {
    using folder = temporaryFolder();
    using disk = smallDisk(folder.path, 4);
    writeFileSync(`${disk.path}/ballast`, Buffer.alloc(1_500_000, 1));
    const log: string[] = [];
    await using engine = closing(
      await openEngine({ path: `${disk.path}/state/kxm.db`, clock: Date.now, newId, log: (what, { reason }) => log.push(`${what} ${reason}`) }),
    );
    const big = "x".repeat(100_000);
    const put = (n: number) => attempt(engine.write("p", (tx) => tx.meta.put(`big ${n}`, big)));
    const acked: number[] = [];
    const reasons = new Set<string | undefined>();
    for (let n = 0; n < 60; n += 3) {
      const answers = await Promise.all([n, n + 1, n + 2].map(put));
      answers.forEach(({ error }, i) => (error ? reasons.add(reasonOf(error)) : acked.push(n + i)));
    }
    expect([...reasons]).toEqual(["disk_full"]);
    writeFileSync(`${disk.path}/more`, Buffer.alloc(freeBytes(disk.path), 1));
    const small = () => attempt(engine.write("p", (tx) => tx.meta.put("small", newId("req"))));
    while (!(await small()).error); // what the log still had room for
    expect(await engine.health()).toMatchObject({ ok: false, reason: "disk_full" });
    const stored = await Promise.all(range(60).map((n) => engine.read.meta.find(`big ${n}`)));
    expect(stored.flatMap((value, n) => (value === big ? [n] : []))).toEqual(acked);

    rmSync(`${disk.path}/ballast`);
    rmSync(`${disk.path}/more`);
    const freed = performance.now();
    expect((await put(1_000)).error).toBeUndefined();
    expect(performance.now() - freed).toBeLessThan(5_000);
    expect((await engine.health()).ok).toBe(true);
    // Lines for changes, not for each of dozens of refusals. A small write that still fits is a change, too.
    expect(new Set(log)).toEqual(new Set(["store_degraded disk_full", "store_recovered disk_full"]));
    expect(log.at(-1)).toBe("store_recovered disk_full");
    expect(log.length).toBeLessThan(10);
  });

  test.skipIf(!isRoot)("a store that cannot be made for want of room leaves nothing behind", async () => {
    using folder = temporaryFolder();
    using disk = smallDisk(folder.path, 1);
    writeFileSync(`${disk.path}/ballast`, Buffer.alloc(1_000_000, 1));
    const { code, error } = await attempt(openEngine({ path: `${disk.path}/kxm.db`, clock: Date.now, newId }));
    expect(code).toBe("store_disk");
    expect(error?.message).toContain(`${disk.path}/kxm.db`);
    expect([...new Bun.Glob("*.db*").scanSync(disk.path)].filter((name) => !/-(lock|holder)$/.test(name))).toEqual([]);
  });
});

if (!isRoot) test.skip("a full disk: needs root, to mount a small one", () => {});

describe("a data file that goes away", () => {
  async function opened() {
    const folder = temporaryFolder();
    const path = `${folder.path}/kxm.db`;
    const engine = await openEngine({ path, clock: Date.now, newId });
    const put = (name: string) => attempt(engine.write("p", (tx) => tx.leases.insert(leaseRow(name))));
    return {
      engine,
      path,
      put,
      async [Symbol.asyncDispose]() {
        await engine.close();
        folder[Symbol.dispose]();
      },
    };
  }

  test("after it was removed no write is acknowledged", async () => {
    await using it = await opened();
    expect((await it.put("a")).error).toBeUndefined();
    rmSync(it.path);
    expect(reasonOf((await it.put("b")).error)).toBe("file_gone");
    expect((await it.engine.health()).message).toContain("moved or removed");
    expect((await it.put("c")).error).toBeDefined();
    expect((await it.engine.read.leases.find("a"))?.resource).toBe("a"); // reads go on
  });

  test("after its log was removed no write is acknowledged", async () => {
    await using it = await opened();
    await it.put("a");
    rmSync(`${it.path}-wal`);
    expect(reasonOf((await it.put("b")).error)).toBe("file_gone");
  });

  test("after it was put back writes go on with everything that was acknowledged", async () => {
    await using it = await opened();
    await it.put("a");
    renameSync(it.path, `${it.path}.away`);
    expect((await it.put("b")).error).toBeDefined();
    renameSync(`${it.path}.away`, it.path);
    await succeeds(it.engine, "c");
    expect((await it.engine.read.leases.find("a"))?.resource).toBe("a");
    expect((await it.engine.health()).ok).toBe(true);
  });

  /** Reopening is tried a few times a second. */
  async function succeeds(engine: Engine, name: string) {
    for (let n = 0; n < 100; n++) {
      if (!(await attempt(engine.write("p", (tx) => tx.leases.insert(leaseRow(name))))).error) return;
      await Bun.sleep(20);
    }
    throw new Error("the lane did not come back");
  }
});

describe("R5: a disk that reports errors", () => {
  /** One run of 60 calls with failing system calls; what was acknowledged and what was refused. */
  async function withErrors(path: string, injection: string) {
    const setup: Setup = { path, count: 60, pauseMs: 40 };
    const command = [STRACE!, "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64,fsync,fdatasync", "-e", `inject=${injection}`];
    const child = Bun.spawn([...command, process.execPath, STORE_PROCESS, JSON.stringify(setup)], { stdout: "pipe", stderr: "pipe" });
    const told = nothingYet();
    const errors: string[] = [];
    let calls = 0;
    await readLines(child, (line: AnswerLine) => {
      if (line.n !== undefined) calls++;
      if (line.error) errors.push(line.error);
      if (line.seq !== undefined) told.sends.set(`key-${line.n}`, line.seq);
      if (line.fence !== undefined) told.fences.set(`key-${line.n}`, line.fence);
    });
    await child.exited;
    return { told, errors, calls };
  }

  const faults = {
    "a sync that fails once": "fsync:error=EIO:when=25",
    "syncs that fail for a while": "fsync:error=EIO:when=25..28",
    "writes that fail": "pwrite64:error=EIO:when=300..303",
  };
  for (const [what, injection] of Object.entries(faults)) {
    test.skipIf(!STRACE)(
      `${what}: refused calls say so, acknowledged ones stay, the lane comes back`,
      async () => {
        using folder = temporaryFolder();
        const path = `${folder.path}/kxm.db`;
        const { told, errors, calls } = await withErrors(path, injection);
        expect(calls).toBe(60);
        expect(errors.length).toBeGreaterThan(0);
        for (const error of errors) expect(["io_error", "degraded"]).toContain(error);
        expect(errors.length).toBeLessThan(30);
        // A refused call may be there all the same: its outcome was unknown.
        expect({ ...(await check(path, told)), gaps: 0 }).toEqual(NOTHING_WRONG);
        expect(range(10).some((n) => told.sends.has(`key-${50 + n}`))).toBe(true);
      },
      60_000,
    );
  }

  test.skipIf(!STRACE)(
    "a disk that never syncs again acknowledges nothing more",
    async () => {
      using folder = temporaryFolder();
      const path = `${folder.path}/kxm.db`;
      const { told, errors, calls } = await withErrors(path, "fsync:error=EIO:when=25+");
      expect(calls).toBe(60);
      expect(told.sends.size + told.fences.size + errors.length).toBeLessThanOrEqual(60);
      expect(errors.length).toBeGreaterThan(30);
      expect((await check(path, told)).lost).toBe(0);
    },
    60_000,
  );
});

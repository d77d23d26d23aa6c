// R1, R2 and R3: nothing that was acknowledged is lost, and nothing is half there, wherever the process dies.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { range } from "../support/engines.ts";
import { temporaryFolder } from "../support/folders.ts";
import { check, NOTHING_WRONG, nothingYet, stateHash } from "./store-checks.ts";
import { FULL, lateness, readLines, STORE_PROCESS, type StoreProcess, startStore } from "./store-client.ts";
import type { AnswerLine, Mutant, Setup } from "./store-process.ts";

const STRACE = Bun.which("strace");
const CLIENTS = 16;
const LONG_MS = FULL ? 3_600_000 : 240_000;

/** Kills the process at random moments under load, and starts it again on the same file; calls without an answer are made again. */
async function killAtRandom(path: string, kills: number, mutant?: Mutant) {
  const told = nothingYet();
  const readyMs: number[] = [];
  const start = async () => {
    const began = performance.now();
    const started = await startStore({ path, ...(mutant && { mutant }) });
    readyMs.push(performance.now() - began);
    return started;
  };
  let store: StoreProcess = await start();
  let restarted = Promise.withResolvers<void>();
  let stop = false;
  const clients = range(CLIENTS).map(async (client) => {
    for (let n = 0; !stop; n++) {
      const line = { op: n % 4 === 3 ? ("lease" as const) : ("send" as const), key: `${client}-${n}` };
      for (let answer: AnswerLine | undefined; !stop && answer === undefined; ) {
        answer = await store.call(line);
        if (answer === undefined) await restarted.promise;
        else if (line.op === "send") told.sends.set(line.key, answer.seq!);
        else if (answer.fence !== undefined) told.fences.set(line.key, answer.fence);
      }
    }
  });
  for (let kill = 0; kill < kills; kill++) {
    await Bun.sleep(20 + Math.random() * 150); // the fault itself: a moment nobody chose
    store.kill();
    await store.exited;
    store = await start();
    restarted.resolve();
    restarted = Promise.withResolvers();
  }
  stop = true;
  store.kill();
  await store.exited;
  restarted.resolve();
  await Promise.all(clients);
  return { told, readyMs: readyMs.toSorted((a, b) => a - b) };
}

describe("R1: kill -9 at random under 16 clients", () => {
  const kills = FULL ? 500 : 20;
  test(
    `after ${kills} kills everything acknowledged is there once`,
    async () => {
      using folder = temporaryFolder();
      const path = `${folder.path}/kxm.db`;
      const { told, readyMs } = await killAtRandom(path, kills);
      expect(told.sends.size).toBeGreaterThan(kills * 10);
      expect(told.fences.size).toBeGreaterThan(kills);
      expect(await check(path, told)).toEqual(NOTHING_WRONG);
      expect(readyMs[Math.ceil(readyMs.length * 0.99) - 1]!).toBeLessThan(1_000 * lateness());
    },
    LONG_MS,
  );

  test("the checker sees a store that answers before it has written", async () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/kxm.db`;
    const { told } = await killAtRandom(path, 5, "early-ack");
    expect((await check(path, told)).lost).toBeGreaterThan(0);
  }, 60_000);
});

/** One run of the script under strace; the ops it acknowledged. */
async function traced(setup: Setup, strace: string[]) {
  const child = Bun.spawn([STRACE!, "-f", "-qq", ...strace, process.execPath, STORE_PROCESS, JSON.stringify(setup)], {
    stdout: "pipe",
    stderr: "ignore",
  });
  const told = { ...nothingYet(), calls: 0 };
  await readLines(child, (line: AnswerLine) => {
    if (line.n !== undefined) told.calls++;
    if (line.seq !== undefined) told.sends.set(`key-${line.n}`, line.seq);
    if (line.fence !== undefined) told.fences.set(`key-${line.n}`, line.fence);
  });
  await child.exited;
  return told;
}

const SYSCALLS = "pwrite64,fsync,ftruncate,rename";

describe("R2: killed at every write, sync, truncation and rename of a script", () => {
  const COUNT = 60;

  /** Runs the script once for each chosen point, with a kill there, and once more to its end. */
  async function sweep(folder: string, points: number, mutant?: Mutant) {
    const setup = (path: string): Setup => ({ path, count: COUNT, deterministic: true, ...(mutant && { mutant }) });
    const whole = `${folder}/whole/kxm.db`;
    await traced(setup(whole), ["-o", `${folder}/trace`, "-e", `trace=${SYSCALLS}`]);
    const wanted = stateHash(whole);
    const chosen = choose(readFileSync(`${folder}/trace`, "utf8"), points);
    const found = { points: chosen.length, killed: 0, failures: [] as unknown[] };
    const worker = async () => {
      for (let point = chosen.shift(); point && !(mutant && found.failures.length > 0); point = chosen.shift()) {
        const path = `${folder}/${point.call}-${point.when}/kxm.db`;
        const told = await traced(setup(path), [
          "-o",
          "/dev/null",
          "-e",
          `trace=${SYSCALLS}`,
          "-e",
          `inject=${point.call}:signal=KILL:when=${point.when}`,
        ]);
        if (told.calls < COUNT) found.killed++;
        const after = existsSync(path) ? await check(path, told) : { ...NOTHING_WRONG, lost: told.sends.size };
        const again = Bun.spawn([process.execPath, STORE_PROCESS, JSON.stringify(setup(path))], { stdout: "ignore", stderr: "pipe" });
        const said = (await again.exited) === 0 ? "" : await new Response(again.stderr).text();
        const same = said === "" && stateHash(path) === wanted;
        if (!Bun.deepEquals(after, NOTHING_WRONG) || !same) found.failures.push({ point, after, same, said });
        rmSync(dirname(path), { recursive: true, force: true });
      }
    };
    await Promise.all([worker(), worker()]);
    return found;
  }

  /** All points, or every n-th write and sync and all of the rare ones. */
  function choose(trace: string, wanted: number) {
    const hits = Object.entries(Object.groupBy(trace.matchAll(/ (\w+)\(/g), ([, call]) => call!));
    const points = hits.flatMap(([call, of]) => range(of!.length).map((n) => ({ call, when: n + 1 })));
    expect(points.length).toBeGreaterThan(300);
    const stride = Math.max(1, Math.floor(points.length / wanted));
    return points.filter(({ call, when }, index) => index % stride === 0 || (call !== "pwrite64" && call !== "fsync") || when === 1);
  }

  test.skipIf(!STRACE)(
    "each point leaves a sound store, and running the script again ends in the same state",
    async () => {
      using folder = temporaryFolder();
      const { points, killed, failures } = await sweep(folder.path, FULL ? Number.POSITIVE_INFINITY : 60);
      expect(failures).toEqual([]);
      expect(killed).toBeGreaterThan(points * 0.9);
    },
    LONG_MS,
  );

  test.skipIf(!STRACE)(
    "the sweep sees a store that writes a change and its event apart",
    async () => {
      using folder = temporaryFolder();
      const { failures } = await sweep(folder.path, 20, "split-call");
      expect(failures.length).toBeGreaterThan(0);
    },
    120_000,
  );
});

describe("R3: the disk has it before the caller knows", () => {
  /** How many answers came without a sync of the log after its last write. */
  async function unsynced(mutant?: Mutant) {
    using folder = temporaryFolder();
    const trace = `${folder.path}/trace`;
    const count = FULL ? 1_000 : 200;
    await traced({ path: `${folder.path}/kxm.db`, count, ...(mutant && { mutant }) }, [
      "-y",
      "-o",
      trace,
      "-e",
      "trace=pwrite64,fsync,fdatasync,write",
    ]);
    let answers = 0;
    let early = 0;
    let dirty = false;
    for (const line of readFileSync(trace, "utf8").split("\n")) {
      if (/pwrite64\(\d+<[^>]*kxm\.db-wal>/.test(line)) dirty = true;
      if (/f(data)?sync\(\d+<[^>]*kxm\.db-wal>\) += 0/.test(line)) dirty = false;
      if (!/ write\(1<.*\\"n\\":\d+/.test(line)) continue;
      answers++;
      if (dirty) early++;
    }
    return { answers, early, count };
  }

  test.skipIf(!STRACE)(
    "every answer follows a sync of the log",
    async () => {
      const { answers, early, count } = await unsynced();
      expect({ answers, early }).toEqual({ answers: count, early: 0 });
    },
    120_000,
  );

  test.skipIf(!STRACE)(
    "the trace sees a store that does not sync",
    async () => {
      const { answers, early } = await unsynced("no-fsync");
      expect(early / answers).toBeGreaterThan(0.95);
    },
    120_000,
  );
});

if (!STRACE) test.skip("R2, R3: install strace (apt-get install strace) to run them", () => {});

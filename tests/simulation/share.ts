// The seeds that every test run plays, 500 of them (continuous integration adds those up to 2,000), in equal shares: each is a test file of its own, so
// that they fill every worker and none has all of them.
import { describe, expect, test } from "bun:test";
import { cpus } from "node:os";
import { join } from "node:path";
import type { Line } from "./seeds.ts";

/** As many as there are test files that play one. */
export const SHARES = 4;
const FULL = process.env["KXM_FAULTS"] === "full";
/** How long 2,000 seeds may take on two cores that do nothing else; what the machine does beside them does not count. */
const MS_MAX = 180_000;
const SEEDS_OF_MS_MAX = 2_000;
const CORES = 2;
/** A seed takes a twentieth of a second. One that takes this long does not end. */
const STUCK_MS = 120_000;
const HOURS_MS = 4 * 3_600_000;

/** Seeds from..to: `KXM_TEST_SEEDS=5000` are the first 5,000, `KXM_TEST_SEEDS=5001-9000` others. */
export function chosenSeeds(text = process.env["KXM_TEST_SEEDS"] ?? (FULL ? "10000" : "500")): { from: number; to: number } {
  const [, from = "1", to] = /^(?:(\d+)-)?(\d+)$/.exec(text) ?? [];
  if (to === undefined || Number(from) < 1 || Number(to) < Number(from)) throw new Error(`KXM_TEST_SEEDS is ${text}: neither a number nor from-to`);
  return { from: Number(from), to: Number(to) };
}

/** How to see one seed again, with everything that happened in it. */
export const replay = (seed: number, path = "tests/simulation/runtime"): string => `KXM_TEST_SEED=${seed} npm test -- ${path}`;

/** The seeds of one share. @param share 1..SHARES */
export function shareOf(share: number, { from, to } = chosenSeeds()): { first: number; last: number } {
  const before = (shares: number) => from + Math.floor(((to - from + 1) * shares) / SHARES);
  return { first: before(share - 1), last: before(share) - 1 };
}

/** Makes the test that plays one share. @param share 1..SHARES */
export function playShare(share: number) {
  const { first, last } = shareOf(share);
  describe.if(process.env["KXM_TEST_SEED"] === undefined)("R17: Runtimes and a hub in simulated time", () => {
    test(
      `seeds ${first} to ${last}: no effect twice, every event at the hub once and in order, fences only rise, and everything ends`,
      async () => {
        console.log(`R17: plays seeds ${first} to ${last}`);
        const began = performance.now();
        const { wrong, played, cpuMs } = await playAll(first, last, FULL ? Math.min(CORES, cpus().length) : 1);
        const ms = Math.round(performance.now() - began);
        console.log(`R17: ${played} seeds in ${ms} ms, ${Math.round(cpuMs)} ms of processor`);
        expect(wrong).toEqual([]);
        expect(played).toBe(last - first + 1);
        if (FULL) expect(cpuMs / CORES).toBeLessThan((MS_MAX / SEEDS_OF_MS_MAX) * Math.max(played, 100));
      },
      HOURS_MS,
    );
  });
}

type Outcome = { wrong: string[]; played: number; cpuMs: number };

/**
 * Plays seeds in processes beside each other; answers what went wrong with how to see it again, how many were played, and the processor time of it.
 * @param beside 1 while another worker has the other core
 */
export async function playAll(first: number, last: number, beside: number, program = join(import.meta.dir, "seeds.ts")): Promise<Outcome> {
  const outcomes = await Promise.all(Array.from({ length: beside }, (_, index) => playSome([program, ...[first + index, beside, last].map(String)])));
  return {
    wrong: outcomes.flatMap(({ wrong }) => wrong),
    played: outcomes.reduce((sum, { played }) => sum + played, 0),
    cpuMs: outcomes.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
  };
}

async function playSome(argv: string[]): Promise<Outcome> {
  const child = Bun.spawn([process.execPath, ...argv], { stdout: "pipe", stderr: "inherit" });
  const wrong: string[] = [];
  const say = (seed: number, what: string) => wrong.push(`seed ${seed}: ${what} (again: ${replay(seed)})`);
  let playing: number | undefined;
  let played = 0;
  const isStuck = () => {
    say(playing!, `did not end in ${STUCK_MS} ms`);
    playing = undefined;
    child.kill("SIGKILL");
  };
  let watch = setTimeout(isStuck, STUCK_MS);
  for await (const text of linesOf(child.stdout)) {
    clearTimeout(watch);
    watch = setTimeout(isStuck, STUCK_MS);
    const line: Line = JSON.parse(text);
    if (line.wrong) say(line.wrong.seed, line.wrong.what.join("; "));
    if (playing !== undefined) played++;
    playing = line.seed;
  }
  clearTimeout(watch);
  const code = await child.exited;
  if (playing !== undefined) say(playing, `the process ended with ${code}`);
  return { wrong, played, cpuMs: Number(child.resourceUsage()!.cpuTime.total) / 1_000 };
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
}

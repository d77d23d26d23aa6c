// R17: whole Runtimes and a hub in simulated time. Processes are killed at any commit and any touch of their machine, frozen and continued behind another
// one's back, clocks jump, the disk is full, programs hang and die, the hub goes away, and the network loses, doubles, delays and reorders. The seeds
// themselves are played by seeds-1.test.ts and its sisters. A failure prints its seed: KXM_TEST_SEED=<seed> npm test -- tests/simulation/runtime plays it
// again and prints everything that happened.
import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../runtime/support.ts";
import { reached } from "./checks.ts";
import { type Bugs, openStage, play } from "./play.ts";
import { chosenSeeds, playAll, SHARES, shareOf } from "./share.ts";

const SAME = process.env["KXM_FAULTS"] === "full" ? 100 : 5;
/** Seeds in which a deliberate bug must have shown itself. */
const SEEDS_OF_A_BUG = 300;
/** Seeds that together come to everything. */
const SEEDS_OF_REACH = 60;
const stage = openStage();
afterAll(() => stage[Symbol.dispose]());

const ONE = process.env["KXM_TEST_SEED"];

if (ONE !== undefined)
  test(`seed ${ONE}`, async () => {
    const { wrong, lines } = await play(Number(ONE), stage.workplaces);
    console.log(lines.join("\n"));
    expect(wrong).toEqual([]);
  });

describe.if(ONE === undefined)("R17: Runtimes and a hub in simulated time", () => {
  test("every share of the seeds has its test file, and together they are all seeds", () => {
    const files = readdirSync(import.meta.dir).filter((name) => /^seeds-\d+\.test\.ts$/.test(name));
    expect(files.sort()).toEqual(Array.from({ length: SHARES }, (_, index) => `seeds-${index + 1}.test.ts`));
    const seeds = Array.from({ length: SHARES }, (_, index) => shareOf(index + 1, chosenSeeds("11-2010")));
    expect(seeds.flatMap(({ first, last }) => [first, last])).toEqual([11, 510, 511, 1010, 1011, 1510, 1511, 2010]);
    expect(() => chosenSeeds("all")).toThrow("KXM_TEST_SEEDS is all");
  });

  test("a seed that goes wrong, and one whose process dies, say how to see them again", async () => {
    using folder = temporaryFolder();
    const lines = [{ seed: 7 }, { seed: 8, wrong: { seed: 7, what: ["an effect happened 2 times", "and more"] } }];
    writeFileSync(
      folder.file("seeds.ts"),
      `${lines.map((line) => `console.log(${JSON.stringify(JSON.stringify(line))});`).join("")} process.exit(3);`,
    );
    const { wrong, played } = await playAll(7, 9, 1, join(folder.path, "seeds.ts"));
    expect(wrong).toEqual([
      "seed 7: an effect happened 2 times; and more (again: KXM_TEST_SEED=7 npm test -- tests/simulation/runtime)",
      "seed 8: the process ended with 3 (again: KXM_TEST_SEED=8 npm test -- tests/simulation/runtime)",
    ]);
    expect(played).toBe(1);
  });

  test("the same seed plays the same", async () => {
    let runs = 0;
    for (let seed = 1; seed <= SAME; seed++) {
      const played = await play(seed, stage.workplaces);
      runs += played.runs;
      expect([seed, (await play(seed, stage.workplaces)).trace]).toEqual([seed, played.trace]);
    }
    expect(runs).toBeGreaterThan(SAME);
  }, 120_000);

  test("the seeds come to every kind of step, every command from both sides, every fault and every end", async () => {
    const happened = new Set<string>();
    const told: string[] = [];
    for (let seed = 1; seed <= SEEDS_OF_REACH; seed++) {
      const { lines } = await play(seed, stage.workplaces, {}, (project) => {
        for (const what of reached(project)) happened.add(what);
      });
      told.push(...lines);
    }
    const commands = ["start", "approve", "reject", "signal", "cancel", "pause", "resume", "resolve"].flatMap((kind) => [
      `cli ${kind} applied`,
      `hub ${kind} applied`,
    ]);
    const steps = ["agent", "moa quorum", "moa first-success", "gate", "approval", "wait"].map((kind) => `step ${kind}`);
    const ends = ["run completed", "run failed", "run cancelled", "effect.blocked_uncertain", "assignment.reattaching", "assignment.retry_pending"];
    const resolutions = ["mark-completed", "mark-failed", "confirm-absent-and-retry", "cancel"];
    const expected = [...commands, ...steps, ...ends, ...resolutions, "hub retry applied", "cli retry refused", "cli approve refused"];
    expect(expected.filter((what) => !happened.has(what))).toEqual([]);
    const kills = ["before a commit", "after a commit", "between two steps", "by a power cut", "request", "prepare", "before launch", "after launch"];
    const faults = [...kills.map((why) => `is killed ${why}`), "freezes", "continues", "starts beside", "stop in order", "clock jumps", "cut off"];
    const others = ["the disk is full", "no room", "the hub is killed", "git worktree failed", "written, and nobody can tell", "once more"];
    expect([...faults, ...others].filter((what) => !told.some((line) => line.includes(what)))).toEqual([]);
  }, 120_000);

  /** What goes wrong with a deliberate bug in the first seed that shows it. @param from a seed that is known to be near one */
  async function found(bugs: Bugs, from = 1, at = stage.workplaces): Promise<string> {
    for (let turn = 0; turn < SEEDS_OF_A_BUG; turn++) {
      const seed = from + turn;
      const { wrong } = await play(seed, at, bugs);
      if (wrong.length > 0) return wrong.join("\n");
    }
    return `nothing in ${SEEDS_OF_A_BUG} seeds`;
  }

  test.each<[string, Bugs, number, RegExp]>([
    ["an outbox row that is not written with its event", { dropsOutboxRows: true }, 1, /has no outbox row/],
    ["an effect before its intent is on disk", { forgetsIntents: true }, 1, /happened before it was announced/],
    ["a hub that acknowledges before it has stored", { acksBeforeStoring: true }, 2, /is acknowledged and not at the hub/],
    [
      "a supervisor that does not hear that it was replaced",
      { staysOn: true },
      15,
      /follows|was started 2 times|happened 2 times|projection|no outbox row|differs/,
    ],
    ["an end that does not end the program", { endsNothing: true }, 3, /still runs/],
    ["a hub that forgets how far its fences were", { forgetsFences: true }, 6, /the fence of branch:main went back/],
    ["a hub that grants what is held", { grantsTwice: true }, 7, /branch:main was granted under \d+ while \d+ was held/],
    ["a hub that forgets what became of a command", { forgetsResults: true }, 1, /has heard nothing of its command/],
    ["a lease that ends before its holder thinks", { shortensLeases: true }, 30, /passed although somebody else had its lease/],
    ["programs that fail when nothing else does", { alwaysFails: true }, 7, /went wrong although nothing failed any more/],
    ["a supervisor that overlooks the one that runs", { overlooksOthers: true }, 8, /took the place of one that runs/],
  ])(
    "finds %s",
    async (_, bugs, from, expected) => {
      expect(await found(bugs, from)).toMatch(expected);
    },
    120_000,
  );

  test("finds a project that lies about what may be repeated", async () => {
    using lying = openStage("external-idempotent");
    expect(await found({}, 15, lying.workplaces)).toMatch(/the effect of ship happened 2 times/);
  }, 120_000);
});

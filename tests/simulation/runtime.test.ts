// R17: whole Runtimes and a hub in simulated time. Processes are killed at any commit and any touch of their machine, frozen and continued behind another
// one's back, clocks jump, the disk is full, programs hang and die, the hub goes away, and the network loses, doubles, delays and reorders. The seeds
// themselves are played by seeds-1.test.ts and its sisters. A failure prints its seed: KXM_TEST_SEED=<seed> npm test -- tests/simulation/runtime plays it
// again and prints everything that happened.
import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../runtime/support.ts";
import { type Bugs, openStage, play } from "./play.ts";
import { chosenSeeds, playAll, SHARES, shareOf } from "./share.ts";

const SAME = process.env["KXM_FAULTS"] === "full" ? 100 : 5;
/** Seeds in which a deliberate bug must have shown itself. */
const SEEDS_OF_A_BUG = 120;
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
    ["a hub that acknowledges before it has stored", { acksBeforeStoring: true }, 5, /is acknowledged and not at the hub/],
    [
      "a supervisor that does not hear that it was replaced",
      { staysOn: true },
      45,
      /follows|was started 2 times|happened 2 times|projection|no outbox row|differs/,
    ],
    ["an end that does not end the program", { endsNothing: true }, 7, /still runs/],
    ["a hub that forgets how far its fences were", { forgetsFences: true }, 3, /the fence of branch:main went back/],
  ])(
    "finds %s",
    async (_, bugs, from, expected) => {
      expect(await found(bugs, from)).toMatch(expected);
    },
    120_000,
  );

  test("finds a project that lies about what may be repeated", async () => {
    using lying = openStage("external-idempotent");
    expect(await found({}, 1, lying.workplaces)).toMatch(/the effect of ship happened 2 times/);
  }, 120_000);
});

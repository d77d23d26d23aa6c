// Plays a range of seeds in a process of its own: `bun seeds.ts FIRST STEP LAST`. One line of JSON for each seed that begins, with what went wrong in the
// one before, and one at the end.
import { openStage, play } from "./play.ts";

/** What the process says: the seed it begins with, or that it is done, and what went wrong in the seed before. */
export type Line = { seed?: number; wrong?: { seed: number; what: string[] } };
const say = (line: Line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const [first = 1, step = 1, last = 1] = process.argv.slice(2).map(Number);
using stage = openStage();
let wrong: Line["wrong"];
for (let seed = first; seed <= last; seed += step) {
  say({ seed, ...(wrong && { wrong }) });
  const { wrong: what } = await play(seed, stage.workplaces);
  wrong = what.length > 0 ? { seed, what: what.slice(0, 3) } : undefined;
}
say(wrong ? { wrong } : {});

// Plays a range of seeds in a process of its own: `bun seeds.ts FIRST STEP LAST`. One line of JSON for each seed that went wrong, and one at the end.
import { openCheckouts, play } from "./play.ts";

const [first = 1, step = 1, last = 1] = process.argv.slice(2).map(Number);
using checkouts = openCheckouts();
let played = 0;
for (let seed = first; seed <= last; seed += step) {
  const { wrong } = await play(seed, checkouts.roots);
  played++;
  if (wrong.length > 0) console.log(JSON.stringify({ seed, wrong: wrong.slice(0, 3) }));
}
console.log(JSON.stringify({ played }));

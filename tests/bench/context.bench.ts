// Context at 100,000 items: building the pool, a packet, recall. Prints milliseconds; the budget is 150 for a packet and 50 for recall.
import { packetOf } from "../../src/hub/context/packets.ts";
import { createPools } from "../../src/hub/context/pool.ts";
import { recall } from "../../src/hub/context/recall.ts";
import { CONFIDENCES, type ContextItem, KINDS } from "../../src/protocol/context.ts";

const COUNT = 100_000;
const words = Array.from({ length: 5_000 }, (_, index) => `word${(index * 7919) % 5_000}`);
let seed = 1;
const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
const items = Array.from(
  { length: COUNT },
  (_, index): ContextItem => ({
    id: `ctx_${String(index).padStart(32, "0")}`,
    project: "p",
    kind: KINDS[index % 5]!,
    authority: "evidence",
    confidence: CONFIDENCES[index % 3]!,
    status: "current",
    summary: Array.from({ length: 20 }, () => words[Math.floor(random() ** 2 * words.length)]).join(" "),
    provenance: { sourceType: "peer" },
    ...(index % 5 === 1 && { stateKey: `k${index}` }),
  }),
);
const page = (after: number, limit: number) => items.slice(after, after + limit).map((record, index) => ({ record, revision: after + index + 1 }));
const read = {
  context: { counters: async () => ({ purges: 0 }), changedAfter: async (_: string, after: number, limit: number) => page(after, limit) },
  journal: { changedAfter: async () => [] },
};
const pools = createPools(() => []);
const time = async (name: string, rounds: number, work: () => unknown) => {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    await work();
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  console.log(`${name.padEnd(44)} median ${times[Math.floor(rounds / 2)]!.toFixed(1)} ms   max ${times.at(-1)!.toFixed(1)} ms`);
};
const get = () => pools.get(read as never, "p");
await time(`build the pool of ${COUNT} items`, 1, get);
await time("packet, implementer, task of 8 words", 15, async () =>
  packetOf(await get(), { project: "p", role: "implementer", task: "word1 word2 word30 word400 word5 word60 word700 word8" }),
);
await time("packet, any role, 32,000 tokens", 15, async () => packetOf(await get(), { project: "p", role: "other", task: "word9 word10 retries" }));
await time("recall, two words", 15, async () => recall(await get(), { project: "p", query: "word12 word13", limit: 25 }));
await time("recall, everything", 15, async () => recall(await get(), { project: "p", limit: 100 }));
console.log(`memory of the process: ${Math.round(process.memoryUsage().rss / 1_048_576)} MiB`);

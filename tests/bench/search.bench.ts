// Search at 1,000,000 documents on SQLite: rare and common words, qualifiers, pages. Prints milliseconds; the budget is 50 at the 95th percentile.
// Smaller with KXM_BENCH_ROWS.
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { openEngine } from "../../src/db/open.ts";
import { openHub } from "../../src/hub/hub.ts";
import { silent } from "../../src/hub/log.ts";
import * as search from "../../src/hub/search.ts";
import { defaultSettings } from "../../src/hub/settings.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { newId } from "../../src/protocol/ids.ts";

const ROWS = Number(process.env["KXM_BENCH_ROWS"] ?? 1_000_000);
const folder = mkdtempSync("/tmp/kxm-search-");
const path = `${folder}/kxm.db`;
const now = Date.UTC(2026, 0, 31);
const open = () => openEngine({ path, clock: () => now, newId });
await (await open()).close();

let seed = 7;
const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
const vocabulary = Array.from({ length: 30_000 }, (_, index) => `w${index.toString(36)}`);
const sentence = () => Array.from({ length: 40 }, () => vocabulary[Math.floor(random() ** 3 * vocabulary.length)]).join(" ");
const scope = (project: string, from: string) => `px${sha256(project).slice(0, 16)} kxmessage fx${sha256(from).slice(0, 16)}`;

const database = new Database(path);
database.exec("pragma synchronous = off");
const insert = database.prepare("insert into search_documents values (?, 'message', ?, ?, ?, ?, 'bob', ?, '', ?, ?, 0)");
const filled = performance.now();
for (let from = 0; from < ROWS; from += 10_000) {
  database.transaction(() => {
    for (let n = from; n < Math.min(ROWS, from + 10_000); n++) {
      const at = now - (ROWS - n) * 1_000;
      const project = `p${n % 10}`;
      const sender = `agent${n % 200}`;
      insert.run(at * 4_096 + (n % 4_096), `msg_${n}`, project, at, sender, n % 5 === 0 ? "queued" : "replied", sentence(), scope(project, sender));
    }
  })();
}
database.close(true);
console.log(`${ROWS} documents in ${Math.round((performance.now() - filled) / 1000)} s`);

const engine = await open();
const stop = new AbortController();
const hub = openHub({ engine, clock: () => now, settings: defaultSettings(), log: silent, stopping: stop.signal });
const operator = { project: undefined as string | undefined, agentName: undefined, mayRead: true };
async function time(name: string, ask: (round: number) => Promise<{ hits: unknown[] }>, rounds = 60) {
  const times: number[] = [];
  let found = 0;
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    found += (await ask(round)).hits.length;
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.min(rounds - 1, Math.floor(rounds * share))]!.toFixed(1);
  console.log(`${name.padEnd(52)} p50 ${at(0.5)} ms   p95 ${at(0.95)} ms   ${(found / rounds).toFixed(1)} hits`);
}
const find = (q: string, project?: string, after?: string) => search.find(hub, { ...operator, project }, { q, limit: 20, ...(after && { after }) });
await time("a common word in one project", (n) => find("w0", `p${n % 10}`));
await time("a common word over all projects", () => find("w1"));
await time("a rare word in one project", (n) => find(vocabulary.at(-1 - n)!, "p3"));
await time("two words, one common and one rare", (n) => find(`w0 ${vocabulary.at(-50 - n)}`, "p3"));
await time("a phrase of two common words", () => find('"w0 w1"', "p3"));
await time("from: and status: with a common word", (n) => find(`w0 from:agent${n} status:queued`, `p${n % 10}`));
await time("from: alone", (n) => find(`from:agent${n}`, `p${n % 10}`));
await time("a word nobody wrote", (n) => find(`zzz${n}`, "p3"));
await time("the hundredth page of a common word", async () => {
  const first = await find("w0", "p3");
  return find("w0", "p3", String((now - 900_000_000) * 4_096 + first.hits.length));
});
await engine.close();
rmSync(folder, { recursive: true });

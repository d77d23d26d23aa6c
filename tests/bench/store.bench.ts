// The store in process: messages by number of callers and by what is retained, how much a batch may hold, and the same over PostgreSQL.
// Goals: send, ack, reply, inbox and get cost at most 1.25 times at 100,000 retained messages and 2 times at 1,000,000 of what they cost at 1,000;
// at least 2,000 round trips of send, ack and reply a second. Rows are put in beforehand; KXM_BENCH_ROWS names other sizes, such as 1000,100000.
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Engine } from "../../src/db/engine.ts";
import { type OpenOptions, openEngine } from "../../src/db/open.ts";
import type { AgentRow, MessageRow } from "../../src/db/schema.ts";
import * as messages from "../../src/hub/messages.ts";
import { newId } from "../../src/protocol/ids.ts";
import { agentRow, messageRow, testedEvent } from "../support/rows.ts";
import { best, print, type Rate, rateOf } from "./measure.ts";

const CONTENT = "x".repeat(600);
const AGENTS = 64;
const DAY_MS = 86_400_000;
const ROUNDS = 3;
const SIZES = (process.env["KXM_BENCH_ROWS"] ?? "1000,100000,1000000").split(",").map(Number);

type Bench = { engine: Engine; agents: AgentRow[]; path: string; close(): Promise<void> };

async function openBench(options: Partial<OpenOptions> = {}, fill?: (path: string, agents: AgentRow[]) => void): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), "kxm-bench-"));
  const path = join(folder, "kxm.db");
  const open = () => openEngine({ path, clock: Date.now, newId, ...options });
  let engine = await open();
  const agents = Array.from({ length: AGENTS }, (_, n) => agentRow(newId("agt"), "bench", `agent ${n}`));
  await Promise.all(agents.map((agent) => engine.write("bench", (tx) => tx.agents.insert(agent))));
  if (fill) {
    await engine.close();
    fill(path, agents);
    engine = await open();
  }
  return {
    engine,
    agents,
    path,
    async close() {
      await engine.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Ended messages, newest last, written without a sync for each. */
function retain(count: number) {
  return (path: string, agents: AgentRow[]) => {
    using database = new Database(path, { readwrite: true, create: false, strict: true });
    database.exec("pragma synchronous = off; pragma cache_size = -262144");
    const row = messageRow("msg_", 1, { content: CONTENT, status: "replied", repliedAt: 1, endedAt: 1, replyContent: "r", idempotencyKey: "k" });
    const names = Object.keys(row) as (keyof MessageRow)[];
    const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const insert = database.prepare(`insert into messages (${names.map(snake).join(", ")}) values (${names.map((name) => `$${name}`).join(", ")})`);
    const put = database.transaction((from: number, to: number) => {
      for (let n = from; n < to; n++) {
        const [sender, recipient] = [agents[n % AGENTS]!, agents[(n * 7 + 1) % AGENTS]!];
        insert.run({
          ...row,
          id: newId("msg"),
          project: "bench",
          senderId: sender.id,
          recipientId: recipient.id,
          recipientSeq: n + 1,
          idempotencyKey: `old ${n}`,
        } as never);
      }
    });
    for (let at = 0; at < count; at += 50_000) put(at, Math.min(count, at + 50_000));
    database.exec(`insert into recipient_counters select recipient_id, max(recipient_seq) from messages group by recipient_id`);
    database.exec("pragma wal_checkpoint(truncate)");
  };
}

let keys = 0;
const pair = ({ agents }: Bench, n: number) => [agents[n % AGENTS]!, agents[(n * 7 + 1 + (n % 2)) % AGENTS]!] as const;
const send = (bench: Bench, n: number) => {
  const [sender, other] = pair(bench, n);
  const recipient = other.id === sender.id ? bench.agents[(n + 1) % AGENTS]! : other;
  const request = {
    target: recipient.id,
    content: CONTENT,
    delivery: "followUp" as const,
    hops: 0,
    maxHops: 4,
    allowOffline: true,
    idempotencyKey: `key ${keys++}`,
  };
  return bench.engine.write("bench", (tx) => messages.send(tx, sender, request, DAY_MS));
};
const recipientOf = ({ agents }: Bench, { recipientId }: MessageRow) => agents.find(({ id }) => id === recipientId)!;
const ack = (bench: Bench, message: MessageRow) =>
  bench.engine.write("bench", (tx) => messages.acknowledge(tx, recipientOf(bench, message), message.id));
const reply = (bench: Bench, message: MessageRow) =>
  bench.engine.write("bench", (tx) => messages.reply(tx, recipientOf(bench, message), message.id, () => "fine"));

async function measured(rounds: number, callers: number, work: (round: number) => Promise<unknown>): Promise<Rate> {
  const rates: Rate[] = [];
  for (let round = 0; round < ROUNDS; round++) rates.push(await rateOf({ rounds, callers }, work));
  return best(rates);
}

async function byCallers() {
  const bench = await openBench();
  await rateOf({ rounds: 3_000, callers: 64 }, (n) => send(bench, n)); // warm
  for (const callers of [1, 8, 64, 256])
    print(`send, ${callers} callers`, await measured(callers === 1 ? 1_000 : 8_000, callers, (n) => send(bench, n)));
  const insert = (n: number) => bench.engine.write("bench", async (tx) => tx.append(testedEvent("bench", n)));
  print("one event and nothing else, 64 callers", await measured(10_000, 64, insert));
  await bench.close();
}

async function byBatch() {
  for (const batchMax of [1, 8, 32, 128, 256]) {
    const bench = await openBench({ batchMax });
    print(`send, 256 callers, at most ${batchMax} a transaction`, await measured(batchMax === 1 ? 2_000 : 6_000, 256, (n) => send(bench, n)));
    await bench.close();
  }
}

/** Cost by processor time, which a busy machine disturbs least, beside that of the smallest size. */
async function byRetained() {
  const baseline = new Map<string, Rate>();
  for (const size of SIZES) {
    const bench = await openBench({}, retain(size));
    const sent = async (count: number) => (await Promise.all(Array.from({ length: count }, (_, n) => send(bench, n)))).map(({ message }) => message);
    await sent(2_000);
    const ids = (await sent(200)).map(({ id }) => id);
    const operations: [string, () => Promise<Rate>][] = [
      ["send", () => measured(4_000, 64, (n) => send(bench, n))],
      ["ack", () => onFresh(4_000, sent, (message) => ack(bench, message))],
      ["reply", () => onFresh(4_000, sent, (message) => reply(bench, message))],
      ["get", () => measured(20_000, 1, (n) => bench.engine.read.messages.find(ids[n % ids.length]!))],
      ["inbox of 50", () => measured(3_000, 1, (n) => bench.engine.read.messages.inbox(bench.agents[n % AGENTS]!.id, 0, 50))],
      [
        "send, ack, reply",
        () =>
          measured(2_000, 64, async (n) => {
            const { message } = await send(bench, n);
            await ack(bench, message);
            await reply(bench, message);
          }),
      ],
    ];
    for (const [name, measure] of operations) {
      const rate = await measure();
      const first = baseline.get(name) ?? rate;
      baseline.set(name, first);
      print(
        `${name}, ${size.toLocaleString("en")} retained`,
        rate,
        size === SIZES[0] ? "" : `${(rate.cpuUs / first.cpuUs).toFixed(2)} x the processor time`,
      );
    }
    await bench.close();
  }
}

/** The messages that a round works on are sent outside of what is measured. */
async function onFresh(
  count: number,
  sent: (count: number) => Promise<MessageRow[]>,
  work: (message: MessageRow) => Promise<unknown>,
): Promise<Rate> {
  const rates: Rate[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const fresh = await sent(count);
    rates.push(await rateOf({ rounds: count, callers: 64 }, (n) => work(fresh[n]!)));
  }
  return best(rates);
}

async function onPostgres(server: string) {
  const name = newId("hub").replace("hub_", "kxm_b");
  const { SQL } = await import("bun");
  await using admin = new SQL(`${server}/postgres`, { max: 1 });
  await admin.unsafe(`create database ${name}`);
  const bench = await openBench({ url: `${server}/${name}` });
  await rateOf({ rounds: 500, callers: 64 }, (n) => send(bench, n));
  print("PostgreSQL: send, 1 caller", await measured(300, 1, (n) => send(bench, n)));
  print("PostgreSQL: send, 64 callers, one project", await measured(1_500, 64, (n) => send(bench, n)));
  const append = (n: number) => bench.engine.write(`p${n % 16}`, async (tx) => tx.append(testedEvent(`p${n % 16}`, n)));
  print("PostgreSQL: one event, 64 callers, 16 projects", await measured(3_000, 64, append));
  await bench.close();
  await admin.unsafe(`drop database ${name} with (force)`);
}

await byCallers();
await byBatch();
await byRetained();
if (process.env["KXM_TEST_POSTGRES"]) await onPostgres(process.env["KXM_TEST_POSTGRES"]);
else console.log("PostgreSQL: set KXM_TEST_POSTGRES to measure it");

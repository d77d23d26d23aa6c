// A process over one store, to be killed: takes calls as JSON lines, answers each once it is durable. A test may name a mutant, which breaks one promise
// from outside (the product has no switch for that).
import { Database } from "bun:sqlite";
import { writeSync } from "node:fs";
import { openEngine } from "../../src/db/open.ts";
import type { Tx } from "../../src/db/tx.ts";
import { newId } from "../../src/protocol/ids.ts";
import { leaseRow, messageRow, syncEventRow, syncRunRow, testedEvent } from "../support/rows.ts";

export type Mutant = "early-ack" | "no-fsync" | "weak-setting" | "split-call";
export type Setup = {
  path?: string;
  url?: string;
  mutant?: Mutant;
  count?: number;
  deterministic?: boolean;
  stuckMs?: number;
  pauseMs?: number;
  address?: string;
};
/** `key` makes a call idempotent: sent again, it answers as before. */
export type CallLine = { n: number; op: "send" | "lease" | "push" | "prune" | "hold"; key: string; project?: string };
type Result = { seq?: number; fence?: number; error?: string };
export type AnswerLine = { n: number } & Result;

const SCRIPT = ["send", "lease", "push", "send", "send", "prune"] as const;
const setup = JSON.parse(process.argv[2] ?? "{}") as Setup;
const say = (line: unknown) => writeSync(1, `${JSON.stringify(line)}\n`);
if (setup.mutant === "no-fsync" || setup.mutant === "weak-setting") weaken();
if (setup.mutant === "no-fsync") claimOtherwise();

let made = 0;
const ids = setup.deterministic ? (prefix: string) => `${prefix}_${String(++made).padStart(32, "0")}` : newId;
const engine = await openEngine({ ...setup, clock: setup.deterministic ? () => 1 : Date.now, newId: ids as typeof newId }).catch((error) => {
  console.error(error.message);
  process.exit(3);
});
if (setup.address) engine.announce(setup.address);
say({ ready: true, generation: engine.generation });

/** Answers lines from stdin until it ends. */
async function serve() {
  const running = new Set<Promise<void>>();
  for await (const line of console) {
    if (line === "") continue;
    const work = answer(JSON.parse(line) as CallLine).finally(() => running.delete(work));
    running.add(work);
  }
  await Promise.all(running);
}

/** The same calls in the same order in every run; those that were made before are found by their keys. */
async function script(count: number) {
  for (let n = 0; n < count; n++) {
    await answer({ n, op: SCRIPT[n % SCRIPT.length]!, key: `key-${n}` });
    if (setup.pauseMs) await Bun.sleep(setup.pauseMs);
  }
}

async function answer({ n, op, key, project = "p" }: CallLine) {
  if (setup.mutant === "early-ack") say({ n, seq: 0 });
  const result = await engine
    .write(project, (tx) => once(tx, key, () => OPS[op](tx, project, key)))
    .catch((error) => ({ error: error.reason ?? error.message }));
  if (setup.mutant === "split-call") await engine.write(project, (tx) => once(tx, `${key} event`, async () => appended(tx, project, {})));
  if (setup.mutant !== "early-ack") say({ n, ...result });
}

/** A call with a known key answers as before and does nothing. */
async function once(tx: Tx, key: string, work: () => Promise<Result>): Promise<Result> {
  const earlier = await tx.meta.find(`done ${key}`);
  if (earlier) return JSON.parse(earlier) as Result;
  const result = await work();
  await tx.meta.put(`done ${key}`, JSON.stringify(result));
  return result;
}

function appended(tx: Tx, project: string, result: Result): Result {
  tx.append(testedEvent(project));
  return result;
}

const OPS: Record<CallLine["op"], (tx: Tx, project: string, key: string) => Promise<Result>> = {
  /** A message, its number, and its event: all or nothing. */
  async send(tx, project, key) {
    const seq = await tx.messages.takeSeq(`agt_${project}`);
    await tx.messages.insert(
      messageRow(`msg_${key}`, seq, { project, recipientId: `agt_${project}`, idempotencyKey: key, content: `${key} ${"x".repeat(600)}` }),
    );
    return setup.mutant === "split-call" ? { seq } : appended(tx, project, { seq });
  },
  /** A fence that rises with every grant; the resource remembers the last. */
  async lease(tx, project) {
    const lease = await tx.leases.lock(project);
    const fence = Math.max(lease?.fence ?? 0, await tx.meta.fenceFloor()) + 1;
    const granted = leaseRow(project, { project, fence });
    await (lease ? tx.leases.update(granted) : tx.leases.insert(granted));
    return appended(tx, project, { fence });
  },
  /** Five events of a run, and its cursor. */
  async push(tx, project, key) {
    const run = await tx.sync.lockRun(project, "run");
    const cursor = (run?.cursor ?? 0) + 5;
    const sequences = [1, 2, 3, 4, 5].map((n) => cursor - 5 + n);
    await tx.sync.insertEvents(sequences.map((sequence) => syncEventRow(project, "run", sequence, key)));
    await (run ? tx.sync.updateRun({ ...run, cursor }) : tx.sync.insertRun(syncRunRow(project, "run", { cursor })));
    return appended(tx, project, {});
  },
  /** Keeps its transaction open for as long as it is let. */
  async hold(tx, project) {
    for (let n = 0; n < 1_000_000; n++) {
      await tx.leases.find(project);
      if (n === 0) say({ holding: true });
    }
    return {};
  },
  /** Retention: the log loses its oldest events. */
  async prune(tx, project) {
    await tx.events.prune(project, tx.now + 1, 3);
    return {};
  },
};

/** Commits return before the disk has them. */
function weaken() {
  const { exec } = Database.prototype;
  Database.prototype.exec = function (this: Database, sql: string, ...rest: any[]) {
    return exec.call(this, sql.replace("pragma synchronous = full", "pragma synchronous = normal"), ...rest);
  } as typeof exec;
}

/** The setting is read back as if it were in force. */
function claimOtherwise() {
  const { query } = Database.prototype;
  Database.prototype.query = function (this: Database, sql: string) {
    return sql === "pragma synchronous" ? { get: () => ({ synchronous: 2 }) } : query.call(this, sql);
  } as typeof query;
}

if (setup.count === undefined) await serve();
else await script(setup.count);
await engine.close();

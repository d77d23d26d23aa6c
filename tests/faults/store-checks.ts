// One checker for every crash test: what was acknowledged is there, nothing is there twice or half.
import { Database } from "bun:sqlite";
import { type Ask, askPostgres } from "../../src/db/ask.ts";
import { sha256 } from "../../src/protocol/canonical.ts";

/** What a client was told: call key → the number or fence of the answer. */
export type Acknowledged = { sends: Map<string, number>; fences: Map<string, number> };
export const nothingYet = (): Acknowledged => ({ sends: new Map(), fences: new Map() });

export type Findings = {
  lost: number;
  renumbered: number;
  doubled: number;
  gaps: number;
  halfApplied: number;
  fencesReused: number;
  integrity: string;
};
export const NOTHING_WRONG: Findings = { lost: 0, renumbered: 0, doubled: 0, gaps: 0, halfApplied: 0, fencesReused: 0, integrity: "ok" };

/** Compares a history with the data file of a store that no process has open. */
export async function check(path: string, told: Acknowledged): Promise<Findings> {
  using database = new Database(path, { readwrite: true, create: false });
  const { integrity_check } = database.query("pragma integrity_check").get() as { integrity_check: string };
  return { ...(await compare(async (sql) => database.query(sql).all() as never, told)), integrity: integrity_check };
}

/** The same for a database of hubs. */
export async function checkDatabase(url: string, told: Acknowledged): Promise<Findings> {
  await using asking = askPostgres(url);
  return { ...(await compare(asking.ask, told)), integrity: "ok" };
}

async function compare(ask: Ask, { sends, fences }: Acknowledged): Promise<Omit<Findings, "integrity">> {
  const number = async (sql: string) => Number(Object.values((await ask(sql))[0]!)[0] ?? 0);
  const rows = await ask("select idempotency_key as key, recipient_seq as seq from messages");
  const stored = new Map(rows.map(({ key, seq }) => [String(key), Number(seq)]));
  const told = [...sends];
  const fence = await number("select coalesce(max(fence), 0) as n from leases");
  return {
    lost: told.filter(([key]) => !stored.has(key)).length + [...fences.values()].filter((value) => value > fence).length,
    renumbered: told.filter(([key, seq]) => stored.has(key) && stored.get(key) !== seq).length,
    doubled: rows.length - stored.size,
    gaps: await number(
      "select count(*) as n from (select count(*) as n, max(recipient_seq) as m from messages group by recipient_id) as each_recipient where n <> m",
    ),
    halfApplied: await number(`select abs((select count(*) from messages) + (select cast(coalesce(sum(fence), 0) as bigint) from leases)
        + (select count(*) from sync_events) / 5 - (select cast(coalesce(sum(last_seq), 0) as bigint) from event_counters))
      + abs((select cast(coalesce(sum(cursor), 0) as bigint) from sync_runs) - (select count(*) from sync_events))
      + (select count(*) from (select count(*) as n, max(seq) - min(seq) + 1 as span from events group by project) as each_log where n <> span) as n`),
    fencesReused: fences.size - new Set(fences.values()).size,
  };
}

/** A hash of everything that the calls made; ids and times of the store itself are left out. */
export function stateHash(path: string): string {
  using database = new Database(path, { readwrite: true, create: false });
  const tables = ["messages", "recipient_counters", "leases", "sync_runs", "sync_events", "events", "event_counters"];
  return sha256(JSON.stringify(tables.map((table) => database.query(`select * from ${table} order by 1, 2`).all())));
}

// One checker for every crash test: what was acknowledged is there, nothing is there twice or half.
import { Database } from "bun:sqlite";
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
export function check(path: string, { sends, fences }: Acknowledged): Findings {
  using database = new Database(path, { readwrite: true, create: false });
  const all = <T>(sql: string) => database.query(sql).all() as T[];
  const one = <T>(sql: string) => Object.values(database.query(sql).get() as object)[0] as T;
  const stored = new Map(
    all<{ key: string; seq: number }>("select idempotency_key as key, recipient_seq as seq from messages").map(({ key, seq }) => [key, seq]),
  );
  const told = [...sends];
  const fence = one<number | null>("select max(fence) from leases") ?? 0;
  return {
    lost: told.filter(([key]) => !stored.has(key)).length + [...fences.values()].filter((value) => value > fence).length,
    renumbered: told.filter(([key, seq]) => stored.has(key) && stored.get(key) !== seq).length,
    doubled: one("select count(*) - count(distinct idempotency_key) from messages"),
    gaps: one("select count(*) from (select count(*) as n, max(recipient_seq) as m from messages group by recipient_id) where n <> m"),
    halfApplied:
      one(`select abs((select count(*) from messages) + (select coalesce(sum(fence), 0) from leases) + (select count(*) from sync_events) / 5
        - (select coalesce(sum(last_seq), 0) from event_counters))
      + abs((select coalesce(sum(cursor), 0) from sync_runs) - (select count(*) from sync_events))
      + (select count(*) from (select count(*) as n, max(seq) - min(seq) + 1 as span from events group by project) where n <> span)`),
    fencesReused: fences.size - new Set(fences.values()).size,
    integrity: one("pragma integrity_check"),
  };
}

/** A hash of everything that the calls made; ids and times of the store itself are left out. */
export function stateHash(path: string): string {
  using database = new Database(path, { readwrite: true, create: false });
  const tables = ["messages", "recipient_counters", "leases", "sync_runs", "sync_events", "events", "event_counters"];
  return sha256(JSON.stringify(tables.map((table) => database.query(`select * from ${table} order by 1, 2`).all())));
}

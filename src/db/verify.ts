// `kxm verify`: reads everything that is stored and says what is not as it was written. SQLite pages carry no checksum, so a flipped bit inside a text is
// found only by the hash that was stored with it.
import { Database } from "bun:sqlite";
import { getTableName } from "drizzle-orm";
import { canonical, sha256 } from "../protocol/canonical.ts";
import { type Answer, type Ask, type Asking, askPostgres, askSqlite } from "./ask.ts";
import { isHeldHere } from "./holder.ts";
import { inspectHeader } from "./inspect.ts";
import { checkApplied, MIGRATIONS, type Migration, migrateSqlite } from "./migrate.ts";
import { runOffThread } from "./off-thread.ts";
import { sqliteTables } from "./schema-kit.ts";

/** Something that is not as it was written. `id` names the row as people know it. */
export type Damage = { table: string; id: string; what: string };
export type Verdict = {
  ok: boolean;
  /** Rows whose bytes were compared with their hash, by table. */
  checked: Record<string, number>;
  /** The first DAMAGE_LISTED_MAX findings, and how many there are. */
  damage: Damage[];
  damaged: number;
  /** How many of them mean that parts of the file cannot be read at all, so that a copy of it would lack them. */
  unreadable: number;
  /** What this engine cannot check, in words. */
  notChecked: string[];
};
/** @param step what is being looked at; `total` is 0 when it cannot be known */
export type OnProgress = (step: string, done: number, total: number) => void;

const DAMAGE_LISTED_MAX = 1_000;
const PAGE_ROWS = 500;

/** What schema to expect: these migrations, of which the last may be missing (`pending`). */
type Schema = { migrations?: readonly Migration[]; pending?: boolean };
export type VerifyOptions = Schema & { onProgress?: OnProgress };

/**
 * Verifies a data file, also while a hub serves it.
 * @throws StoreRefused when it is not a store at all
 */
export async function verifySqlite(path: string, options: VerifyOptions = {}): Promise<Verdict> {
  const { onProgress = () => {}, pending = false, migrations = MIGRATIONS } = options;
  if (!isHeldHere(path)) inspectHeader(path, migrations.length);
  const report = newReport();
  try {
    onProgress("pages", 0, 0);
    for (const { integrity_check: found } of await runOffThread(path, "pragma integrity_check(100)")) {
      if (found !== "ok") report.unread("pages", found);
    }
    for (const row of await runOffThread(path, "pragma foreign_key_check"))
      report.add(String(row["table"]), String(row["rowid"]), "refers to nothing");
    await using asking = askSqlite(path);
    await sqliteDrift(asking, report, { pending, migrations });
    await verifyRows(asking.ask, report, onProgress);
  } catch (error) {
    report.unread("pages", error); // too damaged to be opened
  }
  return report.verdict([]);
}

/** Verifies a database of hubs, also while they serve. */
export async function verifyPostgres(url: string, onProgress: OnProgress = () => {}): Promise<Verdict> {
  await using asking = askPostgres(url);
  const report = newReport();
  await postgresDrift(asking, report);
  await verifyRows(asking.ask, report, onProgress);
  return report.verdict(["PostgreSQL's pages and indexes: use pg_amcheck, and initdb --data-checksums"]);
}

type Report = ReturnType<typeof newReport>;
function newReport() {
  const damage: Damage[] = [];
  const checked: Record<string, number> = {};
  let [damaged, unreadable] = [0, 0];
  return {
    checked,
    unread(table: string, error: unknown) {
      unreadable++;
      this.add(table, "", `cannot be read: ${messageOf(error)}`);
    },
    add(table: string, id: string, what: string) {
      damaged++;
      if (damage.length < DAMAGE_LISTED_MAX) damage.push({ table, id, what });
    },
    verdict: (notChecked: string[]): Verdict => ({ ok: damaged === 0, checked, damage, damaged, unreadable, notChecked }),
  };
}

/** A table whose rows carry hashes: its key, and which column holds the hash of which. `json` is hashed in its canonical form. */
type Hashed = { table: string; key: string[]; pairs: { text: string; hash: string; json?: true; what: string }[] };
const HASHED: Hashed[] = [
  {
    table: "messages",
    key: ["id"],
    pairs: [
      { text: "content", hash: "content_hash", what: "the content" },
      { text: "reply_content", hash: "reply_hash", what: "the reply" },
    ],
  },
  { table: "sync_events", key: ["project_id", "run_id", "sequence"], pairs: [{ text: "record", hash: "hash", what: "the event" }] },
  { table: "sync_conflicts", key: ["id"], pairs: [{ text: "record", hash: "hash", what: "the refused event" }] },
  { table: "workflow_journal", key: ["id"], pairs: [{ text: "record", hash: "hash", json: true, what: "the entry" }] },
];

async function verifyRows(ask: Ask, report: Report, onProgress: OnProgress) {
  for (const hashed of HASHED) {
    try {
      await verifyTable(ask, hashed, report, onProgress);
    } catch (error) {
      report.unread(hashed.table, error);
    }
  }
  for (const { what, sql } of COUNTERS) {
    onProgress("counters", 0, 0);
    try {
      for (const row of await ask(sql)) report.add(String(row["of"]), String(row["id"]), what);
    } catch (error) {
      report.unread("counters", error);
    }
  }
}

async function verifyTable(ask: Ask, { table, key, pairs }: Hashed, report: Report, onProgress: OnProgress) {
  const total = Number((await ask(`select count(*) as n from ${table}`))[0]!["n"]);
  const columns = [...key, ...pairs.flatMap(({ text, hash }) => [text, hash])].join(", ");
  const order = key.join(", ");
  const slots = key.map((_, index) => `$${index + 1}`).join(", ");
  let last: (string | number)[] | undefined;
  report.checked[table] = 0;
  for (;;) {
    const where = last ? `where (${order}) > (${slots})` : "";
    const rows = await ask(`select ${columns} from ${table} ${where} order by ${order} limit ${PAGE_ROWS}`, ...(last ?? []));
    for (const row of rows) {
      for (const { text, hash, json, what } of pairs) {
        if (!fits(row[text], row[hash], json)) report.add(table, key.map((name) => row[name]).join("/"), `${what} does not fit its hash`);
      }
    }
    report.checked[table] += rows.length;
    onProgress(table, report.checked[table], total);
    if (rows.length < PAGE_ROWS) return;
    last = key.map((name) => rows.at(-1)![name]!);
    await new Promise((resolve) => setImmediate(resolve)); // a hub in this process goes on between pages
  }
}

function fits(text: Answer[string] | undefined, hash: Answer[string] | undefined, json: true | undefined): boolean {
  if (text === null && hash === null) return true;
  if (typeof text !== "string" || typeof hash !== "string") return false;
  try {
    return sha256(json ? canonical(JSON.parse(text)) : text) === hash.replace(/^sha256:/, "");
  } catch {
    return false; // no JSON any more
  }
}

/** Numbers that were handed out: each counter is at least as high as its highest row, and a log has no holes. */
const COUNTERS = [
  {
    what: "the counter is behind its newest message",
    sql: `select 'recipient_counters' as of, m.recipient_id as id from (select recipient_id, max(recipient_seq) as seq from messages group by recipient_id) m
      left join recipient_counters c on c.recipient_id = m.recipient_id where coalesce(c.last_seq, 0) < m.seq`,
  },
  {
    what: "events are missing in the middle of the log",
    sql: "select 'events' as of, project as id from events group by project having count(*) <> max(seq) - min(seq) + 1",
  },
  {
    what: "the log does not end where its counter says",
    sql: `select 'event_counters' as of, c.project as id from event_counters c
      left join (select project, max(seq) as seq from events group by project) e on e.project = c.project where coalesce(e.seq, 0) <> c.last_seq`,
  },
];

/** The tables and indexes of a file are those that its migrations make. */
async function sqliteDrift({ ask, where }: Asking, report: Report, schema: Required<Schema>) {
  const list = "select type || ' ' || name as name, sql from sqlite_schema where name not like 'sqlite_%' order by 1";
  const applied = await checkMigrations({ ask, where }, "sqlite", report, schema);
  using fresh = new Database(":memory:");
  migrateSqlite(fresh, { where, migrations: schema.migrations.slice(0, applied) });
  compare(new Map((await ask(list)).map(entryOf)), new Map((fresh.query(list).all() as Answer[]).map(entryOf)), report);
}

async function postgresDrift({ ask, where }: Asking, report: Report) {
  await checkMigrations({ ask, where }, "postgres", report, { pending: false, migrations: MIGRATIONS });
  const found = await ask(
    "select distinct 'table ' || table_name as name, '' as sql from information_schema.tables where table_schema = current_schema()",
  );
  const wanted = ["migrations", ...Object.values(sqliteTables).map(getTableName)].map((name): [string, string] => [`table ${name}`, ""]);
  const ours = new Map(wanted); // what else lies in the database is not ours to judge
  compare(new Map(found.map(entryOf).filter(([name]) => ours.has(name))), ours, report);
}

const entryOf = ({ name, sql }: Answer) => [String(name), String(sql)] as const;

function compare(found: Map<string, string>, wanted: Map<string, string>, report: Report) {
  for (const [name, sql] of wanted)
    if (found.get(name) !== sql) report.add("schema", name, found.has(name) ? "is not as its migration makes it" : "is missing");
  for (const name of found.keys()) if (!wanted.has(name)) report.add("schema", name, "is not part of a store");
}

/** @returns how many migrations are applied */
async function checkMigrations(
  { ask, where }: Pick<Asking, "ask" | "where">,
  dialect: "sqlite" | "postgres",
  report: Report,
  { pending, migrations }: Required<Schema>,
) {
  const applied = (await ask("select name, hash from migrations order by name")) as { name: string; hash: string }[];
  try {
    const missing = checkApplied(applied, migrations, dialect, where);
    if (!pending) for (const { name } of missing) report.add("schema", name, "is not applied yet: start the hub once");
  } catch (error) {
    report.add("schema", "migrations", messageOf(error));
  }
  return applied.length;
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

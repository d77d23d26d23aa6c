// R0 and R10: a store that is not fit is refused in time, by name, and is left exactly as it was.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { chmodSync, chownSync, copyFileSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { type OpenOptions, openEngine } from "../../src/db/open.ts";
import { applyPragmas, connect, PRAGMAS, requireVersion } from "../../src/db/pragmas.ts";
import type { StoreRefused } from "../../src/db/refused.ts";
import { newId } from "../../src/protocol/ids.ts";
import { attempt, START } from "../support/engines.ts";
import { contentsOf, temporaryFolder } from "../support/folders.ts";
import { leaseRow } from "../support/rows.ts";
import { startStore } from "./store-client.ts";

const isRoot = process.geteuid?.() === 0;
const options = { clock: () => START, newId };
const open = (path: string, more: Partial<OpenOptions> = {}) => openEngine({ path, ...options, ...more });

/** A store with one lease in it, closed. */
async function makeStore(path: string, resource = "kept") {
  const engine = await open(path);
  await engine.write("p", (tx) => tx.leases.insert(leaseRow(resource)));
  await engine.close();
}

/** A store as a kill leaves it: with its log beside it. */
async function makeCrashedStore(path: string, resource = "kept") {
  const engine = await open(`${path}.live`);
  await engine.write("p", (tx) => tx.leases.insert(leaseRow(resource)));
  for (const suffix of ["", "-wal", "-holder"]) copyFileSync(`${path}.live${suffix}`, path + suffix);
  await engine.close();
  for (const suffix of ["", "-wal", "-shm", "-lock", "-holder"]) rmSync(`${path}.live${suffix}`, { force: true });
  for (const suffix of ["", "-wal", "-holder"]) chmodSync(path + suffix, 0o600);
  nobodyHolds(path);
}

/** The process that wrote this note is this one, and it lives; after a crash it would not. */
function nobodyHolds(path: string) {
  const { log } = JSON.parse(readFileSync(`${path}-holder`, "utf8"));
  writeFileSync(`${path}-holder`, JSON.stringify({ log }), { mode: 0o600 });
}

describe("R10: refused at the start", () => {
  type Case = {
    what: string;
    code: StoreRefused["code"];
    spoil: (path: string, folder: string) => void | Promise<void>;
    rootOnly?: boolean;
    fresh?: boolean;
  };
  const cases: Case[] = [
    { what: "an empty file", code: "store_empty", spoil: (path) => truncateSync(path, 0) },
    { what: "a text file", code: "store_not_sqlite", spoil: (path) => writeFileSync(path, "todo: buy milk\n".repeat(1000)) },
    { what: "garbage", code: "store_not_sqlite", spoil: (path) => writeFileSync(path, Buffer.alloc(65_536, 0xa5)) },
    { what: "half a header", code: "store_truncated", spoil: (path) => truncateSync(path, 60) },
    { what: "a file cut short", code: "store_truncated", spoil: (path) => truncateSync(path, statSync(path).size - 4096) },
    { what: "another program's database", code: "store_foreign", spoil: foreignDatabase },
    { what: "a damaged schema page", code: "store_damaged", spoil: (path) => overwrite(path, 100, Buffer.alloc(3_996, 0xff)) },
    { what: "a newer schema", code: "store_newer", spoil: (path) => change(path, "pragma user_version = 99") },
    {
      what: "a migration of another name",
      code: "store_newer",
      spoil: (path) => change(path, "update migrations set name = '0001_other' where name = '0001_hub'"),
    },
    { what: "a changed migration", code: "store_migration_changed", spoil: (path) => change(path, "update migrations set hash = 'x'") },
    { what: "a file without write permission", code: "store_read_only", spoil: (path) => chmodSync(path, 0o444) },
    { what: "a folder without write permission", code: "store_read_only", spoil: (_, folder) => chmodSync(folder, 0o555) },
    { what: "a folder that everybody may write to", code: "store_open_to_all", spoil: (_, folder) => chmodSync(folder, 0o777) },
    { what: "a folder of another user", code: "store_foreign_owner", spoil: (_, folder) => chownSync(folder, 12_345, 12_345), rootOnly: true },
    { what: "a file of another user", code: "store_foreign_owner", spoil: (path) => chownSync(path, 12_345, 12_345), rootOnly: true },
    { what: "a link in place of the file", code: "store_symlink", spoil: (path) => linkTo(path) },
    { what: "a link in place of the log", code: "store_symlink", spoil: (path) => symlinkSync("/etc/hostname", `${path}-wal`) },
    { what: "a folder in place of the file", code: "store_not_sqlite", spoil: (path) => folderInstead(path) },
    {
      what: "a log without its data file",
      code: "store_foreign_log",
      spoil: (path) => makeCrashedStore(path).then(() => rmSync(path)),
      fresh: true,
    },
    { what: "another store's log beside a closed store", code: "store_foreign_log", spoil: foreignLog },
    { what: "another store's log beside a crashed store", code: "store_foreign_log", spoil: foreignLogAfterCrash, fresh: true },
    { what: "an older copy put over a crashed store", code: "store_foreign_log", spoil: copyOverCrashed, fresh: true },
    { what: "another store's log, with nothing known of it", code: "store_foreign_log", spoil: foreignLogWithoutNote },
  ];

  for (const { what, code, spoil, rootOnly = false, fresh = false } of cases) {
    test.skipIf(rootOnly && !isRoot)(`${what} is refused as ${code}, and nothing is touched`, async () => {
      using temporary = temporaryFolder();
      const folder = `${temporary.path}/state`;
      mkdirSync(folder, { mode: 0o700 });
      const path = `${folder}/kxm.db`;
      if (!fresh) {
        await makeStore(path);
        for (const suffix of ["-lock", ...(code === "store_foreign_log" ? [] : ["-holder"])]) rmSync(path + suffix, { force: true });
      }
      await spoil(path, folder);
      const before = contentsOf(temporary.path);
      const started = performance.now();
      const { error } = await attempt(open(path));
      expect((error as StoreRefused | undefined)?.code).toBe(code);
      expect(error?.message).toContain(folder);
      expect((error as StoreRefused).hint.length).toBeGreaterThan(10);
      expect(performance.now() - started).toBeLessThan(2_000);
      chmodSync(folder, 0o700);
      expect<Record<string, string>>({ ...contentsOf(temporary.path), state: before["state"]! }).toEqual(before); // the folder's own rights were put back
    });
  }

  test("a link in place of the folder is refused, and the way out is named", async () => {
    using temporary = temporaryFolder();
    mkdirSync(`${temporary.path}/real`, { mode: 0o700 });
    symlinkSync(`${temporary.path}/real`, `${temporary.path}/state`);
    const { error } = await attempt(open(`${temporary.path}/state/kxm.db`));
    expect((error as StoreRefused).code).toBe("store_symlink");
    expect((error as StoreRefused).hint).toContain(`${temporary.path}/real`);
    expect(contentsOf(`${temporary.path}/real`)).toEqual({});
  });

  test("a process that is refused says so in one line and fails", async () => {
    using temporary = temporaryFolder();
    writeFileSync(`${temporary.path}/kxm.db`, "not a store", { mode: 0o600 });
    const script = `import { openEngine } from "${import.meta.dir}/../../src/db/open.ts";
      await openEngine({ path: process.argv.at(-1), clock: Date.now, newId: () => "x" }).catch((error) => { console.error(error.message); process.exit(3); });`;
    const child = Bun.spawn([process.execPath, "-e", script, `${temporary.path}/kxm.db`], { stderr: "pipe" });
    expect(await child.exited).toBe(3);
    expect((await new Response(child.stderr).text()).trim()).toBe(`${temporary.path}/kxm.db is not a SQLite database`);
  });
});

describe("what is not refused", () => {
  test("a crashed store without its index file opens with everything in its log", async () => {
    using temporary = temporaryFolder();
    await makeCrashedStore(`${temporary.path}/kxm.db`, "in the log");
    const engine = await open(`${temporary.path}/kxm.db`);
    expect(await engine.read.leases.find("in the log")).toBeDefined();
    await engine.close();
  });

  test("a crashed store that was moved without our note opens, because file and log fit", async () => {
    using temporary = temporaryFolder();
    await makeCrashedStore(`${temporary.path}/kxm.db`, "in the log");
    rmSync(`${temporary.path}/kxm.db-holder`);
    const engine = await open(`${temporary.path}/kxm.db`);
    expect(await engine.read.leases.find("in the log")).toBeDefined();
    await engine.close();
  });

  test("a store that crashes again and again keeps opening", async () => {
    using temporary = temporaryFolder();
    let path = `${temporary.path}/0.db`;
    for (let n = 1; n <= 5; n++) {
      const engine = await open(path);
      await engine.write("p", (tx) => tx.leases.insert(leaseRow(`lease ${n}`)));
      const next = `${temporary.path}/${n}.db`;
      for (const suffix of ["", "-wal", "-holder"]) copyFileSync(path + suffix, next + suffix);
      await engine.close();
      path = next;
    }
    const engine = await open(path);
    for (let n = 1; n <= 5; n++) expect(await engine.read.leases.find(`lease ${n}`)).toBeDefined();
    await engine.close();
  });

  test("folders and files are private under any umask, also those that were not", async () => {
    using temporary = temporaryFolder();
    const path = `${temporary.path}/a/b/kxm.db`;
    const mask = process.umask(0);
    try {
      const engine = await open(path);
      const modes = ["", "-wal", "-shm", "-lock", "-holder"].map((suffix) => statSync(path + suffix).mode & 0o777);
      expect(modes).toEqual([0o600, 0o600, 0o600, 0o600, 0o600]);
      expect(["a", "a/b"].map((name) => statSync(`${temporary.path}/${name}`).mode & 0o777)).toEqual([0o700, 0o700]);
      await engine.close();
      chmodSync(path, 0o644);
      await (await open(path)).close();
      expect(statSync(path).mode & 0o777).toBe(0o600);
    } finally {
      process.umask(mask);
    }
  });

  test(":memory: is a private file that is gone at the end", async () => {
    const engine = await open(":memory:");
    await engine.write("p", (tx) => tx.leases.insert(leaseRow("r")));
    expect(await engine.read.leases.find("r")).toBeDefined();
    await engine.close();
  });
});

describe("R0: settings of every connection", () => {
  test("each pragma of the table is in force on writer and reader", async () => {
    using temporary = temporaryFolder();
    const path = `${temporary.path}/kxm.db`;
    await makeStore(path);
    for (const role of ["writer", "reader"] as const) {
      using database = connect(path, role);
      const found = (name: string) => Object.values(database.query(`pragma ${name}`).get() as object)[0];
      const expected = {
        journal_mode: "wal",
        synchronous: 2,
        foreign_keys: 1,
        wal_autocheckpoint: 1000,
        journal_size_limit: 67_108_864,
        trusted_schema: 0,
      };
      expect(Object.fromEntries(Object.keys(expected).map((name) => [name, found(name)]))).toEqual(expected);
      expect(found("busy_timeout")).toBeLessThanOrEqual(250);
      expect(found("query_only")).toBe(role === "reader" ? 1 : 0);
    }
  });

  for (const { name, roles } of PRAGMAS) {
    const role = roles?.[0] ?? "writer";
    test(`a connection that ignores ${name} (${role}) is refused`, async () => {
      using temporary = temporaryFolder();
      await makeStore(`${temporary.path}/kxm.db`);
      using database = new Database(`${temporary.path}/kxm.db`);
      database.exec(
        "pragma temp_store = file; pragma synchronous = normal; pragma trusted_schema = 1; pragma busy_timeout = 7; pragma wal_autocheckpoint = 7",
      );
      const stubborn = {
        exec: (sql: string) => void (sql.includes(`pragma ${name} `) || database.exec(sql)),
        query: (sql: string) =>
          sql === "pragma journal_mode" && name === sql.slice(7) ? { get: () => ({ journal_mode: "delete" }) } : database.query(sql),
      } as unknown as Pick<Database, "exec" | "query">;
      expect(() => applyPragmas(stubborn, role, "it")).toThrow(`did not accept ${name}`);
    });
  }

  test("a process whose SQLite takes another setting than it was given does not start", async () => {
    using folder = temporaryFolder();
    const began = performance.now();
    const { error } = await attempt(startStore({ path: `${folder.path}/kxm.db`, mutant: "weak-setting" }));
    expect(error?.message).toContain("did not accept synchronous = full");
    expect(performance.now() - began).toBeLessThan(2_000);
  });

  test("a SQLite older than 3.51.3 is refused", () => {
    const of = (version: string) => ({ query: () => ({ get: () => ({ version }) }) }) as unknown as Pick<Database, "query">;
    for (const version of ["3.51.2", "3.43.9", "3.9.0"]) expect(() => requireVersion(of(version))).toThrow(version);
    for (const version of ["3.51.3", "3.52.0", "4.0.0"]) requireVersion(of(version));
  });
});

function change(path: string, sql: string) {
  const database = new Database(path);
  database.exec(sql);
  database.close(true); // finalises everything: or the log would go when the garbage collector pleases
}

function overwrite(path: string, at: number, bytes: Buffer) {
  const content = readFileSync(path);
  bytes.copy(content, at, 0, Math.min(bytes.length, content.length - at, 4_096 - at));
  content.writeUInt32BE(0x4b584d31, 68);
  writeFileSync(path, content);
}

function foreignDatabase(path: string) {
  rmSync(path);
  const database = new Database(path, { create: true });
  database.exec("create table recipes (name text)");
  database.close(true);
}

function folderInstead(path: string) {
  rmSync(path);
  mkdirSync(path);
}

function linkTo(path: string) {
  copyFileSync(path, `${path}.real`);
  rmSync(path);
  symlinkSync(`${path}.real`, path);
}

/** The other store is never the one under test, and its log holds pages that ours has, too. */
async function foreignLog(path: string, folder: string) {
  await makeCrashedStore(`${folder}/other.db`, "foreign");
  copyFileSync(`${folder}/other.db-wal`, `${path}-wal`);
}

async function foreignLogAfterCrash(path: string, folder: string) {
  await makeCrashedStore(path);
  await foreignLog(path, folder);
}

async function copyOverCrashed(path: string) {
  await makeStore(path);
  copyFileSync(path, `${path}.backup`);
  rmSync(`${path}-holder`);
  const engine = await open(path);
  await engine.write("p", (tx) => tx.leases.insert(leaseRow("newer")));
  const [log, note] = [readFileSync(`${path}-wal`), readFileSync(`${path}-holder`)];
  await engine.close();
  copyFileSync(`${path}.backup`, path); // as an operator does who forgets the log
  writeFileSync(`${path}-wal`, log, { mode: 0o600 });
  writeFileSync(`${path}-holder`, note, { mode: 0o600 });
  nobodyHolds(path);
}

/** The log of a database with other tables: no note, so only trying on a copy tells. */
function foreignLogWithoutNote(path: string, folder: string) {
  rmSync(`${path}-holder`, { force: true });
  const other = new Database(`${folder}/recipes.db`, { create: true });
  other.exec(
    "pragma journal_mode = wal; create table recipes (name text); insert into recipes select hex(randomblob(2000)) from json_each(json_array(1,2,3,4,5,6,7,8,9))",
  );
  copyFileSync(`${folder}/recipes.db-wal`, `${path}-wal`);
  chmodSync(`${path}-wal`, 0o600);
  other.close(true);
}

// Backup, verify, restore and doctor of a data file.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from "node:fs";
import { backUp, manifestOf } from "../../src/db/backup.ts";
import type { Engine } from "../../src/db/engine.ts";
import { figuresOfDatabase, figuresOfFile } from "../../src/db/figures.ts";
import { FENCES_PER_RESTORE } from "../../src/db/meta.ts";
import { MIGRATIONS } from "../../src/db/migrate.ts";
import { openEngine } from "../../src/db/open.ts";
import { restore } from "../../src/db/restore.ts";
import { verifyPostgres, verifySqlite } from "../../src/db/verify.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { newId } from "../../src/protocol/ids.ts";
import { attempt, POSTGRES_SERVER, postgresWorld, range, START } from "../support/engines.ts";
import { contentsOf, temporaryFolder } from "../support/folders.ts";
import { leaseRow, messageRow, syncEventRow, testedEvent } from "../support/rows.ts";

const clock = () => START;
const open = (path: string) => openEngine({ path, clock, newId });
const put = (engine: Engine, n: number) =>
  engine.write("p", async (tx) => {
    const content = `message ${n} ${"é☃".repeat(40)}`;
    const replied =
      n % 3 === 0 ? { status: "replied" as const, replyContent: `reply ${n}`, replyHash: sha256(`reply ${n}`), repliedAt: 2, endedAt: 2 } : {};
    await tx.messages.insert(
      messageRow(`msg_${String(n).padStart(6, "0")}`, await tx.messages.takeSeq("agt_b"), { content, createdAt: START - n, ...replied }),
    );
    await tx.sync.insertEvents([syncEventRow("prj", "run", n, `event ${n}`)]);
    tx.append(testedEvent("p", n));
  });

/** A store of `count` messages, closed. */
async function storeOf(path: string, count: number) {
  const engine = await open(path);
  await Promise.all(range(count).map((n) => put(engine, n + 1)));
  await engine.close();
}

describe("backup", () => {
  test("copies one moment of a store that is being written, whole and verified", async () => {
    using folder = temporaryFolder();
    const [path, target] = [`${folder.path}/kxm.db`, `${folder.path}/copy.db`];
    const engine = await open(path);
    await Promise.all(range(1_500).map((n) => put(engine, n + 1)));
    let stop = false;
    let written = 1_500;
    const writer = (async () => {
      while (!stop) await put(engine, ++written);
    })();
    const steps = new Set<string>();
    const manifest = await backUp({ path, target, now: START, onProgress: (step) => steps.add(step) });
    stop = true;
    await writer;
    expect(written).toBeGreaterThan(1_500); // the hub went on meanwhile
    expect([...steps]).toEqual(expect.arrayContaining(["pages", "messages", "sync_events", "hash"]));
    expect(manifest).toMatchObject({
      kind: "kxm.backup.v1",
      generation: engine.generation,
      schema: MIGRATIONS.length,
      createdAt: "2027-01-15T08:00:00.000Z",
    });
    expect(manifest.sha256).toBe(sha256(readFileSync(target)));
    expect(JSON.parse(readFileSync(manifestOf(target), "utf8"))).toEqual(manifest);
    expect([target, manifestOf(target)].map((name) => statSync(name).mode & 0o777)).toEqual([0o600, 0o600]);
    using copy = new Database(target, { readonly: true });
    const { messages, events, sync } = copy
      .query(
        "select (select count(*) from messages) as messages, (select max(seq) from events) as events, (select count(*) from sync_events) as sync",
      )
      .get() as Record<string, number>;
    expect(messages).toBeWithin(1_500, written + 1);
    expect([events, sync]).toEqual([messages, messages]); // nothing half-done
    await engine.close();
    expect(readdirSync(folder.path).filter((name) => name.includes("partial"))).toEqual([]);
  }, 20_000);

  test("never replaces a file, and leaves nothing behind when it fails", async () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/kxm.db`;
    await storeOf(path, 20);
    writeFileSync(`${folder.path}/taken`, "mine");
    expect((await attempt(backUp({ path, target: `${folder.path}/taken`, now: 1 }))).code).toBe("backup_exists");
    expect((await attempt(backUp({ path: `${folder.path}/none.db`, target: `${folder.path}/x`, now: 1 }))).code).toBe("backup_missing");
    const bytes = readFileSync(path);
    bytes.fill(0xff, bytes.length - 4_096 * 20, bytes.length - 4_096 * 5);
    writeFileSync(path, bytes);
    const before = contentsOf(folder.path);
    const { code, error } = await attempt(backUp({ path, target: `${folder.path}/copy.db`, now: 1 }));
    expect([code, error?.message]).toEqual(["backup_damaged", expect.stringContaining("malformed")]);
    expect(contentsOf(folder.path)).toEqual(before);
  });
});

describe("a damaged row", () => {
  test("does not keep the others from being copied and restored, and both say so", async () => {
    using folder = temporaryFolder();
    const [path, target] = [`${folder.path}/kxm.db`, `${folder.path}/copy.db`];
    await storeOf(path, 20);
    flip(path, "message 7 ");
    expect((await backUp({ path, target, now: START })).damaged).toBe(1);
    await restore({ backup: target, path, clock, newId });
    expect((await verifySqlite(path)).damage).toEqual([{ table: "messages", id: "msg_000007", what: "the content does not fit its hash" }]);
    flip(target, "message 9 "); // one more, which the manifest does not know
    rmSync(manifestOf(target));
    expect((await attempt(restore({ backup: target, path, clock, newId }))).code).toBe("backup_damaged");
  });
});

/** Changes one bit near a text that lies somewhere in a file; also in copies that SQLite left behind when it moved the row. */
function flip(path: string, text: string, offset = 2, bit = 2) {
  const bytes = readFileSync(path);
  const places: number[] = [];
  for (let at = bytes.indexOf(text); at !== -1; at = bytes.indexOf(text, at + 1)) places.push(at);
  if (places.length === 0) throw new Error(`${text} is not in ${path}`);
  for (const at of places) bytes[at + offset]! ^= 1 << bit;
  writeFileSync(path, bytes);
}

describe("verify", () => {
  test("finds every changed bit of a content, a reply or an event, and names the row", async () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/kxm.db`;
    await storeOf(path, 30);
    expect(await verifySqlite(path)).toEqual({
      ok: true,
      checked: { messages: 30, sync_events: 30, sync_conflicts: 0, workflow_journal: 0 },
      damage: [],
      damaged: 0,
      unreadable: 0,
      notChecked: [],
    });
    flip(path, "message 12 ");
    flip(path, "reply 9");
    flip(path, '"event 21"');
    const verdict = await verifySqlite(path);
    expect(verdict).toMatchObject({ ok: false, damaged: 3 });
    expect(verdict.damage).toEqual([
      { table: "messages", id: "msg_000009", what: "the reply does not fit its hash" },
      { table: "messages", id: "msg_000012", what: "the content does not fit its hash" },
      { table: "sync_events", id: "prj/run/21", what: "the event does not fit its hash" },
    ]);
  });

  test("finds random bits that integrity_check alone does not", async () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/kxm.db`;
    await storeOf(path, 200);
    const whole = readFileSync(path);
    let [missed, byPages] = [0, 0];
    const rounds = process.env["KXM_FAULTS"] === "full" ? 1_000 : 60;
    for (const _ of range(rounds)) {
      writeFileSync(path, whole);
      flip(path, `message ${1 + Math.floor(Math.random() * 200)} `, Math.floor(Math.random() * 100), Math.floor(Math.random() * 8));
      const { ok, damage } = await verifySqlite(path);
      if (ok) missed++;
      if (damage.some(({ table }) => table === "pages")) byPages++;
    }
    expect(missed).toBe(0);
    expect(byPages).toBeLessThan(rounds / 2);
  }, 60_000);

  test("finds a missing event, a counter that is behind, a changed schema and a page that cannot be read", async () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/kxm.db`;
    const cases: [string, string][] = [
      ["delete from events where seq = 5", "events are missing in the middle of the log"],
      ["delete from events where seq = 30", "the log does not end where its counter says"],
      ["update recipient_counters set last_seq = 3", "the counter is behind its newest message"],
      ["drop index messages_due", "is missing"],
      ["create table notes (text text)", "is not part of a store"],
      ["update migrations set hash = 'x'", "was made with another text"],
    ];
    for (const [change, what] of cases) {
      await storeOf(path, 30);
      const database = new Database(path);
      database.exec(change);
      database.close(true);
      expect((await verifySqlite(path)).damage.map((found) => found.what).join()).toContain(what);
      for (const name of readdirSync(folder.path)) rmSync(`${folder.path}/${name}`);
    }
    await storeOf(path, 300);
    const bytes = readFileSync(path);
    bytes.fill(0xff, bytes.length - 4_096 * 20, bytes.length - 4_096 * 5);
    writeFileSync(path, bytes);
    expect((await verifySqlite(path)).unreadable).toBeGreaterThan(0);
  });

  test.skipIf(!POSTGRES_SERVER)(
    "compares hashes, counters and tables of a PostgreSQL database, and says what it cannot check",
    async () => {
      await using world = await postgresWorld();
      await Promise.all(range(20).map((n) => put(world.engine, n + 1)));
      const good = await verifyPostgres(world.location);
      expect(good).toMatchObject({ ok: true, checked: { messages: 20, sync_events: 20 }, damaged: 0 });
      expect(good.notChecked.join()).toContain("pg_amcheck");
      await world.engine.write("p", (tx) => tx.sync.insertEvents([{ ...syncEventRow("prj", "run", 99), record: "{}" }]));
      expect((await verifyPostgres(world.location)).damage).toEqual([
        { table: "sync_events", id: "prj/run/99", what: "the event does not fit its hash" },
      ]);
    },
    20_000,
  );
});

describe("restore", () => {
  async function backedUp(folder: string) {
    const [path, backup] = [`${folder}/state/kxm.db`, `${folder}/backup.db`];
    await storeOf(path, 10);
    await backUp({ path, target: backup, now: START });
    const engine = await open(path);
    for (const n of range(5)) await put(engine, 11 + n);
    await engine.write("p", (tx) => tx.leases.insert(leaseRow("p/known", { fence: 7 })));
    const { generation } = engine;
    await engine.close();
    return { path, backup, generation };
  }

  test("puts the backup in place, keeps the old store, and makes cursors and fences of before harmless", async () => {
    using folder = temporaryFolder();
    const { path, backup, generation } = await backedUp(folder.path);
    const restored = await restore({ backup, path, clock, newId });
    expect(restored.generation).toStartWith("gen_");
    expect(restored.generation).not.toBe(generation);
    expect(restored.fenceFloor).toBe(FENCES_PER_RESTORE);
    const engine = await open(path);
    expect(engine.generation).toBe(restored.generation);
    expect(await engine.read.events.lastSeq("p")).toBe(10);
    expect(await engine.read.meta.fenceFloor()).toBe(FENCES_PER_RESTORE); // above the 7 of a lease that the backup never knew
    await put(engine, 50);
    await engine.close();
    using old = new Database(restored.keptAs!, { readonly: true });
    expect(old.query("select count(*) as n from messages").get()).toEqual({ n: 15 });
    expect([path, restored.keptAs!].map((name) => statSync(name).mode & 0o777)).toEqual([0o600, 0o600]);
  });

  test("ends sessions, sign-in links, waits and leases that the backup still holds", async () => {
    using folder = temporaryFolder();
    const [path, backup] = [`${folder.path}/kxm.db`, `${folder.path}/backup.db`];
    const engine = await open(path);
    await engine.write("p", (tx) => tx.leases.insert(leaseRow("held", { expiresAt: START + 60_000 })));
    await engine.close();
    const database = new Database(path);
    database.exec(`insert into sessions (id, token_hash, csrf_hash, role, created_at, last_seen_at, expires_at) values ('ses_1', 'a', 'b', 'admin', 1, 1, ${START * 2});
      insert into signin_links (token_hash, role, created_at, expires_at) values ('c', 'admin', 1, ${START * 2});
      insert into lease_waiters (resource, ticket, agent_id, agent_name, ttl_ms, asked_at, deadline_at) values ('held', 1, 'agt', 'Ada', 1, 1, ${START * 2})`);
    database.close(true);
    await backUp({ path, target: backup, now: START });
    await restore({ backup, path, clock, newId });
    using after = new Database(path, { readonly: true });
    expect(
      after
        .query(
          "select (select count(*) from sessions where ended_at is null) + (select count(*) from signin_links) + (select count(*) from lease_waiters) as n",
        )
        .get(),
    ).toEqual({ n: 0 });
    expect(after.query("select freed_at as at, fence from leases").get()).toEqual({ at: START, fence: 1 });
  });

  test("two restores of one backup never hand out the same fences, also when the store between them was lost", async () => {
    using folder = temporaryFolder();
    const { path, backup } = await backedUp(folder.path);
    const floors: number[] = [];
    for (const lose of [false, false, true, false]) {
      if (lose) for (const suffix of ["", "-wal", "-shm", "-holder"]) rmSync(path + suffix, { force: true });
      floors.push((await restore({ backup, path, clock, newId })).fenceFloor);
    }
    expect(floors).toEqual(floors.toSorted((a, b) => a - b));
    expect(new Set(floors).size).toBe(4);
    expect(floors.every(Number.isSafeInteger)).toBe(true);
    expect(readdirSync(`${folder.path}/state`).filter((name) => name.includes("before-restore")).length).toBe(3);
  });

  test("a store that crashed is kept with everything in its log, and its log never reaches the restored one", async () => {
    using folder = temporaryFolder();
    const { path, backup } = await backedUp(folder.path);
    const engine = await open(path);
    await put(engine, 99);
    const files = ["", "-wal"].map((suffix) => [path + suffix, readFileSync(path + suffix)] as const);
    const { log } = JSON.parse(readFileSync(`${path}-holder`, "utf8"));
    await engine.close();
    for (const [name, bytes] of files) writeFileSync(name, bytes, { mode: 0o600 });
    writeFileSync(`${path}-holder`, JSON.stringify({ log }));
    const { keptAs } = await restore({ backup, path, clock, newId });
    const restored = await open(path);
    expect(await restored.read.events.lastSeq("p")).toBe(10);
    await restored.close();
    using old = new Database(keptAs!, { readonly: true });
    expect(old.query("select max(seq) as n from events").get()).toEqual({ n: 16 });
  });

  test("refuses while a hub serves, and a backup that is damaged, changed, missing or no store; nothing is touched", async () => {
    using folder = temporaryFolder();
    const { path, backup } = await backedUp(folder.path);
    const engine = await open(path);
    expect((await attempt(restore({ backup, path, clock, newId }))).code).toBe("store_held");
    await engine.close();

    const spoiled = `${folder.path}/spoiled.db`;
    copyFileSync(backup, spoiled);
    flip(spoiled, "message 3 ");
    const changed = `${folder.path}/changed.db`;
    copyFileSync(spoiled, changed);
    copyFileSync(manifestOf(backup), manifestOf(changed));
    writeFileSync(`${folder.path}/text`, "no store");
    const before = contentsOf(`${folder.path}/state`);
    const cases = {
      [spoiled]: "backup_damaged",
      [changed]: "backup_damaged",
      [`${folder.path}/none`]: "backup_missing",
      [`${folder.path}/text`]: "store_not_sqlite",
    };
    for (const [name, code] of Object.entries(cases)) expect((await attempt(restore({ backup: name, path, clock, newId }))).code).toBe(code);
    const after = contentsOf(`${folder.path}/state`);
    expect({ ...after, "kxm.db-holder": "" }).toEqual({ ...before, "kxm.db-holder": "" }); // only the note of who held it was written anew
  });
});

describe("doctor", () => {
  test("tells sizes, versions, growth and who serves", async () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/kxm.db`;
    const engine = await open(path);
    engine.announce("http://127.0.0.1:7331");
    await Promise.all(range(40).map((n) => put(engine, n + 1)));
    const figures = await figuresOfFile(path, START, { messagesMs: 7 * 86_400_000 });
    expect(figures).toMatchObject({
      kind: "sqlite",
      generation: engine.generation,
      restores: 0,
      createdAt: START,
      schema: { applied: MIGRATIONS.length, known: MIGRATIONS.length },
    });
    expect(figures.version).toMatch(/^SQLite 3\.\d+/);
    expect(figures.bytes.data).toBe(statSync(path).size);
    expect(figures.bytes.wal).toBeGreaterThan(0);
    expect(figures.freeBytes).toBeGreaterThan(0);
    expect(figures.holder).toMatchObject({ pid: process.pid, address: "http://127.0.0.1:7331" });
    expect(figures.growth.find(({ table }) => table === "messages")).toEqual({
      table: "messages",
      rows: 40,
      oldestAt: START - 40,
      rowsPerDay: 40,
      keptMs: 604_800_000,
      steadyRows: 280,
    });
    expect(figures.growth.find(({ table }) => table === "sync_events")).toMatchObject({ rows: 40, rowsPerDay: 0, steadyRows: null });
    await engine.close();
    expect((await figuresOfFile(path, START, { messagesMs: 1 })).holder).toBeUndefined();
  });

  test.skipIf(!POSTGRES_SERVER)(
    "tells the same of a PostgreSQL database",
    async () => {
      await using world = await postgresWorld();
      await Promise.all(range(5).map((n) => put(world.engine, n + 1)));
      const figures = await figuresOfDatabase(world.location, START, { messagesMs: 86_400_000 });
      expect(figures).toMatchObject({
        kind: "postgres",
        generation: world.engine.generation,
        schema: { applied: MIGRATIONS.length, known: MIGRATIONS.length },
      });
      expect(figures.where).not.toContain("postgres:");
      expect(figures.version).toStartWith("PostgreSQL ");
      expect(figures.bytes.data).toBeGreaterThan(1_000_000);
      expect(figures.growth[0]).toMatchObject({ table: "messages", rows: 5 });
    },
    20_000,
  );
});

test("no file of a store is left open by any of this", async () => {
  using folder = temporaryFolder();
  const path = `${folder.path}/kxm.db`;
  await storeOf(path, 3);
  await backUp({ path, target: `${folder.path}/b.db`, now: START });
  await verifySqlite(path);
  await restore({ backup: `${folder.path}/b.db`, path, clock, newId });
  await figuresOfFile(path, START, { messagesMs: 1 });
  expect(existsSync(`${path}-wal`)).toBe(false);
  const open = readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder.path);
    } catch {
      return false;
    }
  });
  expect(open).toEqual([]);
});

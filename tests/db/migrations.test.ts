// R38 in small: a store is copied before it is migrated, a migration is there whole or not at all wherever the process dies, and a newer store is refused.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { copyFileSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { MIGRATIONS, type Migration, migratePostgres } from "../../src/db/migrate.ts";
import { openEngine } from "../../src/db/open.ts";
import { verifySqlite } from "../../src/db/verify.ts";
import { newId } from "../../src/protocol/ids.ts";
import { attempt, emptyDatabase, POSTGRES_SERVER, range, START } from "../support/engines.ts";
import { temporaryFolder } from "../support/folders.ts";
import { messageRow } from "../support/rows.ts";

const STRACE = Bun.which("strace");
const NEXT: Migration = {
  name: "0042_labels",
  sqlite: `create table labels (id text primary key not null, message_id text not null) strict;
    create index labels_message on labels (message_id);
    alter table messages add column label text;
    update messages set label = 'old';`,
};
const BOTH = [...MIGRATIONS, NEXT];
const open = (path: string, migrations: readonly Migration[] = MIGRATIONS, now = START) => openEngine({ path, clock: () => now, newId, migrations });

async function storeOf(path: string, count: number) {
  const engine = await open(path);
  const put = (n: number) => engine.write("p", async (tx) => tx.messages.insert(messageRow(`msg_${n}`, await tx.messages.takeSeq("agt_b"))));
  await Promise.all(range(count).map(put));
  await engine.close();
}

test("a store is copied and the copy verified before its first migration", async () => {
  using folder = temporaryFolder();
  const path = `${folder.path}/kxm.db`;
  await storeOf(path, 30);
  await (await open(path, BOTH)).close();
  const copies = readdirSync(folder.path).filter((name) => name.includes(".before-0042_labels-"));
  expect(copies).toEqual(["kxm.db.before-0042_labels-20270115T080000Z", "kxm.db.before-0042_labels-20270115T080000Z.json"]);
  expect(await verifySqlite(`${folder.path}/${copies[0]}`)).toMatchObject({ ok: true, checked: { messages: 30 } });
  using migrated = new Database(path, { readonly: true });
  expect(migrated.query("select count(*) as n from messages where label = 'old'").get()).toEqual({ n: 30 });
  expect(migrated.query("pragma user_version").get()).toEqual({ user_version: MIGRATIONS.length + 1 });
});

test("a new store and one that is up to date are not copied", async () => {
  using folder = temporaryFolder();
  await (await open(`${folder.path}/kxm.db`, BOTH)).close();
  await (await open(`${folder.path}/kxm.db`, BOTH)).close();
  expect(readdirSync(folder.path).filter((name) => name.includes("before"))).toEqual([]);
});

test("a store whose tables are not those of its migrations is copied as it is, and migrated", async () => {
  using folder = temporaryFolder();
  const path = `${folder.path}/kxm.db`;
  await storeOf(path, 3);
  const database = new Database(path);
  database.exec("create table notes (text text); update messages set content = 'changed' where id = 'msg_1'");
  database.close(true);
  await (await open(path, BOTH)).close();
  const copy = readdirSync(folder.path).find((name) => /before.*Z$/.test(name))!;
  expect(JSON.parse(readFileSync(`${folder.path}/${copy}.json`, "utf8")).damaged).toBe(2);
});

test("only the newest three copies are kept", async () => {
  using folder = temporaryFolder();
  const path = `${folder.path}/kxm.db`;
  const steps = range(5).map(
    (n): Migration => ({ name: `004${n + 2}_step`, sqlite: `create table step_${n} (id text primary key not null) strict;` }),
  );
  await storeOf(path, 1);
  for (const n of range(5)) await (await open(path, [...MIGRATIONS, ...steps.slice(0, n + 1)], START + n * 60_000)).close();
  const copies = readdirSync(folder.path).filter((name) => name.includes(".before-") && !name.endsWith(".json"));
  expect(copies.map((name) => name.match(/before-(\d+)_/)![1]).sort()).toEqual(["0044", "0045", "0046"]);
});

test("a migration that fails leaves the store as it was", async () => {
  using folder = temporaryFolder();
  const path = `${folder.path}/kxm.db`;
  await storeOf(path, 3);
  const broken: Migration = { name: "0042_broken", sqlite: `${NEXT.sqlite} insert into nowhere values (1);` };
  expect((await attempt(open(path, [...MIGRATIONS, broken]))).error?.message).toContain("no such table");
  expect(await verifySqlite(path)).toMatchObject({ ok: true });
  await (await open(path)).close();
});

test("a store of a newer schema is refused, also when its file does not say so yet", async () => {
  using folder = temporaryFolder();
  const path = `${folder.path}/kxm.db`;
  await storeOf(path, 3);
  await (await open(path, BOTH)).close();
  expect((await attempt(open(path))).code).toBe("store_newer");
  const database = new Database(path);
  database.exec(`pragma user_version = ${MIGRATIONS.length}`);
  database.close(true);
  expect((await attempt(open(path))).code).toBe("store_newer");
});

test.skipIf(!STRACE)(
  "killed at any write of a migration, the next start ends it",
  async () => {
    using folder = temporaryFolder();
    await storeOf(`${folder.path}/kxm.db`, 40);
    const script = `import { openEngine } from "${import.meta.dir}/../../src/db/open.ts";
    const { path, migrations } = JSON.parse(process.argv.at(-1));
    const engine = await openEngine({ path, clock: () => ${START}, newId: () => "x", migrations });
    await engine.close();`;
    const run = async (path: string, strace: string[]) => {
      const inject = ["-f", "-qq", "-o", ...strace];
      const child = Bun.spawn([STRACE!, ...inject, process.execPath, "-e", script, JSON.stringify({ path, migrations: BOTH })], {
        stdout: "ignore",
        stderr: "ignore",
      });
      return child.exited;
    };
    const copy = (name: string) => {
      mkdirSync(`${folder.path}/${name}`, { mode: 0o700 });
      copyFileSync(`${folder.path}/kxm.db`, `${folder.path}/${name}/kxm.db`);
      return `${folder.path}/${name}/kxm.db`;
    };
    expect(await run(copy("whole"), [`${folder.path}/trace`, "-e", "trace=pwrite64,fsync,rename"])).toBe(0);
    const counts = Object.entries(Object.groupBy(readFileSync(`${folder.path}/trace`, "utf8").matchAll(/ (\w+)\(/g), ([, call]) => call!));
    const points = counts.flatMap(([call, hits]) => range(hits!.length).map((n) => ({ call, when: n + 1 })));
    const stride = process.env["KXM_FAULTS"] === "full" ? 1 : Math.ceil(points.length / 24);
    let interrupted = 0;
    for (const { call, when } of points.filter((_, index) => index % stride === 0)) {
      const path = copy(`${call}-${when}`);
      if ((await run(path, ["/dev/null", "-e", "trace=pwrite64,fsync,rename", "-e", `inject=${call}:signal=KILL:when=${when}`])) !== 0) interrupted++;
      const engine = await open(path, BOTH);
      await engine.close();
      using database = new Database(path, { readonly: true });
      expect(database.query("select count(*) as n, count(label) as labelled from messages").get()).toEqual({ n: 40, labelled: 40 });
      expect(database.query("pragma integrity_check").get()).toEqual({ integrity_check: "ok" });
      expect(readdirSync(`${folder.path}/${call}-${when}`).filter((name) => /\.before-.*Z(-\d)?$/.test(name)).length).toBeGreaterThan(0);
    }
    expect(interrupted).toBeGreaterThan(15);
  },
  300_000,
);

if (!STRACE) test.skip("R38: install strace (apt-get install strace) to kill a migration at its writes", () => {});

test.skipIf(!POSTGRES_SERVER)(
  "several hubs that start at once on an empty database migrate it once",
  async () => {
    const { url, drop } = await emptyDatabase();
    try {
      const applied = await Promise.all(range(4).map(() => migratePostgres(url)));
      expect(applied.filter((names) => names.length > 0)).toEqual([MIGRATIONS.map(({ name }) => name)]);
      expect((await attempt(migratePostgres(url, []))).code).toBe("store_newer");
      expect((await attempt(migratePostgres(url, [{ name: MIGRATIONS[0]!.name, sqlite: "select 1;" }]))).code).toBe("store_migration_changed");
    } finally {
      await drop();
    }
  },
  30_000,
);

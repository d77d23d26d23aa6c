// Several hubs on one PostgreSQL: exact numbers from all of them, quick news from one to the other, and nothing lost when one dies, freezes or is cut off.
import { describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { openEngine } from "../../src/db/open.ts";
import type { StoreRefused } from "../../src/db/refused.ts";
import { newId } from "../../src/protocol/ids.ts";
import { attempt, collect, emptyDatabase, newDatabase, POSTGRES_SERVER, range } from "../support/engines.ts";
import { leaseRow, testedEvent } from "../support/rows.ts";
import { checkDatabase, NOTHING_WRONG, nothingYet } from "./store-checks.ts";
import { FULL, type StoreProcess, startStore } from "./store-client.ts";

const options = { clock: Date.now, newId, connections: 3 };

describe.skipIf(!POSTGRES_SERVER)("two hubs on one database", () => {
  test("an event written at one reaches a follower at the other within 500 ms", async () => {
    const { url, drop } = await newDatabase();
    const [one, two] = await Promise.all([openEngine({ url, ...options }), openEngine({ url, ...options })]);
    try {
      const delays: number[] = [];
      for (const n of range(20)) {
        const seen = collect(two, "p", 1, n);
        await two.read.events.lastSeq("p"); // it listens by now
        await one.write("p", async (tx) => tx.append(testedEvent("p", n)));
        const written = performance.now();
        expect((await seen)[0]!.seq).toBe(n + 1);
        delays.push(performance.now() - written);
      }
      expect(Math.max(...delays)).toBeLessThan(500);
      expect(delays.toSorted((a, b) => a - b)[10]!).toBeLessThan(100); // by the wake-up, not by the poll of each second
    } finally {
      await Promise.all([one.close(), two.close()]);
      await drop();
    }
  }, 30_000);

  test("numbers and fences are exact under load from both, while either is killed again and again", async () => {
    const { url, drop } = await newDatabase();
    const told = nothingYet();
    let stop = false;
    const start = () => startStore({ url });
    const hubs: Promise<StoreProcess>[] = [start(), start()];
    await Promise.all(hubs);
    const clients = range(12).map(async (client) => {
      for (let n = 0; !stop; n++) {
        const line = { op: n % 4 === 3 ? ("lease" as const) : ("send" as const), key: `${client}-${n}` };
        for (let tries = 0; !stop; tries++) {
          const answer = await (await hubs[(client + tries) % 2]!).call(line); // the other hub, when one has died
          if (answer === undefined || answer.error !== undefined) continue;
          if (line.op === "send") told.sends.set(line.key, answer.seq!);
          else told.fences.set(line.key, answer.fence!);
          break;
        }
      }
    });
    const answered = () => told.sends.size + told.fences.size;
    for (let kill = 0; kill < (FULL ? 60 : 8); kill++) {
      const wanted = answered() + 15; // both worked since the last kill
      while (answered() < wanted) await Bun.sleep(5);
      await Bun.sleep(Math.random() * 100); // the fault itself: a moment nobody chose
      const victim = await hubs[kill % 2]!;
      victim.kill();
      await victim.exited;
      hubs[kill % 2] = start();
    }
    stop = true;
    for (const hub of await Promise.all(hubs)) hub.kill();
    await Promise.all(clients);
    await settled(url);
    expect(await checkDatabase(url, told)).toEqual(NOTHING_WRONG);
    await drop();
  }, 120_000);

  /** A killed process's last COMMIT may still be on its way inside the server. */
  async function settled(url: string) {
    await using client = new SQL(url, { max: 1 });
    for (let n = 0; n < 100; n++) {
      const [{ others }] =
        await client`select count(*)::int as others from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
      if (others === 0) return;
      await Bun.sleep(20);
    }
  }

  test("a hub that froze inside a transaction gives its project back in time, and goes on after it thawed", async () => {
    const { url, drop } = await newDatabase();
    const [frozen, other] = await Promise.all([startStore({ url, stuckMs: 1_000 }), startStore({ url, stuckMs: 1_000 })]);
    const held = frozen.call({ op: "hold", key: "h" });
    await frozen.holding;
    frozen.kill("SIGSTOP");
    const began = performance.now();
    expect((await other.call({ op: "send", key: "elsewhere", project: "q" }))?.seq).toBe(1); // another project is not held up
    expect(performance.now() - began).toBeLessThan(900);
    expect((await other.call({ op: "send", key: "same" }))?.seq).toBe(1);
    expect(performance.now() - began).toBeWithin(700, 3_000);
    frozen.kill("SIGCONT");
    expect((await held)?.error).toBe("unreachable"); // its transaction was ended by the server
    expect((await frozen.call({ op: "send", key: "after" }))?.seq).toBe(2);
    await Promise.all([frozen.end(), other.end()]);
    await drop();
  }, 30_000);

  test("a rule whose connection is cut in its middle never goes on outside its transaction", async () => {
    const { url, drop } = await newDatabase();
    const engine = await openEngine({ url, ...options });
    await using admin = new SQL(`${POSTGRES_SERVER}/postgres`, { max: 1 });
    const inside = Promise.withResolvers<void>();
    const call = attempt(
      engine.write("p", async (tx) => {
        await tx.leases.insert(leaseRow("before"));
        inside.resolve();
        let cut = false;
        while (!cut) await tx.leases.find("nothing").catch(() => (cut = true)); // swallows the failure and carries on
        await tx.leases.insert(leaseRow("after")).catch(() => {});
        await tx.leases.insert(leaseRow("long after")).catch(() => {});
      }),
    );
    await inside.promise;
    await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${new URL(url).pathname.slice(1)} and state like '%transaction%' and query not like 'listen%'`;
    expect((await call).error).toMatchObject({ reason: "unreachable" });
    for (const name of ["before", "after", "long after"]) expect(await engine.read.leases.find(name)).toBeUndefined();
    expect((await attempt(engine.write("p", (tx) => tx.leases.insert(leaseRow("next"))))).error).toBeUndefined();
    await engine.close();
    await drop();
  }, 30_000);

  test("all connections cut at once: no write is lost, followers go on", async () => {
    const { url, drop } = await newDatabase();
    const engine = await openEngine({ url, ...options });
    const seen = collect(engine, "p", 12);
    const append = (n: number) => engine.write("p", async (tx) => tx.append(testedEvent("p", n)));
    for (const n of range(6)) await append(n);
    await using admin = new SQL(`${POSTGRES_SERVER}/postgres`, { max: 1 });
    await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${new URL(url).pathname.slice(1)}`;
    for (const n of range(6)) expect((await attempt(append(6 + n))).error).toBeUndefined();
    expect((await seen).map(({ seq }) => seq)).toEqual(range(12).map((n) => n + 1));
    expect((await engine.health()).ok).toBe(true);
    await engine.close();
    await drop();
  }, 30_000);

  test("of calls that race over a row that spans projects one wins, and the others run again", async () => {
    const { url, drop } = await newDatabase();
    const engine = await openEngine({ url, ...options });
    const claim = (project: string) =>
      engine.write(project, async (tx) => {
        const owner = await tx.leases.find("shared"); // not locked, and decided from
        if (owner) return owner.project;
        await tx.leases.insert(leaseRow("shared", { project }));
        return project;
      });
    const owners = await Promise.all(range(8).map((n) => claim(`p${n}`)));
    expect(new Set(owners).size).toBe(1);
    await engine.close();
    await drop();
  }, 30_000);
});

describe.skipIf(!POSTGRES_SERVER)("a database that cannot be used", () => {
  const refusal = async (url: string) => (await attempt(openEngine({ url, ...options }))).error as StoreRefused;

  test("is refused by name and without its password: no server, no database, no PostgreSQL", async () => {
    const { password } = new URL(POSTGRES_SERVER!);
    const noServer = await refusal("postgres://someone:pass-word@127.0.0.1:1/kxm");
    expect([noServer.code, noServer.message]).toEqual(["database_unreachable", "PostgreSQL at 127.0.0.1:1/kxm does not answer"]);
    const noDatabase = await refusal(`${POSTGRES_SERVER}/no_such_database`);
    expect([noDatabase.code, noDatabase.hint]).toEqual(["database_unreachable", "Create the database first."]);
    for (const { message, hint, stack } of [noServer, noDatabase])
      for (const secret of ["pass-word", password]) if (secret !== "") expect(message + hint + stack).not.toContain(secret);
    expect((await refusal("mysql://localhost/kxm")).code).toBe("database_unsuitable");
  }, 20_000);

  test("is refused when it would not keep our text", async () => {
    const name = newId("hub").replace("hub_", "kxm_a");
    await using admin = new SQL(`${POSTGRES_SERVER}/postgres`, { max: 1 });
    await admin.unsafe(`create database ${name} encoding 'SQL_ASCII' template template0 lc_collate 'C' lc_ctype 'C'`);
    const { code, message } = await refusal(`${POSTGRES_SERVER}/${name}`);
    expect([code, message]).toEqual(["database_unsuitable", expect.stringContaining("SQL_ASCII")]);
    await admin.unsafe(`drop database ${name} with (force)`);
  }, 20_000);

  test("is refused when its user may not make tables", async () => {
    const { url, drop } = await emptyDatabase();
    const role = newId("hub").replace("hub_", "kxm_r");
    await using admin = new SQL(`${POSTGRES_SERVER}/postgres`, { max: 1 });
    await admin.unsafe(`create role ${role} login password '${role}'`);
    const { host, pathname } = new URL(url);
    const { code, message } = await refusal(`postgres://${role}:${role}@${host}${pathname}`);
    expect([code, message]).toEqual(["database_unsuitable", expect.stringContaining("permission denied")]);
    await drop();
    await admin.unsafe(`drop role ${role}`);
  }, 20_000);

  test("answers 503 while the server is gone, and goes on when it is back", async () => {
    const { url, drop } = await newDatabase();
    const name = new URL(url).pathname.slice(1);
    const engine = await openEngine({ url, ...options });
    await using admin = new SQL(`${POSTGRES_SERVER}/postgres`, { max: 1 });
    await admin.unsafe(`alter database ${name} with allow_connections false`); // as a server that is being restarted
    await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
    const put = (n: number) => attempt(engine.write("p", (tx) => tx.leases.insert(leaseRow(`${n}`))));
    expect((await put(1)).error).toMatchObject({ code: "storage_unavailable" });
    expect((await engine.health()).ok).toBe(false);
    await admin.unsafe(`alter database ${name} with allow_connections true`);
    expect((await put(2)).error).toBeUndefined();
    expect((await engine.health()).ok).toBe(true);
    await engine.close();
    await drop();
  }, 30_000);
});

// The routes of leases on both engines: what the wire contract promises, line by line, and our waiting, checking and taking away.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { AgentRow } from "../../src/db/schema.ts";
import * as rules from "../../src/hub/lease-rules.ts";
import * as leases from "../../src/hub/leases.ts";
import { LEASE_RETENTION_MS, LEASE_WAITERS_MAX } from "../../src/protocol/limits.ts";
import { WORLDS } from "../support/engines.ts";
import { ADMIN_TOKEN, type Fleet, openFleet, until } from "../support/fleet.ts";

const iso = (ms: number) => new Date(ms).toISOString();

describe.each(WORLDS)("%s leases", (kind, open) => {
  let it: Fleet;
  let [ada, bob, cy]: AgentRow[] = [] as unknown as [AgentRow, AgentRow, AgentRow];
  beforeAll(async () => {
    it = await openFleet(open);
    [ada, bob, cy] = [await it.agent("Ada"), await it.agent("Bob"), await it.agent("Cy")];
  }, 30_000);
  afterAll(() => it[Symbol.asyncDispose]());

  let names = 0;
  const fresh = () => `branch:${++names}`;
  const ask = (who: AgentRow | undefined, name: string, verb: string, body: unknown = {}) =>
    it.call(who, "POST", `/v1/leases/${encodeURIComponent(name)}/${verb}`, body);
  const acquire = (who: AgentRow, name: string, body: unknown = {}) => ask(who, name, "acquire", body);
  const waitersOf = async (name: string) =>
    (await it.call(ada, "GET", `/v1/leases/${encodeURIComponent(name)}`)).body.waiting?.map(({ agentName }: any) => agentName) ?? [];

  test("a first grant has token 1 and the whole record", async () => {
    const name = fresh();
    const { status, body } = await acquire(ada!, name, { ttlMs: 60_000 });
    expect(status).toBe(200);
    expect(body).toEqual({
      lease: {
        resource: `p/${name}`,
        project: "p",
        name,
        holderAgentId: ada!.id,
        holderAgentName: "Ada",
        fencingToken: 1,
        acquiredAt: iso(it.clock.now),
        expiresAt: iso(it.clock.now + 60_000),
      },
      renewed: false,
    });
  });

  test("without a body the lease lasts five minutes", async () => {
    const { body } = await acquire(ada!, fresh());
    expect(body.lease.expiresAt).toBe(iso(it.clock.now + 300_000));
  });

  test("the holder who acquires again keeps token and start and gets a new end", async () => {
    const name = fresh();
    const first = (await acquire(ada!, name, { ttlMs: 60_000 })).body.lease;
    it.clock.now += 10_000;
    const again = (await acquire(ada!, name, { ttlMs: 60_000 })).body;
    expect(again).toEqual({ lease: { ...first, expiresAt: iso(it.clock.now + 60_000) }, renewed: true });
  });

  test("a lease that somebody else holds is refused with its holder, its age and its line", async () => {
    const name = fresh();
    await acquire(ada!, name, { ttlMs: 60_000 });
    it.clock.now += 5_000;
    const { status, body } = await acquire(bob!, name);
    expect(status).toBe(409);
    expect(body.code).toBe("lease_held");
    expect(body.lease).toMatchObject({ holderAgentId: ada!.id, holderAgentName: "Ada", fencingToken: 1, heldForMs: 5_000, waiters: 0 });
    expect(body.hint).toBeString();
  });

  test("a lapsed lease goes to whoever asks next, also to its last holder, with a higher token", async () => {
    const name = fresh();
    await acquire(ada!, name, { ttlMs: 5_000 });
    it.clock.now += 4_999;
    expect((await acquire(bob!, name)).body.code).toBe("lease_held");
    it.clock.now += 1;
    const own = (await acquire(ada!, name, { ttlMs: 5_000 })).body;
    expect([own.lease.fencingToken, own.renewed, own.lease.acquiredAt]).toEqual([2, false, iso(it.clock.now)]);
    it.clock.now += 5_000;
    expect((await acquire(bob!, name)).body.lease.fencingToken).toBe(3);
  });

  test("tokens rise over release, expiry, sweep, retention, a restore's floor and a restart, for ever", async () => {
    const name = fresh();
    const tokens: number[] = [];
    const grant = async (who: AgentRow) => {
      const { lease } = (await acquire(who, name, { ttlMs: 5_000 })).body;
      tokens.push(lease.fencingToken);
      return lease.fencingToken;
    };
    await ask(ada, name, "release", { fencingToken: await grant(ada!) });
    await grant(bob!);
    it.clock.now += 5_000;
    await leases.expireLapsed(it.hub);
    await grant(ada!);
    it.clock.now += 8 * 86_400_000;
    await leases.expireLapsed(it.hub);
    expect(await leases.forgetLapsed(it.hub, it.clock.now - LEASE_RETENTION_MS)).toBeGreaterThan(0);
    expect((await it.call(ada, "GET", `/v1/leases/${name}`)).body.code).toBe("lease_not_found");
    await ask(bob, name, "release", { fencingToken: await grant(bob!) });
    expect(tokens).toEqual([1, 2, 3, 4]);
    await it.hub.engine.write("", (tx) => tx.meta.put("fence_floor", "100"));
    await ask(bob, name, "release", { fencingToken: await grant(bob!) });
    expect((await acquire(ada!, fresh(), {})).body.lease.fencingToken).toBe(101);
    expect(tokens.at(-1)).toBe(101);
    await it.hub.engine.write("", (tx) => tx.meta.put("fence_floor", "0"));
    expect(await grant(ada!)).toBe(102);
  });

  test("renew asks for the token, the holder and a live lease, in this order", async () => {
    const name = fresh();
    const renew = (who: AgentRow, body: unknown) => ask(who, name, "renew", body);
    expect((await renew(ada!, {})).body.code).toBe("lease_token_required");
    for (const fencingToken of ["1", 1.5, 0, -1, true, 2 ** 53]) expect((await renew(ada!, { fencingToken })).status).toBe(400);
    expect((await renew(ada!, { fencingToken: "1" })).body.code).toBe("protocol_error");
    expect((await renew(ada!, { fencingToken: 1 })).body.code).toBe("lease_not_found");
    const { lease } = (await acquire(ada!, name, { ttlMs: 5_000 })).body;
    expect(await renew(bob!, { fencingToken: 1 })).toMatchObject({
      status: 409,
      body: { code: "lease_superseded", lease: { holderAgentName: "Ada" } },
    });
    expect((await renew(ada!, { fencingToken: 2 })).body.code).toBe("lease_superseded");
    it.clock.now += 3_000;
    expect((await renew(ada!, { fencingToken: 1, ttlMs: 5_000 })).body).toEqual({
      lease: { ...lease, expiresAt: iso(it.clock.now + 5_000) },
      renewed: true,
    });
    it.clock.now += 5_000;
    const late = await renew(ada!, { fencingToken: 1 });
    expect([late.status, late.body.code, late.body.lease.state, late.body.lease.heldForMs]).toEqual([409, "lease_expired", "lapsed", 8_000]);
    await leases.expireLapsed(it.hub);
    expect((await renew(ada!, { fencingToken: 1 })).body.code).toBe("lease_expired");
  });

  test("release frees, also after the end; a stranger, a stale token and a free lease are refused", async () => {
    const name = fresh();
    const release = (who: AgentRow, body: unknown) => ask(who, name, "release", body);
    expect((await release(ada!, {})).body.code).toBe("lease_token_required");
    expect(await release(ada!, { fencingToken: 1 })).toMatchObject({ status: 404, body: { code: "lease_not_found" } });
    const { lease } = (await acquire(ada!, name, { ttlMs: 5_000 })).body;
    expect((await release(bob!, { fencingToken: 1 })).body.code).toBe("lease_superseded");
    expect((await release(ada!, { fencingToken: 7 })).body.code).toBe("lease_superseded");
    expect((await release(ada!, { fencingToken: 1 })).body).toEqual({ released: true, lease });
    expect((await release(ada!, { fencingToken: 1 })).body.code).toBe("lease_not_found");
    await acquire(ada!, name, { ttlMs: 5_000 });
    it.clock.now += 9_000;
    expect((await release(ada!, { fencingToken: 2 })).status).toBe(200);
  });

  test("times and names outside their bounds are refused and nothing is stored", async () => {
    const name = fresh();
    for (const ttlMs of [4_999, 600_001, 5_000.5, "5000", null]) expect((await acquire(ada!, name, { ttlMs })).body.code).toBe("protocol_error");
    for (const waitMs of [-1, 30_001, "1"]) expect((await acquire(ada!, name, { waitMs })).body.code).toBe("protocol_error");
    expect((await acquire(ada!, "x".repeat(201))).body.code).toBe("protocol_error");
    expect((await acquire(ada!, "   ")).body.code).toBe("protocol_error");
    expect((await it.call(ada, "GET", `/v1/leases/${name}`)).status).toBe(404);
  });

  test("a name may hold slashes and anything else, and is its own resource", async () => {
    for (const name of ["file:src/a b.ts", "ünïcødé/…", "a%2Fb", "A", "a", `<script>alert("x")</script>`]) {
      const { status, body } = await acquire(ada!, name);
      expect([status, body.lease.name, body.lease.fencingToken]).toEqual([200, name, 1]);
    }
  });

  test("projects with a slash in their name share nothing", async () => {
    const one = await it.agent("One", "a");
    const two = await it.agent("Two", "a/b");
    expect((await acquire(one, "b/c")).body.lease.resource).toBe("a/b/c");
    expect((await acquire(two, "c")).body.lease).toMatchObject({ resource: "a/b/c", fencingToken: 1, holderAgentName: "Two" });
  });

  test("a token is valid while its lease lives, whoever presents it, and is refused after", async () => {
    const name = fresh();
    const check = (body: unknown, who: AgentRow | undefined = bob) => ask(who, name, "check", body);
    expect((await check({ fencingToken: 1 })).body.code).toBe("lease_not_found");
    await acquire(ada!, name, { ttlMs: 5_000 });
    expect((await check({})).body.code).toBe("lease_token_required");
    expect(await check({ fencingToken: 1 })).toMatchObject({ status: 200, body: { valid: true, lease: { fencingToken: 1, state: "held" } } });
    expect((await check({ fencingToken: 2 })).body.code).toBe("lease_superseded");
    it.clock.now += 5_000;
    expect((await check({ fencingToken: 1 })).body.code).toBe("lease_expired");
    await acquire(bob!, name);
    expect((await check({ fencingToken: 1 })).body).toMatchObject({ code: "lease_superseded", lease: { fencingToken: 2 } });
    const viewer = await it.token("viewer");
    expect((await it.call(viewer, "POST", `/v1/leases/${name}/check`, { fencingToken: 2, project: "p" })).status).toBe(200);
    expect((await it.call(viewer, "POST", `/v1/leases/${name}/check`, { fencingToken: 2 })).body.code).toBe("protocol_error");
  });

  test("the line is served in order, by the very call that frees the resource", async () => {
    const name = fresh();
    await acquire(ada!, name);
    const bobs = acquire(bob!, name, { waitMs: 30_000, ttlMs: 60_000 });
    await until(async () => (await waitersOf(name)).length === 1);
    const cys = acquire(cy!, name, { waitMs: 30_000 });
    await until(async () => (await waitersOf(name)).length === 2);
    expect(await waitersOf(name)).toEqual(["Bob", "Cy"]);
    expect((await acquire(await it.agent(`D${names}`), name)).body.lease.waiters).toBe(2);
    await ask(ada, name, "release", { fencingToken: 1 });
    const given = await bobs;
    expect(given).toMatchObject({ status: 200, body: { renewed: false, lease: { fencingToken: 2, holderAgentName: "Bob" } } });
    expect(given.body.lease.expiresAt).toBe(iso(it.clock.now + 60_000));
    await ask(bob, name, "release", { fencingToken: 2 });
    expect((await cys).body.lease.fencingToken).toBe(3);
    expect(await waitersOf(name)).toEqual([]);
  });

  test("somebody who comes after the end does not pass those who wait", async () => {
    const name = fresh();
    await acquire(ada!, name, { ttlMs: 5_000 });
    const bobs = acquire(bob!, name, { waitMs: 30_000 });
    await until(async () => (await waitersOf(name)).length === 1);
    it.clock.now += 5_000; // no sweep has run
    expect((await acquire(cy!, name)).body).toMatchObject({ code: "lease_held", lease: { holderAgentName: "Bob", fencingToken: 2 } });
    expect((await bobs).body.lease.fencingToken).toBe(2);
  });

  test("the sweep grants at the moment of expiry and says when it is due next", async () => {
    do
      it.clock.now += 3_600_000; // whatever other tests hold or wait for ends first
    while ((await leases.expireLapsed(it.hub)) > 0);
    const name = fresh();
    await acquire(ada!, name, { ttlMs: 5_000 });
    const bobs = acquire(bob!, name, { waitMs: 30_000, ttlMs: 5_000 });
    await until(async () => (await waitersOf(name)).length === 1);
    expect(await leases.nextLapseAt(it.hub.engine.read)).toBe(it.clock.now + 5_000);
    it.clock.now += 4_999;
    expect(await leases.expireLapsed(it.hub)).toBe(0);
    it.clock.now += 1;
    expect(await leases.expireLapsed(it.hub)).toBe(1);
    expect((await bobs).body.lease).toMatchObject({ fencingToken: 2, acquiredAt: iso(it.clock.now) });
    expect(await leases.expireLapsed(it.hub)).toBe(0);
  });

  test("a waiter whose own deadline passed is never granted", async () => {
    const name = fresh();
    await acquire(ada!, name, { ttlMs: 60_000 });
    const bobs = acquire(bob!, name, { waitMs: 10_000 });
    await until(async () => (await waitersOf(name)).length === 1);
    const cys = acquire(cy!, name, { waitMs: 30_000 });
    await until(async () => (await waitersOf(name)).length === 2);
    it.clock.now += 10_000; // Bob's deadline, to the millisecond
    await ask(ada, name, "release", { fencingToken: 1 });
    expect((await cys).body.lease).toMatchObject({ holderAgentName: "Cy", fencingToken: 2 });
    await leases.expireLapsed(it.hub);
    expect(await bobs).toMatchObject({ status: 409, body: { code: "lease_held", lease: { holderAgentName: "Cy" } } });
  });

  test("a wait ends by itself at its deadline", async () => {
    const name = fresh();
    await acquire(ada!, name);
    expect(await acquire(bob!, name, { waitMs: 30 })).toMatchObject({ status: 409, body: { code: "lease_held", lease: { waiters: 0 } } });
    expect(await waitersOf(name)).toEqual([]);
  });

  test("a client that hung up leaves the line", async () => {
    const name = fresh();
    await acquire(ada!, name);
    const hangUp = new AbortController();
    const bobs = it.call(bob, "POST", `/v1/leases/${name}/acquire`, { waitMs: 30_000 }, { signal: hangUp.signal });
    await until(async () => (await waitersOf(name)).length === 1);
    hangUp.abort();
    await bobs.catch(() => {});
    await until(async () => (await waitersOf(name)).length === 0);
    await ask(ada, name, "release", { fencingToken: 1 });
    expect((await it.call(ada, "GET", `/v1/leases/${name}`)).body.code).toBe("lease_not_found");
  });

  test("what was granted to a client that had hung up goes on to the next", async () => {
    const never = new AbortController().signal;
    const name = fresh();
    await acquire(ada!, name);
    const wait = leases.acquire(it.hub, bob!, { name, ttlMs: 60_000, waitMs: 30_000 }, { until: never, gone: new AbortController().signal });
    await until(async () => (await waitersOf(name)).length === 1);
    await ask(ada, name, "release", { fencingToken: 1 });
    expect((await wait).lease.fencingToken).toBe(2);
    // The same with a client that is gone by the time of the grant: the lease is free again, and its token is used up.
    const later = fresh();
    await acquire(ada!, later);
    const hungUp = new AbortController();
    const second = leases.acquire(it.hub, bob!, { name: later, ttlMs: 60_000, waitMs: 30_000 }, { until: never, gone: hungUp.signal });
    await until(async () => (await waitersOf(later)).length === 1);
    const released = ask(ada, later, "release", { fencingToken: 1 });
    hungUp.abort();
    await Promise.allSettled([second, released]);
    await until(async () => (await it.call(ada, "GET", `/v1/leases/${later}`)).status === 404);
    expect((await acquire(cy!, later)).body.lease.fencingToken).toBeGreaterThanOrEqual(2);
  });

  test("what a client that had hung up came back for, be it within the same millisecond, stays its own", async () => {
    const granted = async () => {
      const name = fresh();
      const { fencingToken } = (await acquire(bob!, name)).body.lease;
      return { name, giveBack: () => it.hub.engine.write("p", (tx) => rules.giveBack(tx, rules.resourceOf("p", name), bob!.id, fencingToken)) };
    };
    const [left, back] = [await granted(), await granted()];
    expect((await acquire(bob!, back.name)).body.renewed).toBe(true);
    await left.giveBack();
    await back.giveBack();
    expect((await ask(cy, left.name, "acquire")).body.lease.fencingToken).toBe(2);
    expect((await ask(cy, back.name, "acquire")).body.code).toBe("lease_held");
  });

  test("the line has a hundred places; who comes after that is refused at once, however long it would wait", async () => {
    const name = fresh();
    await acquire(ada!, name);
    const stranger = (id: string) => ({ id, name: id, project: "p" });
    const kinds = await it.hub.engine.write("p", async (tx) => {
      const asked: string[] = [];
      for (let place = 0; place <= LEASE_WAITERS_MAX; place++)
        asked.push((await rules.acquire(tx, stranger(`agent_${place}`), { name, ttlMs: 60_000, waitMs: 30_000 })).kind);
      return asked;
    });
    expect(kinds.filter((asked) => asked === "waiting")).toHaveLength(LEASE_WAITERS_MAX);
    expect(kinds.at(-1)).toBe("held");
    expect((await acquire(bob!, name, { waitMs: 30_000 })).body).toMatchObject({ code: "lease_held", lease: { waiters: LEASE_WAITERS_MAX } });
  });

  test("an agent that stands in line twice is granted once", async () => {
    const name = fresh();
    await acquire(ada!, name);
    const both = [acquire(bob!, name, { waitMs: 30_000 }), acquire(bob!, name, { waitMs: 30_000 })];
    await until(async () => (await waitersOf(name)).length === 2);
    await ask(ada, name, "release", { fencingToken: 1 });
    const tokens = (await Promise.all(both)).map(({ body }) => body.lease.fencingToken);
    expect(tokens).toEqual([2, 2]);
    expect(await waitersOf(name)).toEqual([]);
  });

  test("a waiter does not take an older grant of the same agent for its own, however far behind the log is followed", async () => {
    const name = fresh();
    await ask(bob, name, "release", { fencingToken: (await acquire(bob!, name)).body.lease.fencingToken });
    await acquire(ada!, name);
    const feeds = { ...it.hub.feeds, join: async () => ({ position: 0, leave() {} }) };
    const wait = { until: AbortSignal.timeout(50), gone: new AbortController().signal };
    const refused = await leases
      .acquire({ ...it.hub, feeds } as typeof it.hub, bob!, { name, ttlMs: 60_000, waitMs: 50 }, wait)
      .catch((error) => error.code);
    expect(refused).toBe("lease_held");
  });

  test("an operator takes a lease away with a reason, which the audit log keeps, and the line is served", async () => {
    const name = fresh();
    const operator = await it.token("operator");
    const take = (who: string | AgentRow | undefined, body: unknown) => it.call(who, "POST", `/v1/leases/${name}/force-release`, body);
    expect((await take(operator, { project: "p", reason: "x" })).body.code).toBe("lease_not_found");
    await acquire(ada!, name);
    const bobs = acquire(bob!, name, { waitMs: 30_000 });
    await until(async () => (await waitersOf(name)).length === 1);
    expect((await take(operator, { project: "p" })).body.code).toBe("protocol_error");
    expect((await take(await it.token("viewer"), { project: "p", reason: "x" })).body.code).toBe("role_forbidden");
    expect((await take(await it.token("operator", "other"), { project: "p", reason: "x" })).body.code).toBe("role_forbidden");
    expect((await take(ada, { project: "p", reason: "x" })).status).toBe(401);
    const taken = await take(operator, { project: "p", reason: "Ada's machine is lost" });
    expect(taken).toMatchObject({ status: 200, body: { released: true, lease: { holderAgentName: "Ada" } } });
    expect((await bobs).body.lease.fencingToken).toBe(2);
    const events = await it.hub.engine.read.events.after("p", 0, 10_000);
    const taking = events.findLast(({ type }) => type === "force_released")!;
    expect(taking.actor).toStartWith("tok_");
    expect((await ask(ada, name, "renew", { fencingToken: 1 })).body.code).toBe("lease_superseded");
  });

  test("a page of held leases follows the names; lapsed ones are listed apart", async () => {
    const reader = await it.agent("Reader", "pages");
    for (const name of ["c", "a", "b", "e", "d"]) await acquire(reader, name, { ttlMs: name === "e" ? 5_000 : 60_000 });
    const list = async (query: string, who: AgentRow | string = reader) => (await it.call(who, "GET", `/v1/leases?${query}`)).body;
    const first = await list("limit=3");
    expect(first.leases.map(({ name }: any) => name)).toEqual(["a", "b", "c"]);
    const second = await list(`limit=3&after=${first.next}`);
    expect([second.leases.map(({ name }: any) => name), second.next]).toEqual([["d", "e"], undefined]);
    it.clock.now += 5_000;
    await leases.expireLapsed(it.hub);
    expect((await list("")).leases.map(({ name }: any) => name)).toEqual(["a", "b", "c", "d"]);
    expect((await list("state=lapsed")).leases).toMatchObject([{ name: "e", state: "lapsed", heldForMs: 5_000, waiters: 0 }]);
    expect((await list("project=pages", ADMIN_TOKEN)).leases).toHaveLength(4);
    expect((await list("", ADMIN_TOKEN)).code).toBe("protocol_error");
    expect((await list("", await it.token("viewer", "pages"))).leases).toHaveLength(4);
    expect((await list("project=p", await it.token("viewer", "pages"))).code).toBe("role_forbidden");
    expect((await list("limit=201")).code).toBe("protocol_error");
    expect((await list("project=p", bob)).leases.every(({ project }: any) => project === "p")).toBe(true);
  });

  test("an agent's own project is the only one it sees, and an unknown key sees nothing", async () => {
    const stranger = await it.agent("Stranger", "elsewhere");
    const name = fresh();
    await acquire(ada!, name);
    expect((await it.call(stranger, "GET", `/v1/leases/${name}`)).status).toBe(404);
    expect((await acquire(stranger, name)).body.lease.resource).toBe(`elsewhere/${name}`);
    expect((await acquire({ ...ada!, id: "agt_unknown" }, name)).body.code).toBe("invalid_agent_identity");
    expect((await it.call(undefined, "GET", `/v1/leases/${name}`)).status).toBe(401);
  });

  test("each change is one event of the log, and the counters follow the contract", async () => {
    const before = (await it.log("log")).length;
    const own = await it.agent("Own", "log");
    const read = () => ["leases_granted", "leases_refused", "leases_released"].map((name) => it.hub.metrics.read().get(name as "leases_granted")!);
    const start = read();
    await acquire(own, "x", { ttlMs: 5_000 });
    await ask(own, "x", "renew", { fencingToken: 1, ttlMs: 5_000 });
    await ask(own, "x", "renew", { fencingToken: 9 });
    await ask(own, "x", "release", { fencingToken: 1 });
    await acquire(own, "x", { ttlMs: 5_000 });
    it.clock.now += 5_000;
    await leases.expireLapsed(it.hub);
    expect((await it.log("log")).slice(before)).toEqual(["acquired", "renewed", "released", "acquired", "lapsed"].map((type) => `leases.${type}`));
    expect(read().map((count, index) => count - start[index]!)).toEqual([3, 1, 1]);
  });

  test("a hub that stops answers those who wait", async () => {
    const other = await it.another();
    const name = fresh();
    await acquire(ada!, name);
    const bobs = other.call(bob, "POST", `/v1/leases/${name}/acquire`, { waitMs: 30_000 });
    await until(async () => (await waitersOf(name)).length === 1);
    other.stop();
    expect(await bobs).toMatchObject({ status: 503, body: { code: "shutting_down" } });
    expect(await waitersOf(name)).toEqual([]);
  });

  test(`a release through one hub serves those who wait at another (${kind === "postgres" ? "two processes' worth of connections" : "two seats"})`, async () => {
    const other = await it.another();
    const name = fresh();
    await acquire(ada!, name);
    const line: Promise<{ body: any }>[] = [];
    const queue: AgentRow[] = [];
    for (let n = 0; n < 10; n++) {
      const agent = await it.agent(`W${name}${n}`);
      queue.push(agent);
      line.push((n % 2 ? it : other).call(agent, "POST", `/v1/leases/${name}/acquire`, { waitMs: 30_000 }));
      await until(async () => (await waitersOf(name)).length === n + 1);
    }
    await ask(ada, name, "release", { fencingToken: 1 });
    for (const [n, waiting] of line.entries()) {
      const { lease } = (await waiting).body;
      expect([lease.holderAgentId, lease.fencingToken]).toEqual([queue[n]!.id, n + 2]);
      await (n % 2 ? other : it).call(queue[n], "POST", `/v1/leases/${name}/release`, { fencingToken: n + 2 });
    }
  });

  test("32 agents over two hubs: one holder at a time, every token once", async () => {
    const other = await it.another();
    const name = fresh();
    const crowd = await Promise.all(Array.from({ length: 32 }, (_, n) => it.agent(`C${name}${n}`)));
    const tokens: number[] = [];
    let holders = 0;
    await Promise.all(
      crowd.map(async (agent, n) => {
        const hub = n % 2 ? it : other;
        const { status, body } = await hub.call(agent, "POST", `/v1/leases/${name}/acquire`, { waitMs: 30_000 });
        expect(status).toBe(200);
        expect(++holders).toBe(1);
        tokens.push(body.lease.fencingToken);
        holders--;
        await hub.call(agent, "POST", `/v1/leases/${name}/release`, { fencingToken: body.lease.fencingToken });
      }),
    );
    expect(tokens).toEqual(Array.from({ length: 32 }, (_, n) => n + 1));
  });
});

// Leases that a client keeps: renewed by themselves, and a signal the moment they may be somebody else's.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { registerAgent } from "../../src/client/calls.ts";
import { type Connection, HubRefusal, HubUnreachable } from "../../src/client/http.ts";
import { type HubClient, hubClient } from "../../src/client/hub-client.ts";
import { type HeldLease, LeaseLost } from "../../src/client/leases.ts";
import { sqliteWorld } from "../support/engines.ts";
import { ADMIN_TOKEN, type Fleet, openFleet, until } from "../support/fleet.ts";

let it: Fleet;
let server: ReturnType<Fleet["listen"]>;
let stop: AbortController;
const QUICK = { firstMs: 1, maxMs: 5 };
const OFTEN = { renewEveryMs: 5 };

beforeEach(async () => {
  stop = new AbortController();
  it = await openFleet(sqliteWorld);
  server = it.listen();
});
afterEach(async () => {
  stop.abort();
  await server.stop();
  await it[Symbol.asyncDispose]();
});

async function join(name: string, more: Partial<Connection> = {}): Promise<HubClient> {
  const { agent, agentKey } = await registerAgent({ url: server.url }, { name, project: "p" });
  return hubClient({ url: server.url, ...more }, { id: agent.id, key: agentKey }, { signal: stop.signal, backoff: QUICK });
}
const lostWith = async ({ signal }: HeldLease): Promise<LeaseLost> => {
  await until(() => signal.aborted, "the loss");
  return signal.reason as LeaseLost;
};
const refused = (error: unknown) => (error instanceof HubRefusal ? error.code : (error as Error).name);

test("a held lease is renewed by itself, under one token, until it is released", async () => {
  const [ada, bob] = [await join("ada"), await join("bob")];
  const lease = await ada.leases.hold("branch:main", OFTEN);
  const first = lease.lease.expiresAt;
  for (let minute = 0; minute < 10; minute++) {
    const before = lease.lease.expiresAt;
    it.clock.now += 60_000; // ten times this is more than the lease would last alone
    await until(() => lease.lease.expiresAt > before, "a renewal");
  }
  expect(lease.lease.expiresAt > first).toBe(true);
  expect([lease.fencingToken, (await ada.leases.check("branch:main", 1)).valid]).toEqual([1, true]);
  expect(await bob.leases.acquire("branch:main").catch(refused)).toBe("lease_held");
  await lease.release();
  expect(lease.signal.aborted).toBe(false);
  expect((await bob.leases.acquire("branch:main")).lease.fencingToken).toBe(2);
  await lease.release(); // again: nothing happens to the next holder
  expect((await bob.leases.check("branch:main", 2)).valid).toBe(true);
});

test("a lease that an operator took away fires the signal at once and is not taken back", async () => {
  const [ada, bob] = [await join("ada"), await join("bob")];
  const lease = await ada.leases.hold("deploy", OFTEN);
  const taken = await it.call(ADMIN_TOKEN, "POST", "/v1/leases/deploy/force-release", { project: "p", reason: "stuck" });
  expect(taken.status).toBe(200);
  const reason = await lostWith(lease);
  expect(reason).toBeInstanceOf(LeaseLost);
  expect([reason.lease, refused(reason.cause)]).toEqual(["deploy", "lease_not_found"]);
  await lease.release();
  expect((await bob.leases.acquire("deploy")).lease.fencingToken).toBe(2);
});

test("while the hub is away the lease is lost when its time is over by the holder's own clock, and not before", async () => {
  let away = false;
  let renewals = 0;
  const asked: number[] = [];
  const fetch_ = async (request: Request) => {
    if (away) throw new TypeError("the line broke");
    if (request.url.endsWith("/renew")) renewals++;
    asked.push(performance.now());
    const lease = { name: "deploy", fencingToken: 1, expiresAt: new Date().toISOString() };
    return Response.json({ lease, renewed: renewals > 0 });
  };
  const ada = hubClient({ url: "http://hub.invalid", fetch: fetch_ }, { id: "agt_1", key: "k" }, { signal: stop.signal, backoff: QUICK });
  const ttlMs = 150;
  const lease = await ada.leases.hold("deploy", { ttlMs, renewEveryMs: 10 });
  await until(() => renewals >= 3, "renewals");
  expect(lease.signal.aborted).toBe(false);
  away = true;
  const reason = await lostWith(lease);
  expect(reason.message).toContain("could not be renewed in time");
  expect(reason.cause).toBeInstanceOf(HubUnreachable);
  expect(performance.now() - asked.at(-1)!).toBeGreaterThan(ttlMs / 2); // counted from before the request, which a busy machine sends late
});

test("trouble that passes does not lose it", async () => {
  let trouble = 0;
  const ada = await join("ada", {
    fetch: async (request) => {
      if (!request.url.endsWith("/renew") || trouble >= 3) return fetch(request);
      trouble++;
      if (trouble === 1) throw new TypeError("the line broke");
      return Response.json({ error: "x", code: trouble === 2 ? "storage_unavailable" : "rate_limited" }, { status: trouble === 2 ? 503 : 429 });
    },
  });
  const lease = await ada.leases.hold("deploy", OFTEN);
  const before = lease.lease.expiresAt;
  it.clock.now += 1_000;
  await until(() => lease.lease.expiresAt > before, "a renewal after the trouble");
  expect([trouble, lease.signal.aborted]).toEqual([3, false]);
});

test("who stood in line gets it when its turn comes", async () => {
  const [ada, bob] = [await join("ada"), await join("bob")];
  const first = await ada.leases.hold("deploy");
  const waiting = bob.leases.hold("deploy", { waitMs: 20_000, ttlMs: 5_000 });
  await until(async () => (await ada.leases.get("deploy")).waiting.length === 1, "the line");
  await first.release();
  const lease = await waiting;
  expect([lease.fencingToken, lease.signal.aborted]).toEqual([2, false]);
  await lease.release();
});

test("a grant that took long is renewed at once, because nobody knows when in that time it was given; a short one is not", async () => {
  const asked: string[] = [];
  const line = Promise.withResolvers<void>();
  const fetch_ = async (request: Request) => {
    asked.push(request.url.split("/").at(-1)!);
    if (request.url.includes("slow") && request.url.endsWith("/acquire")) await line.promise;
    return Response.json({ lease: { name: "x", fencingToken: 1, expiresAt: "" }, renewed: false });
  };
  const ada = hubClient({ url: "http://hub.invalid", fetch: fetch_ }, { id: "agt_1", key: "k" }, { signal: stop.signal });
  const ttlMs = 60;
  const waiting = ada.leases.hold("slow", { ttlMs, waitMs: 30_000, renewEveryMs: 60_000 });
  const began = performance.now();
  await until(() => performance.now() - began > ttlMs, "longer than it lasts");
  line.resolve();
  const lease = await waiting;
  expect([asked, lease.signal.aborted]).toEqual([["acquire", "renew"], false]);
  await lease.release();
  asked.length = 0;
  await (await ada.leases.hold("quick", { renewEveryMs: 60_000 })).release();
  expect(asked).toEqual(["acquire", "release"]);
});

test("work under a lease gives it back, whether it ends or throws, and a loss is thrown", async () => {
  const ada = await join("ada");
  expect(await ada.leases.during("deploy", async ({ fencingToken }) => `with ${fencingToken}`)).toBe("with 1");
  expect(
    await ada.leases
      .during("deploy", async () => {
        throw new TypeError("work failed");
      })
      .catch(refused),
  ).toBe("TypeError");
  expect(await ada.leases.get("deploy").catch(refused)).toBe("lease_not_found");
  const lost = ada.leases.during(
    "deploy",
    async (lease) => {
      await it.call(ADMIN_TOKEN, "POST", "/v1/leases/deploy/force-release", { project: "p", reason: "stuck" });
      await lostWith(lease);
    },
    OFTEN,
  );
  expect(await lost.catch(refused)).toBe("LeaseLost");
});

test("the caller's signal gives it back; a client that ends says that nothing renews it any more", async () => {
  const ada = await join("ada");
  const own = new AbortController();
  const lease = await ada.leases.hold("deploy", { signal: own.signal });
  own.abort();
  await until(async () => (await ada.leases.get("deploy").catch(refused)) === "lease_not_found", "the release");
  expect(lease.signal.aborted).toBe(false);
  const second = await ada.leases.hold("deploy");
  stop.abort();
  expect((await lostWith(second)).message).toContain("nothing renews it");
});

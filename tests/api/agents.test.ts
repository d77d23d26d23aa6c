// The routes of agents on both engines: registering, resuming, presence, signing off; what the wire contract promises, line by line.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import * as agents from "../../src/hub/agents.ts";
import { expireMessages } from "../../src/hub/message-sweep.ts";
import { flushPresence, startPresence, sweepStale } from "../../src/hub/presence.ts";
import { AgentAnswer, AgentsAnswer, RegisterAnswer } from "../../src/protocol/agents.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { answersLike } from "../support/answers.ts";
import { range, WORLDS } from "../support/engines.ts";
import { ADMIN_TOKEN, type Fleet, openFleet } from "../support/fleet.ts";

const iso = (ms: number) => new Date(ms).toISOString();
const HOSTILE = `<script>alert(1)</script>" onload=x ${"\u202e"}'; drop table agents; --`;

describe.each(WORLDS)("%s agents", (_, open) => {
  let it: Fleet;
  let names = 0;
  beforeAll(async () => {
    it = await openFleet(open);
  }, 30_000);
  afterAll(() => it[Symbol.asyncDispose]());
  const fresh = (word = "agent") => `${word}-${++names}`;
  const register = (body: unknown) => it.call(undefined, "POST", "/v1/agents/register", body);
  const list = async (as: { id: string; key: string }, query = "") => (await it.call(as, "GET", `/v1/agents${query}`)).body.agents as any[];
  const eventsOf = async (id: string) =>
    (await it.world.engine.read.events.after("p", 0, 10_000)).filter(({ subjectId }) => subjectId === id).map(({ type, data }) => [type, data]);

  test("a new agent is answered 201 with its record and a key that is shown once", async () => {
    const name = fresh();
    const { status, body } = await register({ name: `  ${name} `, purpose: "Reviews", project: "p", model: "opus", host: "box" });
    expect(status).toBe(201);
    answersLike(RegisterAnswer, body);
    expect(body).toEqual({
      agent: {
        id: expect.stringMatching(/^agt_[0-9a-f]{32}$/),
        name,
        purpose: "Reviews",
        project: "p",
        model: "opus",
        host: "box",
        connectedAt: iso(it.clock.now),
        lastSeenAt: iso(it.clock.now),
        online: true,
        leaseExpiresAt: iso(it.clock.now + 30_000),
        presence: "online",
      },
      agentKey: expect.stringMatching(/^kxa_[A-Za-z0-9_-]{43}$/),
      resumed: false,
    });
    expect(await eventsOf(body.agent.id)).toEqual([["registered", { name, resumed: false }]]);
  });

  test("an absent or null purpose is the default one; model and host may be left out", async () => {
    for (const purpose of [undefined, null]) {
      const { body } = await register({ name: fresh(), project: "p", purpose, model: "", host: null });
      expect(body.agent.purpose).toBe("General-purpose Pi agent");
      expect(body.agent).not.toHaveProperty("model");
      expect(body.agent).not.toHaveProperty("host");
    }
  });

  test.each([
    [{ project: "p" }, "name must be a string"],
    [{ name: 5, project: "p" }, "name must be a string"],
    [{ name: "  ", project: "p" }, "name cannot be empty"],
    [{ name: "x".repeat(65), project: "p" }, "name exceeds 64 characters"],
    [{ name: "x", purpose: "y".repeat(257), project: "p" }, "purpose exceeds 256 characters"],
    [{ name: "x", purpose: "", project: "p" }, "purpose cannot be empty"],
    [{ name: "x" }, "project must be a string"],
    [{ name: "x", project: "y".repeat(129) }, "project exceeds 128 characters"],
    [{ name: "x", project: "p", model: "y".repeat(129) }, "model exceeds 128 characters"],
    [{ name: "x", project: "p", host: "y".repeat(65) }, "host exceeds 64 characters"],
  ])("registering %j is refused: %s", async (body, error) => {
    const before = await it.log();
    const answer = await register(body);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code: "protocol_error", error, hint: expect.any(String) });
    expect(await it.log()).toEqual(before);
  });

  test("a name is taken while its agent is online, whatever its case, and free in another project", async () => {
    const name = fresh("Ada");
    await it.register(name);
    const answer = await register({ name: name.toUpperCase(), project: "p" });
    expect([answer.status, answer.body.code]).toEqual([409, "duplicate_agent_name"]);
    expect((await register({ name, project: "other" })).status).toBe(201);
  });

  test("an offline agent is resumed: same id, new key, new record, and the old key is dead at once", async () => {
    const name = fresh("bob");
    const old = await it.register(name, { model: "a", host: "b" });
    await it.call(old, "DELETE", `/v1/agents/${old.id}`);
    it.clock.now += 1_000;
    const { status, body } = await register({ name: name.toUpperCase(), purpose: "Second life", project: "p" });
    expect([status, body.resumed, body.agent.id, body.agent.name]).toEqual([200, true, old.id, name.toUpperCase()]);
    expect(body.agentKey).not.toBe(old.key);
    expect(body.agent).not.toHaveProperty("model");
    expect(body.agent).toMatchObject({ purpose: "Second life", connectedAt: iso(it.clock.now), online: true });
    const refused = await it.call(old, "GET", "/v1/agents");
    expect([refused.status, refused.body.code]).toEqual([401, "invalid_agent_identity"]);
    expect(refused.body).toMatchObject({ operation: "other", nextAction: "reconnect_with_current_agent_key" });
    expect((await it.call({ id: old.id, key: body.agentKey }, "GET", "/v1/agents")).status).toBe(200);
  });

  test("an agent that fell silent may come back before any sweep has run", async () => {
    const name = fresh();
    const old = await it.register(name);
    it.clock.now += 29_999;
    expect((await register({ name, project: "p" })).status).toBe(409);
    it.clock.now += 1;
    const { body } = await register({ name, project: "p" });
    expect([body.resumed, body.agent.id]).toEqual([true, old.id]);
  });

  test("32 at once want one name: one gets it", async () => {
    const name = fresh();
    const answers = await Promise.all(range(32).map(() => register({ name, project: "p" })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...range(31).map(() => 409)]);
  });

  test("no answer and no stored byte holds a key", async () => {
    const agent = await it.register(fresh());
    expect(JSON.stringify(await list(agent, "?includeOffline=true"))).not.toContain("kxa_");
    const row = (await it.world.engine.read.agents.find(agent.id))!;
    expect(row.keyHash).toBe(sha256(agent.key));
    expect(JSON.stringify(row)).not.toContain(agent.key);
  });

  test("the list holds the caller and others online; offline ones only by the exact word true", async () => {
    await using world = await openFleet(open);
    const ask = async (as: any, query = "") => (await world.call(as, "GET", `/v1/agents${query}`)).body;
    const [ada, bob] = [await world.register("Ada"), await world.register("bob")];
    await world.register("Eve", { project: "elsewhere" });
    await world.call(bob, "DELETE", `/v1/agents/${bob.id}`);
    answersLike(AgentsAnswer, await ask(ada));
    expect((await ask(ada)).agents.map(({ name }: any) => name)).toEqual(["Ada"]);
    for (const word of ["1", "TRUE", "yes", "false", ""]) expect((await ask(ada, `?includeOffline=${word}`)).agents).toHaveLength(1);
    const all = (await ask(ada, "?includeOffline=true")).agents;
    expect(all.map(({ name, presence, online }: any) => [name, presence, online])).toEqual([
      ["Ada", "online", true],
      ["bob", "offline", false],
    ]);
  }, 30_000);

  test("a heartbeat renews the lease, needs a JSON content type and ignores what is in it", async () => {
    const agent = await it.register(fresh());
    it.clock.now += 12_000;
    const { status, body } = await it.call(agent, "POST", `/v1/agents/${agent.id}/heartbeat`, { online: false });
    expect(status).toBe(200);
    answersLike(AgentAnswer, body);
    expect(body.agent).toMatchObject({ lastSeenAt: iso(it.clock.now), leaseExpiresAt: iso(it.clock.now + 30_000), presence: "online" });
    const url = `http://127.0.0.1:7331/v1/agents/${agent.id}/heartbeat`;
    const headers = { "x-kxm-agent-key": agent.key };
    const plain = await it.fetch(new Request(url, { method: "POST", headers, body: "{}" }));
    expect(plain.status).toBe(415);
    const lone = await it.fetch(new Request(url, { method: "POST", headers: { ...headers, "content-type": "application/json" } }));
    expect(lone.status).toBe(200); // the id in the path is enough
  });

  test("a key opens only its own agent's paths", async () => {
    const [ada, bob] = [await it.register(fresh()), await it.register(fresh())];
    for (const [method, path] of [
      ["POST", `/v1/agents/${bob.id}/heartbeat`],
      ["DELETE", `/v1/agents/${bob.id}`],
      ["GET", `/v1/agents/${bob.id}/inbox`],
      ["GET", `/v1/events?agentId=${bob.id}`],
    ] as const) {
      const { status, body } = await it.call(ada, method, path);
      expect([path, status, body.code]).toEqual([path, 401, "invalid_agent_identity"]);
    }
    expect((await list(bob)).map(({ id }) => id)).toContain(bob.id);
  });

  test("signing off leaves the key valid: the next request brings the agent back", async () => {
    const [ada, bob] = [await it.register(fresh()), await it.register(fresh())];
    const answer = await it.call(bob, "DELETE", `/v1/agents/${bob.id}`);
    expect([answer.status, answer.body, answer.headers.get("cache-control")]).toEqual([204, "", "no-store"]);
    expect((await list(ada)).map(({ id }) => id)).not.toContain(bob.id);
    expect((await list(bob)).find(({ id }) => id === bob.id)).toMatchObject({ online: true, presence: "online" });
    expect((await eventsOf(bob.id)).map(([type]) => type)).toEqual(["registered", "offline", "online"]);
  });

  test("presence is online, then stale, then offline once a sweep has run; nobody's list changes a row", async () => {
    const [ada, bob] = [await it.register(fresh()), await it.register(fresh())];
    const bobNow = async () => (await list(ada, "?includeOffline=true")).find(({ id }) => id === bob.id);
    const seenAt = it.clock.now;
    it.clock.now += 29_999;
    expect((await bobNow()).presence).toBe("online");
    it.clock.now += 1;
    expect(await bobNow()).toMatchObject({ presence: "stale", online: true, lastSeenAt: iso(seenAt) });
    await sweepStale(it.hub);
    expect(await bobNow()).toMatchObject({ presence: "offline", online: false, lastSeenAt: iso(seenAt) });
    expect((await eventsOf(bob.id)).at(-1)).toEqual(["offline", { name: bob.name, reason: "silent" }]);
    expect((await list(ada)).find(({ id }) => id === ada.id).presence).toBe("online"); // it has just asked
  });

  test("an agent whose calls all said that they are visits ends its visit; one that stayed or came otherwise fell silent", async () => {
    await using own = await openFleet(open); // sweeps count from one to the next
    const [ada, bob, cat] = [await own.register("ada"), await own.register("bob"), await own.register("cat")];
    const call = (agent: { id: string; key: string }, visit: boolean) =>
      own.fetch(
        new Request("http://127.0.0.1:7331/v1/agents", {
          headers: { "x-kxm-agent-id": agent.id, "x-kxm-agent-key": agent.key, ...(visit && { "x-kxm-visit": "1" }) },
        }),
      );
    for (const [agent, visits] of [
      [ada, [true, true]],
      [bob, [true, false, true]],
      [cat, [false]],
    ] as const)
      for (const visit of visits) expect((await call(agent, visit)).status).toBe(200);
    /** Sweeps as often as a hub does: one that comes late judges nobody for another window. */
    const fallSilent = async () => {
      for (let n = 0; n < 8; n++) {
        own.clock.now += 10_000;
        await sweepStale(own.hub);
      }
    };
    await fallSilent();
    const lastOf = async ({ id }: { id: string }) =>
      (await own.hub.engine.read.events.after("p", 0, 100)).findLast(({ subjectId }) => subjectId === id)!.data["reason"];
    const reasons = await Promise.all([ada, bob, cat].map(lastOf));
    expect(reasons).toEqual(["visit_ended", "silent", "silent"]);
    await call(bob, true); // a new visit of one that had stayed before
    await fallSilent();
    expect(await lastOf(bob)).toBe("visit_ended");
  });

  test("a sweep after the hub itself has slept judges nobody for another window", async () => {
    await using world = await openFleet(open);
    const bob = await world.register("bob");
    const online = async () => (await world.world.engine.read.agents.find(bob.id))!.online;
    await sweepStale(world.hub);
    world.clock.now += 3_600_000;
    expect(await sweepStale(world.hub)).toBe(0);
    world.clock.now += 15_000;
    expect([await sweepStale(world.hub), await online()]).toEqual([0, 1]);
    world.clock.now += 15_000;
    expect([await sweepStale(world.hub), await online()]).toEqual([1, 0]);
  }, 30_000);

  test("signs of life are written in batches, never backwards, and reading writes none", async () => {
    const crowd = await Promise.all(range(120).map(() => it.register(fresh())));
    const stored = async (id: string) => (await it.world.engine.read.agents.find(id))!.lastSeenAt;
    await flushPresence(it.hub);
    const before = await stored(crowd[0]!.id);
    it.clock.now += 7_000;
    await Promise.all(crowd.map((agent) => it.call(agent, "GET", "/v1/agents")));
    expect(await stored(crowd[0]!.id)).toBe(before);
    await flushPresence(it.hub);
    expect(new Set(await Promise.all(crowd.map(({ id }) => stored(id))))).toEqual(new Set([it.clock.now]));
    await it.world.engine.write("p", (tx) => tx.agents.seen([{ id: crowd[0]!.id, at: 5 }]));
    expect(await stored(crowd[0]!.id)).toBe(it.clock.now);
  });

  test("what one hub heard keeps another from sweeping", async () => {
    const other = await it.another();
    const agent = await it.register(fresh());
    it.clock.now += 25_000;
    await it.call(agent, "POST", `/v1/agents/${agent.id}/heartbeat`, {});
    await flushPresence(it.hub);
    it.clock.now += 25_000;
    await sweepStale(other.hub);
    expect((await it.world.engine.read.agents.find(agent.id))!.online).toBe(1);
    const seen = (await other.call(agent, "GET", "/v1/agents")).body.agents.find(({ id }: any) => id === agent.id);
    expect(seen.presence).toBe("online");
  });

  test("two hubs that sweep at once tell of each agent and each message once", async () => {
    await using world = await openFleet(open);
    const other = await world.another();
    const [a, b] = [await world.register("a"), await world.register("b")];
    for (const _ of range(5)) await world.call(a, "POST", "/v1/messages", { target: b.id, content: "x", ttlMs: 1_000 });
    await Promise.all([flushPresence(world.hub), flushPresence(other.hub)]);
    world.clock.now += 30_000;
    const swept = await Promise.all([sweepStale(world.hub), sweepStale(other.hub), expireMessages(world.hub), expireMessages(other.hub)]);
    expect([swept[0]! + swept[1]!, swept[2]! + swept[3]!]).toEqual([2, 5]);
    const counts = Map.groupBy(await world.log(), (line) => line);
    expect([counts.get("agents.offline")?.length, counts.get("messages.expired")?.length]).toEqual([2, 5]);
  }, 30_000);

  test("a hub that has its store alone starts with everybody offline, and keys go on", async () => {
    await using world = await openFleet(open);
    const [ada, bob] = [await world.register("ada"), await world.register("bob", { project: "q" })];
    expect(await startPresence(world.hub)).toBe(2);
    expect(await startPresence(world.hub)).toBe(0);
    for (const { id } of [ada, bob]) expect((await world.world.engine.read.agents.find(id))!.online).toBe(0);
    expect((await world.call(ada, "GET", "/v1/agents")).body.agents.map(({ name }: any) => name)).toEqual(["ada"]);
    expect((await world.call(undefined, "GET", "/health")).body.agents).toBe(1);
    expect(await world.log("q")).toEqual(["agents.registered", "agents.offline"]);
  }, 30_000);

  test("hostile names and purposes come back as they were sent", async () => {
    const name = HOSTILE.slice(0, 60);
    const agent = await it.register(name, { purpose: HOSTILE });
    expect((await list(agent)).find(({ id }) => id === agent.id)).toMatchObject({ name, purpose: HOSTILE });
  });

  test("a project with a token of its own refuses everybody else, the admin token included", async () => {
    await using world = await openFleet(open, { projectTokenHashes: new Map([["locked", sha256("right")]]) });
    const ask = async (as: string | undefined) => {
      const { status, body } = await world.call(as, "POST", "/v1/agents/register", { name: "x", project: "locked" });
      return [status, body.code, body.nextAction];
    };
    for (const wrong of [undefined, ADMIN_TOKEN, "wrong", "Right"]) expect(await ask(wrong)).toEqual([401, "invalid_auth", "check_project_token"]);
    expect((await ask("right"))[0]).toBe(201);
  }, 30_000);

  test("registering is counted", async () => {
    const before = it.hub.metrics.read().get("registrations")!;
    await it.register(fresh());
    await register({ name: "" });
    expect(it.hub.metrics.read().get("registrations")).toBe(before + 1);
  });

  test("an unknown id and a wrong key are refused alike", async () => {
    const agent = await it.register(fresh());
    const strip = ({ requestId: _, ...body }: any) => body;
    const unknown = await it.call({ id: "agt_00000000000000000000000000000000", key: agent.key }, "GET", "/v1/agents");
    const wrong = await it.call({ id: agent.id, key: `${agent.key}x` }, "GET", "/v1/agents");
    expect(strip(unknown.body)).toEqual(strip(wrong.body));
    await expect(agents.authenticate(it.hub.known, agent.id, "")).rejects.toThrow("do not name a known agent");
  });
});

// Ending an agent's key, and retiring it.
import { describe, expect, test } from "bun:test";
import * as agents from "../../src/hub/agents.ts";
import * as leases from "../../src/hub/leases.ts";
import * as messages from "../../src/hub/messages.ts";
import * as retirement from "../../src/hub/retirement.ts";
import { attempt, range, WORLDS } from "../support/engines.ts";
import { type Fleet, openFleet } from "../support/fleet.ts";

const person: retirement.Person = { id: "ses_ann", audit: { role: "operator", origin: "dashboard" } };
const request = (target: string) => ({ target, content: "x", delivery: "followUp" as const, hops: 0, maxHops: 4, allowOffline: true });
const presence = async ({ world, hub, clock }: Fleet, id: string) => agents.presenceOf(hub, (await world.engine.read.agents.find(id))!, clock.now);

describe.each(WORLDS)("retirement on %s", (_, open) => {
  test("an ended key opens nothing, and the agent registers again under its name", async () => {
    await using fleet = await openFleet(open);
    const ada = await fleet.agent("Ada");
    const { engine } = fleet.world;
    await engine.write("p", (tx) => retirement.endKey(tx, person, ada.id, "dead"));
    expect((await fleet.call(ada, "GET", "/v1/agents")).status).toBe(401);
    expect(await presence(fleet, ada.id)).toBe("offline");
    const back = await engine.write("p", (tx) => agents.register(tx, fleet.hub, { name: "ada", project: "p", purpose: "x" }, "new"));
    expect([back.resumed, back.agent.id, back.agent.keyHash]).toEqual([true, ada.id, "new"]);
    expect(await fleet.log()).toEqual(["agents.key_ended", "agents.registered"]);
  });

  test("a retired agent holds nothing, owes nothing, gets nothing, and is back when it registers", async () => {
    await using fleet = await openFleet(open);
    const [ada, bob] = [await fleet.agent("Ada"), await fleet.agent("Bob")];
    const { engine } = fleet.world;
    await leases.acquire(fleet.hub, ada, { name: "branch:main", ttlMs: 60_000, waitMs: 0 });
    const toBob = range(150);
    const sent = await Promise.all(toBob.map(() => engine.write("p", (tx) => messages.send(tx, ada, request(bob.id), 60_000))));
    const got = await engine.write("p", (tx) => messages.send(tx, bob, request(ada.id), 60_000));
    expect(await retirement.retire(fleet.hub, person, ada, "dead")).toEqual({ leases: 1, messages: 151 });
    for (const { message } of [sent[0]!, sent[149]!, got]) expect((await engine.read.messages.find(message.id))!.status).toBe("cancelled");
    expect(await engine.read.leases.heldBy("p", ada.id, 10)).toEqual([]);
    expect((await attempt(engine.write("p", (tx) => messages.send(tx, bob, request(ada.id), 60_000)))).code).toBe("target_not_found");
    expect((await engine.read.agents.find(ada.id))!.retiredAt).toBe(fleet.clock.now);
    expect(await retirement.retire(fleet.hub, person, ada, "dead")).toEqual({ leases: 0, messages: 0 });
    await engine.write("p", (tx) => agents.register(tx, fleet.hub, { name: "ada", project: "p", purpose: "x" }, "new"));
    expect((await engine.read.agents.find(ada.id))!.retiredAt).toBeNull();
    const audit = await engine.read.audit.page({ project: "p", subject: ada.id }, undefined, 10);
    expect(audit.map(({ action, actor }) => [action, actor])).toEqual([
      ["retired", "ses_ann"],
      ["retired", "ses_ann"],
    ]);
  });

  test("what another agent holds or waits for is left alone", async () => {
    await using fleet = await openFleet(open);
    const [ada, bob, cat] = [await fleet.agent("Ada"), await fleet.agent("Bob"), await fleet.agent("Cat")];
    const { engine } = fleet.world;
    await leases.acquire(fleet.hub, bob, { name: "env", ttlMs: 60_000, waitMs: 0 });
    const { message } = await engine.write("p", (tx) => messages.send(tx, bob, request(cat.id), 60_000));
    expect(await retirement.retire(fleet.hub, person, ada, "dead")).toEqual({ leases: 0, messages: 0 });
    expect((await engine.read.messages.find(message.id))!.status).toBe("queued");
    expect(await engine.read.leases.heldBy("p", bob.id, 10)).toHaveLength(1);
    expect((await attempt(engine.write("p", (tx) => retirement.endKey(tx, person, "agt_none", "dead")))).code).toBe("agent_not_found");
  });
});

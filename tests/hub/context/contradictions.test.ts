// A key that says two things is settled by keeping one value, or by giving the second a key of its own. On both engines.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import * as state from "../../../src/hub/context/state.ts";
import { attempt, WORLDS, type World } from "../../support/engines.ts";

const BY = { promoter: "ses_1", actor: "ses_1", role: "admin", origin: "dashboard", reason: "looked at both" };
const PEER = { caller: "agt_a", actor: "agt_a", sourceType: "peer" } as const;

describe.each(WORLDS)("%s contradictions", (_, open) => {
  let world: World;
  beforeAll(async () => {
    world = await open();
  }, 30_000);
  afterAll(() => world[Symbol.asyncDispose]());

  const propose = (key: string, summary: string) =>
    world.engine.write("p", (tx) =>
      state.propose(tx, PEER, { project: "p", key, summary, authority: "evidence", confidence: "verified", evidenceRefs: ["e"] }),
    );
  const promote = async (key: string, summary: string) => {
    const proposalId = await propose(key, summary);
    return world.engine.write("p", (tx) => state.promote(tx, BY, { proposalId, project: "p", evidence: ["e"] }));
  };
  /** A second current value, as a restored or imported store may hold. */
  const rival = async (key: string, summary: string) => {
    const [row] = await world.engine.read.context.currentAfter("p", key.slice(0, -1), 1);
    const id = `ctx_rival_${summary}`;
    await world.engine.write("p", async (tx) => {
      tx.append({ project: "p", topic: "context", type: "state.proposed", subjectId: id, actor: "hub", data: { key } });
      await tx.context.insert({ ...row!, id, summary, record: { ...row!.record, id, summary }, revision: await tx.context.takeRevision("p") });
    });
    return id;
  };
  const says = async (key: string) => {
    const rows = await world.engine.read.context.stateAt("p", key, world.clock.now);
    return rows.flatMap(({ status, summary }) => (status === "current" ? [summary] : [])).toSorted();
  };

  test("only keys with several current values are named, in order and bounded", async () => {
    for (const key of ["a/one", "b/two", "c/three"]) await promote(key, "first");
    await propose("a/one", "proposed"); // contradicts, but nothing is current twice
    for (const key of ["c/three", "b/two"]) await rival(key, `second-${key[0]}`);
    expect(await world.engine.read.context.contradicted("p", 10)).toEqual(["b/two", "c/three"]);
    expect(await world.engine.read.context.contradicted("p", 1)).toEqual(["b/two"]);
    expect(await world.engine.read.context.contradicted("other", 10)).toEqual([]);
  });

  test("keeping one ends the others, and is refused where nothing competes", async () => {
    const { id } = await promote("keep/one", "mine");
    const keep = (itemId: string) => attempt(world.engine.write("p", (tx) => state.keepOnly(tx, BY, { project: "p", itemId })));
    expect((await keep(id)).code).toBe("state_proposal_not_promotable");
    const other = await rival("keep/one", "other");
    expect((await keep(other)).value?.supersedes).toContain(id);
    expect(await says("keep/one")).toEqual(["other"]);
    expect((await keep("ctx_nobody")).code).toBe("state_proposal_not_found");
    expect((await keep(await propose("keep/one", "only proposed"))).code).toBe("state_proposal_not_promotable");
  });

  test("both are kept: the second is current under a free key, never under one that says something", async () => {
    await promote("both/here", "three times");
    await promote("both/taken", "taken");
    const itemId = await propose("both/here", "never");
    const both = (newKey: string, by = BY, evidence = ["e"]) =>
      attempt(world.engine.write("p", (tx) => state.keepBoth(tx, by, { project: "p", itemId, evidence, newKey })));
    for (const key of ["both/here", "both/taken"]) expect([key, (await both(key)).code]).toEqual([key, "state_promotion_invalid"]);
    expect((await both("both/there", BY, [])).code).toBe("state_promotion_invalid");
    expect((await both("both/there", { ...BY, promoter: "agt_a" })).code).toBe("state_promotion_invalid"); // its proposer
    const before = await world.engine.read.events.lastSeq("p");
    expect((await both("both/there")).value).toMatchObject({ stateKey: "both/there", status: "current", evidenceRefs: ["e"] });
    expect([await says("both/here"), await says("both/there")]).toEqual([["three times"], ["never"]]);
    const events = await world.engine.read.events.after("p", before, 10);
    expect(events.map(({ type, data }) => [type, data["newKey"]])).toEqual([["state.split", "both/there"]]);
    expect(await world.engine.read.audit.find("p", events[0]!.seq)).toMatchObject({ actor: "ses_1", reason: "looked at both" });
    expect((await both("both/elsewhere")).code).toBe("state_proposal_not_promotable");
  });

  test("agents are found among ids, whatever their number, and retired ones are a list of their own", async () => {
    const { agents } = world.engine.read;
    await world.engine.write("p", async (tx) => {
      for (let n = 0; n < 120; n++) {
        const name = `agent-${String(n).padStart(3, "0")}`;
        const times = { registeredAt: 1, connectedAt: 1, lastSeenAt: 1, retiredAt: n % 40 === 0 ? 5 : null };
        await tx.agents.insert({
          id: `agt_${n}`,
          project: "p",
          name,
          nameFolded: name,
          purpose: "x",
          model: null,
          host: null,
          keyHash: "h",
          online: 0,
          ...times,
        });
      }
      tx.append({ project: "p", topic: "agents", type: "registered", subjectId: "agt_0", actor: "agt_0", data: {} });
    });
    const ids = Array.from({ length: 120 }, (_, n) => `agt_${n}`);
    expect((await agents.among([...ids, "operator:ses_1", "agt_none"])).map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    expect(await agents.among([])).toEqual([]);
    const page = await agents.page("p", { of: "retired", prefix: "", after: "agent-000", limit: 10 });
    expect([page.map(({ name }) => name), await agents.countRetired("p", 10), await agents.countRetired("p", 2)]).toEqual([
      ["agent-040", "agent-080"],
      3,
      2,
    ]);
  });
});

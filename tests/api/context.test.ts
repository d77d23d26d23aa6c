// Context over the API: who may ask, temporal state by proposal and promotion, packets from journal and state, the wiki.
import { describe, expect, test } from "bun:test";
import { WORLDS } from "../support/engines.ts";
import { openOn, type WorkflowWorld } from "../support/workflows.ts";

describe.each(WORLDS)("%s context", (_, world) => {
  const boss = { authorization: "Bearer boss" };
  const open = () => openOn(world)({}, { localAdminTokenHash: new Bun.CryptoHasher("sha256").update("boss").digest("hex") });
  const proposal = {
    project: "shop",
    key: "db.engine",
    summary: "SQLite",
    authority: "evidence",
    confidence: "verified",
    evidenceRefs: ["commit 1"],
  };
  const propose = (it: WorkflowWorld, change: object = {}, name: "ann" | "eve" = "ann") =>
    it.as(name, "POST", "/v1/context/state/propose", { ...proposal, ...change });
  const promote = (it: WorkflowWorld, proposalId: string, change: object = {}, headers: Record<string, string> = boss) =>
    it.call("POST", "/v1/context/state/promote", { body: { proposalId, project: "shop", evidence: ["test 1"], ...change }, headers });
  const stateOf = async (it: WorkflowWorld, more: object = {}) =>
    (await it.as("ann", "POST", "/v1/context/state", { project: "shop", key: "db.engine", ...more })).body;

  test("a value is proposed by one and promoted by another; the old one is kept and can be asked for", async () => {
    await using it = await open();
    const first = (await propose(it)).body.proposalId;
    expect((await stateOf(it)).state).toBeNull();
    const promoted = await promote(it, first);
    expect(promoted.status).toBe(200);
    expect(promoted.body.state).toMatchObject({
      status: "current",
      summary: "SQLite",
      evidenceRefs: ["commit 1", "test 1"],
      provenance: { sourceType: "peer", sourceRef: "promoted-by:kxm-admin" },
    });
    const before = new Date(it.clock.now).toISOString();
    it.clock.now += 60_000;
    const second = (await propose(it, { summary: "PostgreSQL" })).body.proposalId;
    await promote(it, second);
    expect((await stateOf(it)).state).toMatchObject({ summary: "PostgreSQL", supersedes: [promoted.body.state.id] });
    expect((await stateOf(it, { asOf: before })).state.summary).toBe("SQLite");
    expect((await promote(it, second)).body.code).toBe("state_proposal_not_promotable");
  });

  test("a key with two current values, as two writers of an older version could leave it, is called a contradiction: state_contradiction", async () => {
    await using it = await open();
    const { proposalId } = (await propose(it)).body;
    const { id } = (await promote(it, proposalId)).body.state;
    await it.hub.engine.write("shop", async (tx) => {
      const row = (await tx.context.find(id))!;
      await tx.context.insert({ ...row, id: tx.newId("ctx"), revision: row.revision + 1_000 });
    });
    const answer = await it.as("ann", "POST", "/v1/context/state", { project: "shop", key: "db.engine" });
    expect(answer).toMatchObject({ status: 409, body: { code: "state_contradiction" } });
  });

  test("proposals and promotions that may not be are refused by name", async () => {
    await using it = await open();
    expect((await propose(it, { authority: "policy" })).body.code).toBe("context_authority_violation");
    expect((await propose(it, { authority: "law" })).body.code).toBe("invalid_context_request");
    expect((await propose(it, { evidenceRefs: [] })).body.code).toBe("state_promotion_invalid");
    expect((await propose(it, { evidenceRefs: ["a", "a"] })).body.code).toBe("invalid_context_field");
    expect((await propose(it, { proposedBy: "somebody" })).body.code).toBe("state_proposer_mismatch");
    expect((await propose(it, {}, "eve")).body.code).toBe("context_isolation_violation");
    const { proposalId } = (await propose(it)).body;
    expect((await promote(it, proposalId, {}, {})).status).toBe(401);
    expect((await promote(it, proposalId, { evidence: [] })).body.code).toBe("state_promotion_invalid");
    expect((await promote(it, proposalId, { promotedBy: it.agents.ann.id })).body.code).toBe("state_promotion_invalid");
    expect((await promote(it, proposalId, { project: "elsewhere" })).body.code).toBe("state_proposal_not_found");
    expect((await promote(it, "ctx_none")).body.code).toBe("state_proposal_not_found");
    expect((await stateOf(it, { asOf: "yesterday" })).code).toBe("invalid_state_request");
  });

  test("a packet and recall see state and journal of their own project only, as committed now", async () => {
    await using it = await open();
    const { runId } = (await it.start({ issue: { key: "SHOP-1" } })).body;
    const ask = async (name: "ann" | "eve", project: string) =>
      (await it.as(name, "POST", "/v1/context/get", { project, role: "implementer", task: "engine" })).body;
    expect((await ask("ann", "shop")).packet.unresolvedGaps).toEqual(["no context records exist for this project yet"]);
    await promote(it, (await propose(it)).body.proposalId);
    await it.as("lead", "POST", `/v1/workflows/${runId}/journal`, {
      category: "lesson",
      summary: "The engine <b>needs</b> fsync",
      evidence: ["x"],
      area: "gates",
    });
    const { packet, audit } = await ask("ann", "shop");
    expect(packet.currentState.map(({ summary }: any) => summary)).toEqual(["SQLite"]);
    expect(packet.knowledge[0].summary).toBe("The engine <b>needs</b> fsync");
    expect(audit.relevance.matchedCandidates).toBe(2);
    expect((await ask("eve", "elsewhere")).audit.candidateCount).toBe(0);
    expect((await ask("eve", "shop")).code).toBe("context_isolation_violation");
    const found = (await it.as("ann", "POST", "/v1/context/recall", { project: "shop", query: "fsync" })).body;
    expect(found.items).toHaveLength(1);
    expect((await it.as("ann", "POST", "/v1/context/episode", { project: "shop", workflowRunId: runId })).body.episodes).toHaveLength(1);
    expect((await it.as("ann", "POST", "/v1/context/explain", { project: "shop", id: found.items[0].id })).body.found).toBe(true);
  });

  test("an open loopback hub lets its operator read without a token, but propose only with one", async () => {
    await using it = await openOn(world)({}, { localAdminTokenHash: undefined });
    expect((await it.call("POST", "/v1/context/recall", { body: { project: "shop" } })).status).toBe(200);
    expect((await it.call("POST", "/v1/context/state/propose", { body: proposal })).body.code).toBe("admin_auth_not_configured");
  });

  test("the wiki is Markdown in which agent text stays text", async () => {
    await using it = await open();
    await promote(it, (await propose(it, { summary: "# Heading [link](javascript:x) <img>" })).body.proposalId);
    const { pages, audit, lint } = (await it.as("ann", "POST", "/v1/context/wiki/compile", { project: "shop" })).body;
    expect(audit.pages).toEqual(
      ["architecture/shop-state.md", "contradictions/shop.md", "index.md", "knowledge/shop.md"].map((path) => `.kxm/knowledge/wiki/${path}`),
    );
    expect(pages[0].content).toContain("\\# Heading \\[link\\](javascript:x) \\<img\\>");
    expect(lint).toEqual([]);
  });

  test("every successful context call is counted", async () => {
    await using it = await open();
    await stateOf(it);
    await it.as("ann", "POST", "/v1/context/recall", { project: "elsewhere" });
    expect(it.hub.metrics.read().get("context_requests")).toBe(1);
  });
});

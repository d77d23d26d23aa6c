// Journal, promotion and improvements over the API.
import { describe, expect, test } from "bun:test";
import { WORLDS } from "../support/engines.ts";
import { openOn, type WorkflowWorld } from "../support/workflows.ts";

describe.each(WORLDS)("%s journal", (_, world) => {
  const started = async (it: WorkflowWorld) => (await it.start({ issue: { key: "SHOP-1" } })).body.runId as string;
  const record = (it: WorkflowWorld, runId: string, body: object) => it.as("lead", "POST", `/v1/workflows/${runId}/journal`, body);
  const lesson = { category: "lesson", summary: "Pin the clock", evidence: ["class:flaky_clock"], stageId: "build" };

  test("an entry takes the stage's area and the attempt it was written in", async () => {
    await using it = await openOn(world)();
    const runId = await started(it);
    const { status, body } = await record(it, runId, lesson);
    expect(status).toBe(201);
    expect(body.entry).toMatchObject({
      runId,
      agentId: it.agents.lead.id,
      area: "gates",
      severity: "info",
      stageId: "build",
      attempt: 1,
      relatedEntryIds: [],
      evidence: ["class:flaky_clock"],
    });
    expect((await record(it, runId, { ...lesson, stageId: "review", area: "security" })).body.entry.attempt).toBeUndefined();
  });

  test("bad entries are refused by name", async () => {
    await using it = await openOn(world)();
    const [runId, other] = [await started(it), await started(it)];
    const foreign = (await record(it, other, lesson)).body.entry.id;
    const code = async (change: object) => (await record(it, runId, { ...lesson, ...change })).body.code;
    expect(await code({ category: "gossip" })).toBe("invalid_journal_category");
    expect(await code({ severity: "fatal" })).toBe("invalid_journal_severity");
    expect(await code({ area: "kitchen" })).toBe("invalid_improvement_area");
    expect(await code({ stageId: undefined })).toBe("invalid_improvement_area");
    expect(await code({ stageId: "nowhere" })).toBe("invalid_journal_relation");
    expect(await code({ relatedEntryIds: [foreign] })).toBe("invalid_journal_relation");
    expect(await code({ evidence: [] })).toBe("journal_evidence_required");
    expect(await code({ summary: "" })).toBe("protocol_error");
    expect((await it.as("ann", "POST", `/v1/workflows/${runId}/journal`, lesson)).body).toMatchObject({
      code: "workflow_forbidden",
      operation: "journal",
    });
  });

  test("entries are allowed after the run has ended", async () => {
    await using it = await openOn(world)();
    const runId = await started(it);
    for (const _ of [1, 2])
      await it.as("lead", "POST", `/v1/workflows/${runId}/checkpoints`, { stageId: "build", status: "failed", summary: "broken" });
    expect((await record(it, runId, lesson)).body.entry.attempt).toBe(2);
  });

  test("a candidate is promoted once, with evidence and a reason, and only a candidate", async () => {
    await using it = await openOn(world)();
    const runId = await started(it);
    const candidate = (await record(it, runId, { ...lesson, category: "skill-candidate" })).body.entry.id;
    const plain = (await record(it, runId, lesson)).body.entry.id;
    const promote = async (id: string, change: object = {}) =>
      it.call("POST", `/v1/journal/${id}/promotion`, { body: { to: "approved", evidenceRefs: ["run 7"], reason: "works", ...change } });
    expect((await promote(candidate, { to: "loved" })).body.code).toBe("invalid_journal_promotion");
    expect((await promote(candidate, { evidenceRefs: [] })).body.code).toBe("journal_promotion_invalid");
    expect((await promote("journal_none")).body.code).toBe("journal_not_found");
    expect((await promote(plain)).body.code).toBe("journal_promotion_invalid");
    expect((await promote(candidate)).body.entry.promotion).toMatchObject([
      { schema: "kxm.journal-promotion.v1", from: "proposed", to: "approved", decidedBy: "kxm-admin", reason: "works" },
    ]);
    expect((await promote(candidate)).body.code).toBe("journal_promotion_invalid");
  });

  test("improvements rank what went wrong by frequency, weight, cost and confidence; security comes first", async () => {
    await using it = await openOn(world)();
    const [first, second] = [await started(it), await started(it)];
    for (const runId of [first, second])
      await record(it, runId, { category: "error", summary: "Clock jumped", evidence: ["class:flaky_clock"], severity: "error", area: "gates" });
    await record(it, first, { category: "error", summary: "Token in a log", evidence: [], severity: "warning", area: "security" });
    const contradiction = (await record(it, first, { category: "contradiction", summary: "A or B", evidence: [], area: "other" })).body.entry.id;
    await record(it, first, { category: "decision", summary: "A", evidence: [], area: "other", relatedEntryIds: [contradiction] });
    const { status, body } = await it.as("ann", "GET", "/v1/improvements");
    expect(status).toBe(200);
    expect(body.entries).toBe(5);
    expect(body.reports.map(({ area }: any) => area)).toEqual(["gates", "security", "other"]);
    expect(body.signals.map(({ key }: any) => key)).toEqual(["error|summary:token in a log", "error|class:flaky_clock"]);
    expect(body.signals[0]).toMatchObject({ overrideTier: "security", confidence: 0.5, basis: "summary" });
    expect(body.signals[1]).toMatchObject({
      frequency: 2,
      severityWeight: 3,
      workflowCost: 1,
      costBasis: "run-attempts",
      confidence: 1,
      priority: 6,
      basis: "class",
    });
    expect((await it.as("eve", "GET", "/v1/improvements")).body).toEqual({ reports: [], signals: [], entries: 0 });
  });
});

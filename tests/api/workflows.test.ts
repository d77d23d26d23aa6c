// Runs over the API: checkpoints, waits, peer evidence, transitions, degradations and what ends a run.
import { describe, expect, test } from "bun:test";
import { WORLDS } from "../support/engines.ts";
import { openOn, type WorkflowWorld } from "../support/workflows.ts";

describe.each(WORLDS)("%s workflows", (_, world) => {
  const started = async (it: WorkflowWorld) => (await it.start({ issue: { key: "SHOP-1" } })).body.runId as string;
  const checkpoint = (it: WorkflowWorld, runId: string, body: object) => it.as("lead", "POST", `/v1/workflows/${runId}/checkpoints`, body);
  const passBuild = { stageId: "build", status: "passed", summary: "built", evidence: { "TEST log": "log" } };
  /** Asks a peer for the review and has it answered. */
  async function review(it: WorkflowWorld, runId: string, peer: "ann" | "bob" | "cid", attempt = 1) {
    const asked = await it.as("lead", "POST", "/v1/messages", {
      target: peer,
      content: "please review",
      workflowContext: { runId, stageId: "review", requirementKey: "Review", attempt },
    });
    if (asked.status === 202) await it.as(peer, "POST", `/v1/messages/${asked.body.message.id}/reply`, { content: `fine, says ${peer}` });
    return asked.body;
  }

  test("a run is worked through stage by stage to its end", async () => {
    await using it = await openOn(world)();
    const runId = await started(it);
    const built = await checkpoint(it, runId, passBuild);
    expect(built.body).toMatchObject({ retry: false, completed: false, run: { currentStage: "review" } });
    expect(built.body.instruction).toContain("review");
    const [ann, bob] = [await review(it, runId, "ann"), await review(it, runId, "bob")];
    expect(ann.message.workflowContext).toEqual({
      schema: "pi-mesh.workflow-message-context.v1",
      runId,
      stageId: "review",
      requirementKey: "review",
      attempt: 1,
    });
    const done = await checkpoint(it, runId, {
      stageId: "review",
      status: "passed",
      summary: "ok",
      evidenceRefs: { review: { messageIds: [ann.message.id, bob.message.id] } },
    });
    expect(done.body).toMatchObject({ completed: true, run: { status: "completed" } });
    expect(done.body.run.currentStage).toBeUndefined();
    expect(done.body.run.stages[1].verifiedEvidence.review.map((proof: any) => proof.producerName)).toEqual(["ann", "bob"]);
    expect((await checkpoint(it, runId, passBuild)).body.code).toBe("workflow_terminal");
  });

  test("what is missing is told by key, with the quorum so far and who could help", async () => {
    await using it = await openOn(world)();
    const runId = await started(it);
    expect((await it.as("lead", "GET", `/v1/workflows/${runId}`)).body.conditions).toMatchObject({
      stageId: "build",
      attempt: 1,
      attemptsLeft: 2,
      conditions: [{ requirementKey: "test log", kind: "evidence", met: false }],
    });
    await checkpoint(it, runId, passBuild);
    const ann = await review(it, runId, "ann");
    const refused = await checkpoint(it, runId, {
      stageId: "review",
      status: "passed",
      summary: "ok",
      evidenceRefs: { review: { messageIds: [ann.message.id] } },
    });
    expect(refused.status).toBe(400);
    expect(refused.body).toMatchObject({
      code: "workflow_evidence_incomplete",
      missingRequirements: ["review"],
      peerRequirements: [
        { requirementKey: "review", policyMinProducers: 2, effectiveMinProducers: 2, producers: [it.agents.ann.id], met: false, degraded: false },
      ],
    });
    const { conditions } = (await it.as("lead", "GET", `/v1/workflows/${runId}`)).body;
    expect(conditions.conditions[0].quorum).toEqual({ have: 0, need: 2, of: ["ann", "bob", "cid"], normally: 2 });
    expect(conditions.conditions[0].needs).toContain("ann, bob, cid");
  });

  test("names that every object has are names like others", async () => {
    await using it = await openOn(world)();
    const runId = await started(it);
    const send = (body: string) => it.call("POST", `/v1/workflows/${runId}/checkpoints`, { body, headers: it.agents.lead.headers });
    const keys = '"Constructor":"a","toString":"b","hasOwnProperty":"c"';
    expect((await send(`{"stageId":"build","status":"passed","summary":"s","evidence":{${keys},"test log":"x"}}`)).status).toBe(200);
    const odd = '" __Proto__ "';
    const refused = [
      ["evidence", `{"stageId":"review","status":"failed","summary":"s","evidence":{${odd}:"x"}}`],
      ["evidence_refs", `{"stageId":"review","status":"failed","summary":"s","evidenceRefs":{${odd}:{"messageIds":["msg_1"]}}}`],
    ] as const;
    for (const [name, body] of refused) expect((await send(body)).body.code).toBe(`invalid_workflow_${name}`);
    for (const outcome of ["toString", "constructor"]) {
      const { status, body } = await send(JSON.stringify({ stageId: "review", status: "failed", summary: "s", outcome }));
      expect([outcome, status, body.run?.currentStage ?? body.code]).toEqual([outcome, 200, "review"]);
    }
    const asked = await it.as("lead", "POST", "/v1/messages", {
      target: "ann",
      content: "x",
      workflowContext: { runId, stageId: "review", requirementKey: "Constructor", attempt: 1 },
    });
    expect(asked.status).toBeLessThan(500);
  });

  test("plain evidence never meets a peer requirement", async () => {
    await using it = await openOn(world)();
    const runId = await started(it);
    await checkpoint(it, runId, passBuild);
    expect(
      (await checkpoint(it, runId, { stageId: "review", status: "passed", summary: "trust me", evidence: { review: "all fine" } })).body.code,
    ).toBe("workflow_evidence_incomplete");
  });

  test("a degradation lowers the quorum for this attempt and marks the stage", async () => {
    await using it = await openOn(world)({}, { localAdminTokenHash: new Bun.CryptoHasher("sha256").update("boss").digest("hex") });
    const runId = await started(it);
    await checkpoint(it, runId, passBuild);
    const degrade = (reason: string, requirementKey = "review", headers: Record<string, string> = { authorization: "Bearer boss" }) =>
      it.call("POST", `/v1/workflows/${runId}/degradations`, { body: { stageId: "review", requirementKey, reason }, headers });
    expect((await degrade("x", "review", {})).status).toBe(401);
    const body = { name: "other's admin", scope: "admin", project: "other" };
    const { secret } = (await it.call("POST", "/v1/tokens", { body, headers: { authorization: "Bearer boss" } })).body;
    expect((await degrade("x", "review", { authorization: `Bearer ${secret}` })).body.code).toBe("workflow_not_found");
    expect((await degrade("bob is away")).status).toBe(201);
    expect((await degrade("bob is away")).body.duplicate).toBe(true);
    expect((await degrade("another reason")).body.code).toBe("workflow_degradation_conflict");
    expect((await degrade("x", "other key")).body.code).toBe("workflow_degradation_forbidden");
    const ann = await review(it, runId, "ann");
    const done = await checkpoint(it, runId, {
      stageId: "review",
      status: "passed",
      summary: "ok",
      evidenceRefs: { review: { messageIds: [ann.message.id] } },
    });
    expect(done.body.run.stages[1]).toMatchObject({ status: "passed", degraded: true, degradedRequirements: ["review"] });
    expect((await degrade("late")).body.code).toBe("workflow_terminal");
  });

  test("the coordinator of another run, a peer and another project are refused", async () => {
    await using it = await openOn(world)();
    const runId = await started(it);
    expect((await it.as("ann", "GET", `/v1/workflows/${runId}`)).body).toMatchObject({
      code: "workflow_forbidden",
      operation: "get",
      assignedCoordinatorName: "lead",
      nextAction: "use_assigned_coordinator",
    });
    const stranger = (await it.as("eve", "POST", `/v1/workflows/${runId}/checkpoints`, passBuild)).body;
    expect(stranger).toMatchObject({ code: "workflow_forbidden", operation: "checkpoint" });
    expect(stranger.assignedCoordinatorName).toBeUndefined();
    expect((await it.as("lead", "GET", "/v1/workflows/run_none")).body.code).toBe("workflow_not_found");
  });

  test("bad checkpoints are refused by name and use no attempt", async () => {
    await using it = await openOn(world)();
    const runId = await started(it);
    const code = async (body: object) => (await checkpoint(it, runId, { ...passBuild, ...body })).body.code;
    expect(await code({ status: "done" })).toBe("invalid_checkpoint_status");
    expect(await code({ stageId: "nowhere" })).toBe("workflow_stage_not_found");
    expect(await code({ stageId: "review" })).toBe("workflow_stage_out_of_order");
    for (const evidence of [
      [],
      "x",
      { a: 1 },
      { "A  b": "1", "a b": "2" },
      { a: "" },
      Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`k${n}`, "v"])),
      { a: "x".repeat(1001) },
    ]) {
      expect(await code({ evidence })).toBe("invalid_workflow_evidence");
    }
    for (const evidenceRefs of [[], { a: {} }, { a: { messageIds: [] } }, { a: { messageIds: ["x", "x"] } }, { a: { messageIds: ["x"], more: 1 } }]) {
      expect(await code({ evidenceRefs })).toBe("invalid_workflow_evidence_refs");
    }
    expect(await code({ status: "failed", evidenceRefs: { review: { messageIds: ["msg_1"] } } })).toBe("invalid_workflow_evidence_refs");
    expect(await code({ evidenceRefs: { "test log": { messageIds: ["msg_1"] } } })).toBe("workflow_evidence_policy_missing");
    expect((await it.as("lead", "GET", `/v1/workflows/${runId}`)).body.run.stages[0].attempts).toBe(0);
  });

  test("answers of the wrong run, stage, attempt or producer prove nothing", async () => {
    await using it = await openOn(world)();
    const [first, second] = [await started(it), await started(it)];
    await checkpoint(it, first, passBuild);
    await checkpoint(it, second, passBuild);
    const [foreign, unanswered] = [
      await review(it, second, "ann"),
      await it.as("lead", "POST", "/v1/messages", {
        target: "bob",
        content: "?",
        workflowContext: { runId: first, stageId: "review", requirementKey: "review", attempt: 1 },
      }),
    ];
    const plain = await it.as("lead", "POST", "/v1/messages", { target: "cid", content: "?" });
    await it.as("cid", "POST", `/v1/messages/${plain.body.message.id}/reply`, { content: "yes" });
    for (const id of [foreign.message.id, unanswered.body.message.id, plain.body.message.id, "msg_unknown"]) {
      expect(
        (await checkpoint(it, first, { stageId: "review", status: "passed", summary: "ok", evidenceRefs: { review: { messageIds: [id] } } })).body
          .code,
      ).toBe("workflow_provenance_invalid");
    }
    const good = await review(it, first, "ann");
    await checkpoint(it, first, { stageId: "review", status: "failed", summary: "again" });
    const late = await checkpoint(it, first, {
      stageId: "review",
      status: "passed",
      summary: "ok",
      evidenceRefs: { review: { messageIds: [good.message.id] } },
    });
    expect(late.body.code).toBe("workflow_provenance_invalid");
  });

  test("asking for evidence is refused when sender, stage, key, attempt, producer or correlation do not fit", async () => {
    await using it = await openOn(world)();
    const runId = await started(it);
    const ask = async (name: "lead" | "ann", context: unknown, more: object = {}) =>
      (await it.as(name, "POST", "/v1/messages", { target: "bob", content: "?", workflowContext: context, ...more })).body.code;
    const context = { runId, stageId: "review", requirementKey: "review", attempt: 1 };
    expect(await ask("lead", context)).toBe("workflow_context_inactive");
    await checkpoint(it, runId, passBuild);
    expect(await ask("lead", { ...context, extra: 1 })).toBe("invalid_workflow_context");
    expect(await ask("lead", { ...context, attempt: undefined })).toBe("invalid_workflow_context");
    expect(await ask("ann", context)).toBe("workflow_context_forbidden");
    expect(await ask("lead", { ...context, runId: "run_none" })).toBe("workflow_context_forbidden");
    expect(await ask("lead", { ...context, requirementKey: "nothing" })).toBe("workflow_evidence_policy_missing");
    expect(await ask("lead", { ...context, attempt: 2 })).toBe("workflow_context_attempt_mismatch");
    expect(await ask("lead", context, { target: "lead" })).toBe("workflow_evidence_producer_forbidden");
    expect(await ask("lead", context, { correlationId: "other" })).toBe("workflow_context_correlation_mismatch");
    expect(await ask("lead", context, { correlationId: runId })).toBeUndefined();
  });

  test("attempts run out: the stage and the run fail", async () => {
    await using it = await openOn(world)();
    const runId = await started(it);
    const first = await checkpoint(it, runId, { stageId: "build", status: "failed", summary: "broken" });
    expect(first.body).toMatchObject({ retry: true, completed: false });
    expect(first.body.instruction).toStartWith("Correct");
    const second = await checkpoint(it, runId, { stageId: "build", status: "warning", summary: "still broken" });
    expect(second.body.run).toMatchObject({ status: "failed", stages: [{ status: "warning", attempts: 2 }, { status: "pending" }] });
    expect(second.body.run.completedAt).toBeString();
  });

  test("a declared outcome leads back and the budget ends the loop", async () => {
    await using it = await openOn(world)({ maxTransitions: 1 });
    const runId = await started(it);
    await checkpoint(it, runId, passBuild);
    const back = await checkpoint(it, runId, { stageId: "review", status: "failed", outcome: "rework", summary: "redo" });
    expect(back.body.run).toMatchObject({
      currentStage: "build",
      transitions: [{ fromStage: "review", toStage: "build", outcome: "rework", attempt: 1 }],
      stages: [{ status: "in_progress", attempts: 0, evidence: {} }, { status: "pending" }],
    });
    await checkpoint(it, runId, passBuild);
    const spent = await checkpoint(it, runId, { stageId: "review", status: "failed", outcome: "rework", summary: "redo" });
    expect([spent.status, spent.body.run.status]).toEqual([200, "failed"]);
    const { journal } = (await it.as("lead", "GET", `/v1/workflows/${runId}`)).body;
    expect(journal.some((entry: any) => entry.summary.includes("budget"))).toBe(true);
  });

  test("too many automatic retries stop the run until somebody signals audit_escalation", async () => {
    await using it = await openOn(world)({
      stages: [{ id: "build", instructions: "x", requiredEvidence: [], maxAttempts: 5, autoResumeLimit: 1 }],
    });
    const runId = await started(it);
    const stopped = await checkpoint(it, runId, { stageId: "build", status: "failed", summary: "no" });
    expect(stopped.body.run).toMatchObject({
      status: "waiting",
      waiting: { signalKey: "audit_escalation" },
      stages: [{ status: "waiting", receipt: { schema: "kxm.terminal-receipt.v1", status: "audit_escalation" } }],
    });
    expect((await it.signal(runId, "audit_escalation", { status: "passed", summary: "go on" })).body.completed).toBe(true);
  });

  test("a reproduction once captured cannot be weakened and a plan hash is required where the definition says so", async () => {
    await using it = await openOn(world)({
      reproOracle: { stageId: "repro", evidenceKey: "repro" },
      planHash: { stageId: "plan", evidenceKey: "plan" },
      requirePlanHash: ["fix"],
      stages: [
        { id: "repro", instructions: "x", requiredEvidence: ["repro"] },
        { id: "plan", instructions: "x", requiredEvidence: [], on: { skip: "fix" } },
        { id: "fix", instructions: "x", requiredEvidence: ["repro"] },
      ],
    });
    const runId = await started(it);
    await checkpoint(it, runId, { stageId: "repro", status: "passed", summary: "ok", evidence: { repro: "fails so" } });
    expect(
      (await checkpoint(it, runId, { stageId: "plan", status: "passed", summary: "ok", evidence: { repro: "fails otherwise" } })).body.code,
    ).toBe("weakened_reproduction");
    await checkpoint(it, runId, { stageId: "plan", status: "passed", summary: "no plan" });
    expect((await checkpoint(it, runId, { stageId: "fix", status: "passed", summary: "ok", evidence: { repro: "fails so" } })).body.code).toBe(
      "plan_hash_required",
    );
  });

  test("a reply to the prompt before the end fails the run; while it waits a reply changes nothing", async () => {
    await using it = await openOn(world)();
    const [first, second] = [await started(it), await started(it)];
    const prompt = async (id: string) => (await it.as("lead", "GET", `/v1/workflows/${id}`)).body.run.messageId;
    await it.as("lead", "POST", `/v1/messages/${await prompt(first)}/reply`, { content: "I give up" });
    const { run, journal } = (await it.as("lead", "GET", `/v1/workflows/${first}`)).body;
    expect(run).toMatchObject({ status: "failed", stages: [{ status: "failed" }, {}] });
    expect(journal.at(-1)).toMatchObject({ category: "error", area: "workflow", stageId: "build", attempt: 1 });
    await it.as("lead", "POST", `/v1/workflows/${second}/waits`, { stageId: "build", signalKey: "ci", summary: "x" });
    await it.as("lead", "POST", `/v1/messages/${await prompt(second)}/reply`, { content: "later" });
    expect((await it.as("lead", "GET", `/v1/workflows/${second}`)).body.run.status).toBe("waiting");
  });

  test("a run that waits cannot be told to wait again: workflow_not_running", async () => {
    await using it = await openOn(world)();
    const runId = await started(it);
    const wait = () => it.as("lead", "POST", `/v1/workflows/${runId}/waits`, { stageId: "build", signalKey: "ci", summary: "x" });
    expect((await wait()).status).toBe(202);
    expect(await wait()).toMatchObject({ status: 409, body: { code: "workflow_not_running" } });
  });

  test("a wait that ran out fails the run on the next look and tells the coordinator", async () => {
    await using it = await openOn(world)();
    const runId = await started(it);
    await it.as("lead", "POST", `/v1/workflows/${runId}/waits`, { stageId: "build", signalKey: "ci", summary: "x", timeoutMs: 1000 });
    it.clock.now += 1000;
    const { run, journal } = (await it.as("lead", "GET", `/v1/workflows/${runId}`)).body;
    expect(run).toMatchObject({ status: "failed", stages: [{ status: "failed" }, {}] });
    expect(run.waiting).toBeUndefined();
    expect(journal.at(-1).summary).toContain("timed out");
    expect((await it.as("lead", "GET", `/v1/messages/${run.messageId}`)).body.message.fromName).toBe("timeout:release");
  });

  test("of 32 checkpoints at once one wins and the others are told the stage is over", async () => {
    await using it = await openOn(world)();
    const runId = await started(it);
    const answers = await Promise.all(Array.from({ length: 32 }, () => checkpoint(it, runId, passBuild)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(new Set(answers.filter(({ status }) => status !== 200).map(({ body }) => body.code))).toEqual(new Set(["workflow_stage_out_of_order"]));
  });

  test("a definition that was removed does not stop its living run", async () => {
    await using it = await openOn(world)();
    const runId = await started(it);
    it.hub.definitions = new Map();
    expect((await checkpoint(it, runId, passBuild)).status).toBe(200);
    expect((await it.start({})).body.code).toBe("webhook_not_found");
  });
});

// Signed starts and signals over the API: what starts or resumes a run, what is a duplicate, and what is refused.
import { describe, expect, test } from "bun:test";
import * as arrivals from "../../src/hub/webhook-arrivals.ts";
import { ARRIVALS_WAITING_MAX } from "../../src/protocol/limits.ts";
import type { WebhookArrival } from "../../src/protocol/webhook-arrivals.ts";
import { WORLDS } from "../support/engines.ts";
import { ADMIN_TOKEN } from "../support/fleet.ts";
import { RUNTIME, syncEvents } from "../support/sync-events.ts";
import { openOn, SECRET, type WorkflowWorld } from "../support/workflows.ts";

describe.each(WORLDS)("%s webhooks", (_, world) => {
  const issue = { issue: { key: "SHOP-1", title: "<b>now</b>" } };

  test("a signed start makes a run and sends its coordinator the rendered prompt", async () => {
    await using it = await openOn(world)();
    const { status, body } = await it.start(issue, { deliveryId: "d-first" });
    expect(status).toBe(202);
    expect(body.duplicate).toBe(false);
    expect(body.run).toMatchObject({
      id: body.runId,
      status: "running",
      currentStage: "build",
      targetAgentName: "lead",
      deliveryId: "d-first",
      project: "shop",
    });
    expect(body.run.stages.map((stage: any) => stage.status)).toEqual(["in_progress", "pending"]);
    const message = (await it.as("lead", "GET", `/v1/messages/${body.run.messageId}`)).body.message;
    expect(message).toMatchObject({
      from: `workflow:${body.runId}`,
      fromName: "webhook:release",
      correlationId: body.runId,
      workflowRunId: body.runId,
      hops: 0,
      maxHops: 5,
      status: "queued",
    });
    expect(message.content).toContain('Release SHOP-1 {"key":"SHOP-1","title":"<b>now</b>"}');
    expect(message.content).toContain("kxm_workflow_record");
  });

  test("the same delivery is a duplicate, with another body a conflict", async () => {
    await using it = await openOn(world)();
    const first = await it.start(issue, { deliveryId: "d" });
    expect((await it.start(issue, { deliveryId: "d" })).body).toEqual({ duplicate: true, runId: first.body.runId, status: "running" });
    expect((await it.start({ issue: { key: "SHOP-2" } }, { deliveryId: "d" })).body.code).toBe("webhook_delivery_conflict");
    expect((await it.as("lead", "GET", "/v1/workflows")).body.runs).toHaveLength(1);
  });

  test("a provider's body starts one run, whatever its delivery id", async () => {
    await using it = await openOn(world)();
    expect((await it.start(issue, { form: "body", definitionId: "other", deliveryId: "gh-1" })).status).toBe(202);
    expect((await it.start(issue, { form: "body", definitionId: "other", deliveryId: "gh-2" })).body.code).toBe("webhook_payload_replayed");
    expect((await it.start(issue, { form: "body" })).body.code).toBe("webhook_signature_missing");
  });

  test("events and filters let only what was asked for start a run, and use no delivery id", async () => {
    await using it = await openOn(world)({ event: "opened", filter: { path: "issue.key", equals: "SHOP-1" } });
    expect((await it.start({ ...issue, event: "closed" }, { deliveryId: "d" })).status).toBe(204);
    expect((await it.start({ event: "opened", issue: { key: "SHOP-2" } }, { deliveryId: "d" })).status).toBe(204);
    expect((await it.start(issue, { deliveryId: "d", headers: { "x-github-event": "opened" } })).status).toBe(202);
  });

  test("a start is refused when its coordinator or an eligible agent never registered", async () => {
    await using it = await openOn(world)({ target: "nobody" });
    expect((await it.start(issue)).body.code).toBe("workflow_target_unavailable");
    await using other = await openOn(world)({
      stages: [
        {
          id: "s",
          instructions: "x",
          requiredEvidence: ["k"],
          evidencePolicies: { k: { kind: "peer-reply", minProducers: 1, eligibleAgents: ["nobody"] } },
        },
      ],
    });
    expect((await other.start(issue)).body.code).toBe("workflow_target_unavailable");
  });

  test("a producer named by the coordinator's id, and one agent named twice, make no quorum", async () => {
    await using it = await openOn(world)();
    const policies = (eligibleAgents: string[], minProducers = 1) => ({
      stages: [
        { id: "s", instructions: "x", requiredEvidence: ["k"], evidencePolicies: { k: { kind: "peer-reply", minProducers, eligibleAgents } } },
      ],
    });
    const { parseDefinitions } = await import("../../src/hub/workflows/definitions.ts");
    const { DEFINITION } = await import("../support/workflows.ts");
    const load = (change: object) => {
      it.hub.definitions = parseDefinitions(JSON.stringify([{ ...DEFINITION, ...change }]), {}).definitions;
    };
    load(policies([it.agents.lead.id]));
    expect((await it.start(issue)).body.code).toBe("workflow_evidence_policy_invalid");
    load(policies(["ann", it.agents.ann.id], 2));
    expect((await it.start(issue)).body.code).toBe("workflow_evidence_policy_unresolvable");
  });

  test("forged, stale and unknown starts store nothing", async () => {
    await using it = await openOn(world)();
    const forged = await it.start(issue, { headers: { "x-kxm-signature": `sha256=${"0".repeat(64)}` } });
    expect([forged.status, forged.body.code]).toEqual([401, "webhook_signature_invalid"]);
    expect(JSON.stringify(forged.body)).not.toContain(SECRET);
    it.clock.now += 301_000;
    const stale = await it.start(issue, { headers: { "x-kxm-timestamp": String(Math.floor(it.clock.now / 1000) - 301) } });
    expect(stale.body.code).toBe("webhook_signature_invalid"); // the timestamp is signed too
    expect((await it.start(issue, { definitionId: "unknown" })).body.code).toBe("webhook_not_found");
    expect((await it.start("[1]")).body.code).toBe("invalid_json");
    expect((await it.start(issue, { deliveryId: "x".repeat(129) })).body.code).toBe("protocol_error");
    expect((await it.as("lead", "GET", "/v1/workflows")).body.runs).toEqual([]);
  });

  test("a prompt that would be too long is refused before anything is stored", async () => {
    await using it = await openOn(world)();
    expect((await it.start({ issue: { key: "x".repeat(33_000) } })).body.code).toBe("protocol_error");
    expect((await it.as("lead", "GET", "/v1/workflows")).body.runs).toEqual([]);
  });

  test("a signal ends the waiting stage, resumes the coordinator and counts once", async () => {
    await using it = await openOn(world)();
    const { runId } = (await it.start(issue)).body;
    await it.as("lead", "POST", `/v1/workflows/${runId}/waits`, {
      stageId: "build",
      signalKey: "ci",
      summary: "CI runs",
      evidence: { "test log": "started" },
    });
    const passed = { status: "passed", summary: "All green", evidence: { "workflow.run": runId, "Test Log": "log-1" } };
    const answer = await it.signal(runId, "ci", passed, { deliveryId: "sig" });
    expect([answer.status, answer.body]).toEqual([
      202,
      {
        duplicate: false,
        status: "passed",
        stageId: "build",
        signalKey: "ci",
        retry: false,
        completed: false,
        degraded: false,
        degradedRequirements: [],
        resumed: true,
      },
    ]);
    const { run } = (await it.as("lead", "GET", `/v1/workflows/${runId}`)).body;
    expect(run).toMatchObject({ status: "running", currentStage: "review" });
    expect(run.stages[0].evidence).toEqual({ "test log": ["started", "log-1"], "workflow.run": [runId] });
    const resume = (await it.as("lead", "GET", `/v1/messages/${run.messageId}`)).body.message;
    expect(resume).toMatchObject({ fromName: "signal:release" });
    expect(resume.content).toContain("All green");
    const again = await it.signal(runId, "ci", passed, { deliveryId: "sig" });
    expect([again.status, again.body.duplicate, again.body.resumed]).toEqual([200, true, true]);
    expect((await it.signal(runId, "ci", { ...passed, summary: "x" }, { deliveryId: "sig" })).body.code).toBe("workflow_signal_delivery_conflict");
  });

  test("signals that do not fit are refused by name and the run goes on waiting", async () => {
    await using it = await openOn(world)();
    const { runId } = (await it.start(issue)).body;
    const passed = { status: "passed", summary: "ok", evidence: { "test log": "x" } };
    expect((await it.signal(runId, "ci", passed)).body.code).toBe("workflow_not_waiting");
    await it.as("lead", "POST", `/v1/workflows/${runId}/waits`, { stageId: "build", signalKey: "ci", summary: "CI runs" });
    expect((await it.signal(runId, "other", passed)).body.code).toBe("workflow_signal_mismatch");
    expect((await it.signal(runId, "c i", passed)).body.code).toBe("invalid_signal_key");
    expect((await it.signal(runId, "ci", { ...passed, evidence: { "workflow.stage": "review" } })).body).toMatchObject({
      code: "workflow_signal_context_mismatch",
      contextKey: "workflow.stage",
    });
    expect((await it.signal(runId, "ci", { status: "passed", summary: "ok" }, { deliveryId: "unused" })).body).toMatchObject({
      code: "workflow_evidence_incomplete",
      missingRequirements: ["test log"],
    });
    expect((await it.signal(runId, "ci", { status: "great", summary: "ok" })).body.code).toBe("invalid_checkpoint_status");
    expect((await it.signal(runId, "ci", passed, { secret: SECRET })).body.code).toBe("webhook_signature_invalid");
    expect((await it.signal("run_unknown", "ci", passed)).body.code).toBe("workflow_not_found");
    expect((await it.signal(runId, "ci", passed, { definitionId: "other" })).body.code).toBe("workflow_not_found");
    expect((await it.signal(runId, "ci", passed, { deliveryId: "unused" })).status).toBe(202);
  });

  test("a failed signal uses an attempt, writes an error and lets the coordinator try again", async () => {
    await using it = await openOn(world)();
    const { runId } = (await it.start(issue)).body;
    await it.as("lead", "POST", `/v1/workflows/${runId}/waits`, { stageId: "build", signalKey: "ci", summary: "CI runs" });
    const answer = await it.signal(runId, "ci", { status: "failed", summary: "Two tests failed" });
    expect([answer.status, answer.body.retry, answer.body.resumed]).toEqual([202, true, true]);
    const { run, journal } = (await it.as("lead", "GET", `/v1/workflows/${runId}`)).body;
    expect(run.stages[0]).toMatchObject({ status: "in_progress", attempts: 1 });
    expect(journal).toMatchObject([
      { category: "error", area: "gates", severity: "error", summary: "Two tests failed", stageId: "build", attempt: 1 },
    ]);
  });

  test("a signed signal with a project's id reaches the waiting run of a Runtime, once", async () => {
    await using it = await openOn(world)();
    const events = syncEvents(1, 3);
    const { projectId, runId } = events[0]!;
    await it.call("POST", "/v1/sync/events", { body: { project: "shop", runtimeId: RUNTIME, events } });
    const passed = { projectId, status: "passed", summary: "All green" };
    const first = await it.signal(runId, "ci", passed, { deliveryId: "sig" });
    expect([first.status, first.body]).toEqual([202, { commandId: expect.any(String), runId, duplicate: false }]);
    expect((await it.signal(runId, "ci", passed, { deliveryId: "sig" })).body).toEqual({ commandId: first.body.commandId, runId, duplicate: true });
    const poll = await it.call("GET", `/v1/runtime/commands?project=shop&runtimeId=${RUNTIME}`);
    const payload = { signal: "ci", status: "passed", summary: "All green" };
    expect(poll.body.commands).toMatchObject([{ kind: "signal", projectId, runId, payload, actor: "signal:release" }]);
    const code = async (...args: Parameters<typeof it.signal>) => (await it.signal(...args)).body.code;
    expect(await code(runId, "ci", { ...passed, summary: "Red" }, { deliveryId: "sig" })).toBe("idempotency_conflict");
    expect(await code(runId, "ci", passed, { secret: SECRET })).toBe("webhook_signature_invalid");
    expect(await code("run_unknown", "ci", passed)).toBe("run_not_found");
    expect(await code(runId, "ci", { ...passed, projectId: "prj_somebody_else" })).toBe("run_not_found");
    expect(await code(runId, "ci.done", passed)).toBe("protocol_error");
    expect(await code(runId, "ci", { ...passed, status: 7 })).toBe("protocol_error");
  });

  const look = (it: WorkflowWorld, query: string) =>
    it.call("GET", `/v1/webhook-arrivals?${query}`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  /** The log as a viewer of the API reads it, after what waited was written. */
  async function logOf(it: WorkflowWorld, query = "") {
    await arrivals.flush(it.hub);
    const { status, body } = await look(it, `project=shop${query}`);
    expect(status).toBe(200);
    return body.arrivals as WebhookArrival[];
  }
  const told = (rows: readonly WebhookArrival[]) => rows.map(({ outcome, code, deliveryId, count }) => [outcome, code, deliveryId, count]);

  test("each delivery is in the log with what was made of it and by whom, and without its body", async () => {
    await using it = await openOn(world)({ event: "opened" });
    const open = { event: "opened", issue: { key: "BODY-TEXT" } };
    const { body } = await it.start(open, { deliveryId: "d-1", headers: { "user-agent": "GitHub-Hookshot/1" } });
    it.clock.now += 1_000;
    await it.start(open, { deliveryId: "d-1" });
    it.clock.now += 1_000;
    await it.start({ event: "closed" }, { deliveryId: "d-2" });
    it.clock.now += 1_000;
    await it.start({ event: "opened" }, { deliveryId: "d-1" });
    const rows = await logOf(it);
    expect(told(rows)).toEqual([
      ["refused", "webhook_delivery_conflict", "d-1", 1],
      ["ignored", undefined, "d-2", 1],
      ["duplicate", undefined, "d-1", 1],
      ["accepted", undefined, "d-1", 1],
    ]);
    expect(rows.at(-1)).toMatchObject({ runId: body.runId, program: "GitHub-Hookshot/1", event: "opened", kind: "start", verified: true });
    expect(rows[1]!.reason).toBe("only the event opened is wanted");
    expect(JSON.stringify(rows)).not.toContain("BODY-TEXT");
    expect(told(await logOf(it, "&outcome=refused"))).toEqual([["refused", "webhook_delivery_conflict", "d-1", 1]]);
    expect(await logOf(it, "&definitionId=release")).toHaveLength(4);
  });

  test("what nobody signed is one line an hour, however often it comes, and is marked as claimed", async () => {
    await using it = await openOn(world)();
    const forge = (deliveryId: string) => it.start(issue, { deliveryId, headers: { "x-kxm-signature": "sha256=00" } });
    for (const n of [1, 2, 3]) expect((await forge(`f-${n}`)).status).toBe(401);
    expect(told(await logOf(it))).toEqual([["refused", "webhook_signature_invalid", "f-3", 3]]);
    await forge("f-4");
    const [row, ...more] = await logOf(it);
    expect([row!.count, row!.deliveryId, row!.verified, more]).toEqual([4, "f-4", false, []]);
    it.clock.now += 3_600_000;
    await forge("f-5");
    expect((await logOf(it)).map(({ count }) => count)).toEqual([1, 4]);
    expect((await it.start(issue, { definitionId: "nobody" })).body.hint).toContain("KXM_WEBHOOK_WORKFLOWS_FILE");
    expect(await logOf(it)).toHaveLength(2);
  });

  test("a signal is in the log with its key and run; a refused one with its reason", async () => {
    await using it = await openOn(world)();
    const { runId } = (await it.start(issue, { deliveryId: "d" })).body;
    it.clock.now += 1_000;
    expect((await it.signal(runId, "ci.done", { status: "passed", summary: "x" }, { deliveryId: "s-1" })).body.code).toBe("workflow_not_waiting");
    expect((await logOf(it))[0]).toMatchObject({
      kind: "signal",
      outcome: "refused",
      code: "workflow_not_waiting",
      runId,
      signalKey: "ci.done",
      deliveryId: "s-1",
    });
  });

  test("hostile headers and events are short plain text, and a flood in one moment is counted", async () => {
    await using it = await openOn(world)({ event: "opened" });
    await it.start({ event: `a\u0001<b>\u202e${"x".repeat(400)}` }, { deliveryId: "h", headers: { "user-agent": `a\tb${"y".repeat(400)}` } });
    const [row] = await logOf(it);
    expect(row!.event).toMatch(/^a <b>.{100,124}…$/u);
    expect(row!.program!.length).toBe(128);
    const claim = { project: "shop", definitionId: "release", kind: "start" as const, verified: true };
    for (let n = 0; n < 2 * ARRIVALS_WAITING_MAX; n++) it.hub.arrivals.note(claim, { outcome: "ignored" });
    expect(await arrivals.flush(it.hub)).toBe(ARRIVALS_WAITING_MAX + 1);
    expect((await logOf(it, "&limit=1"))[0]!.count).toBe(ARRIVALS_WAITING_MAX);
  });

  test("a token of another project sees none of it, and pages go on where they ended", async () => {
    await using it = await openOn(world)();
    for (const n of [1, 2, 3]) {
      it.clock.now += 1_000;
      await it.start({ ...issue, n }, { deliveryId: `p-${n}` });
    }
    const first = await look(it, "project=shop&limit=2");
    const second = await look(it, `project=shop&limit=2&after=${first.body.next}`);
    expect([...first.body.arrivals, ...second.body.arrivals].map(({ deliveryId }) => deliveryId)).toEqual(["p-3", "p-2", "p-1"]);
    expect(second.body.next).toBeUndefined();
    expect((await look(it, "project=elsewhere")).body.arrivals).toEqual([]);
    expect((await look(it, "project=elsewhere&definitionId=release")).body.code).toBe("webhook_not_found");
    expect((await look(it, "project=shop&after=x")).body.code).toBe("protocol_error");
  });
});

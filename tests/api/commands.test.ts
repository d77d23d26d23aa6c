// Operators ask, the Runtime fetches and answers: commands and approvals on both engines, from the event that asks to the receipt of the decision.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import * as commands from "../../src/hub/commands.ts";
import { COMMAND_TTL_MS } from "../../src/protocol/limits.ts";
import type { SyncEventType, SyncPayload } from "../../src/protocol/sync-event.ts";
import { WORLDS } from "../support/engines.ts";
import { type Fleet, type HubSeat, openFleet, until } from "../support/fleet.ts";
import { HASH, OTHER_RUNTIME, RUNTIME, syncEvent } from "../support/sync-events.ts";

const OTHER_HASH = `sha256:${"fe".repeat(32)}`;

describe.each(WORLDS)("%s commands", (_, open) => {
  let it: Fleet;
  let operator: string;
  let viewer: string;
  let made = 0;
  beforeAll(async () => {
    it = await openFleet(open);
    [operator, viewer] = [await it.token("operator"), await it.token("viewer")];
  }, 30_000);
  afterAll(() => it[Symbol.asyncDispose]());

  /** A hub project with one run that waits for an approval at sequence 3. */
  async function waitingRun(content = "Push 3 commits to main?", hash = HASH, named: SyncPayload = { displayTitle: "Settle refunds" }) {
    const id = (++made).toString(16).padStart(8, "0");
    const told = { projectId: `prj_${id}`, runId: `run_${id}` };
    const project = `p${id}`;
    const approvalId = `apr_${id}`;
    let last = 0;
    const push = async (type: SyncEventType, payload: SyncPayload) => {
      const { body } = await it.call(undefined, "POST", "/v1/sync/events", {
        project,
        runtimeId: RUNTIME,
        events: [syncEvent(++last, { ...told, type, payload })],
      });
      expect(body.results[0].outcome).toBe("accepted");
    };
    const ask = (ofHash: string, summary: string) =>
      push("step.status_changed", {
        stepId: "deliver",
        stepAttempt: 1,
        status: "waiting",
        summary,
        evidenceRefs: [{ id: approvalId, kind: "approval-request", hash: ofHash }],
      });
    await push("run.created", { status: "running", ...named });
    await push("step.entered", { stepId: "deliver", status: "running" });
    await ask(hash, content);
    const record = (outcome: string) =>
      push("approval.recorded", {
        actor: { kind: "human", id: "ana" },
        outcome,
        reason: "looked at it",
        suppliedRefs: [{ id: approvalId, kind: "approval-request" }],
      });
    const approval = async () => (await it.call(viewer, "GET", `/v1/approvals/${approvalId}`)).body.approval;
    const decide = (body: object, as = operator) => it.call(as, "POST", `/v1/approvals/${approvalId}/decision`, body);
    const poll = async (query = "", hub: HubSeat = it) =>
      (await hub.call(undefined, "GET", `/v1/runtime/commands?project=${project}&runtimeId=${RUNTIME}${query}`)).body.commands;
    const result = (commandId: string, body: object, runtimeId = RUNTIME, ofProject = project) =>
      it.call(undefined, "POST", `/v1/runtime/commands/${commandId}/result`, { project: ofProject, runtimeId, ...body });
    const send = (body: object, as = operator) => it.call(as, "POST", "/v1/runtime/commands", { project, ...body });
    return { ...told, project, approvalId, push, ask, record, approval, decide, poll, result, send };
  }

  test("an approval of a run without a title is named after its workflow and the run", async () => {
    const run = await waitingRun(undefined, undefined, { workflowId: "release" });
    expect((await run.approval()).title).toBe(`release ${run.runId}`);
    const bare = await waitingRun(undefined, undefined, {});
    expect((await bare.approval()).title).toBe(bare.runId);
  });

  test("an approval shows exactly what is asked, by whom and with which hash, and is listed while it waits", async () => {
    const run = await waitingRun();
    const at = new Date(it.clock.now).toISOString();
    const shown = {
      id: run.approvalId,
      project: run.project,
      projectId: run.projectId,
      runId: run.runId,
      runtimeId: RUNTIME,
      stepId: "deliver",
      attempt: 1,
      title: "Settle refunds",
      content: "Push 3 commits to main?",
      contentHash: HASH,
      status: "pending",
      requestedAt: at,
      updatedAt: at,
    };
    expect(await run.approval()).toEqual(shown);
    const list = async (query: string) => (await it.call(viewer, "GET", `/v1/approvals?project=${run.project}${query}`)).body.approvals;
    expect(await list("")).toEqual([shown]);
    expect(await list("&status=approved")).toEqual([]);
    expect((await it.call(await it.token("viewer", "another"), "GET", `/v1/approvals/${run.approvalId}`)).body.code).toBe("approval_not_found");
    expect((await it.call(undefined, "GET", `/v1/approvals/${run.approvalId}`)).status).toBe(401);
  });

  test("a decision becomes a command in the same transaction; its way to the Runtime shows until it is applied", async () => {
    const run = await waitingRun();
    const answer = await run.decide({ decision: "approve", reason: "reviewed", contentHash: HASH });
    expect(answer.status).toBe(200);
    expect(answer.body.approval).toMatchObject({
      status: "approved",
      reason: "reviewed",
      decidedBy: expect.stringMatching(/^tok_/),
      decision: { decision: "approve", command: { state: "sent" } },
    });
    expect((await it.log(run.project)).slice(-2)).toEqual(["runtimes.command_sent", "approvals.approved"]);
    const [command] = await run.poll();
    expect(command).toEqual({
      id: answer.body.approval.decision.command.id,
      seq: 1,
      kind: "approve",
      projectId: run.projectId,
      runId: run.runId,
      payload: { approvalId: run.approvalId, contentHash: HASH, reason: "reviewed" },
      actor: answer.body.approval.decidedBy,
      createdAt: new Date(it.clock.now).toISOString(),
    });
    expect(await run.poll()).toEqual([command]); // reading marks nothing
    expect((await run.result(command.id, { state: "received" })).body).toEqual({ command: { id: command.id, state: "received" } });
    expect((await run.approval()).decision.command).toMatchObject({ state: "received", receivedAt: new Date(it.clock.now).toISOString() });
    it.clock.now += 5_000;
    await run.result(command.id, { state: "applied", detail: { sequence: 4 } });
    expect((await run.approval()).decision.command).toMatchObject({ state: "applied", finishedAt: new Date(it.clock.now).toISOString() });
    expect(await run.poll()).toEqual([]);
    await run.record("approved");
    expect(await run.approval()).toMatchObject({ status: "approved", reason: "reviewed" });
    const { commands: listed } = (await it.call(viewer, "GET", `/v1/runs/${run.projectId}/${run.runId}/commands`)).body;
    expect(listed).toMatchObject([{ id: command.id, state: "applied", detail: { sequence: 4 } }]);
  });

  test("what is decided is the content that was shown: another hash, a second decision and other people's tokens are refused", async () => {
    const run = await waitingRun();
    const wrong = await run.decide({ decision: "approve", contentHash: OTHER_HASH });
    expect([wrong.status, wrong.body.code, wrong.body.approval.contentHash]).toEqual([409, "approval_content_changed", HASH]);
    expect(await run.poll()).toEqual([]);
    for (const body of [{}, { decision: "maybe", contentHash: HASH }, { decision: "approve" }, { decision: "approve", contentHash: "sha256:x" }])
      expect((await run.decide(body)).body.code).toBe("protocol_error");
    expect((await run.decide({ decision: "approve", contentHash: HASH }, viewer)).body.code).toBe("role_forbidden");
    expect((await run.decide({ decision: "approve", contentHash: HASH }, await it.token("operator", "another"))).body.code).toBe(
      "approval_not_found",
    );
    expect((await run.decide({ decision: "reject", contentHash: HASH })).status).toBe(200);
    const second = await run.decide({ decision: "approve", contentHash: HASH });
    expect([second.status, second.body.code, second.body.approval.status]).toEqual([409, "approval_decided", "rejected"]);
    expect(await run.poll()).toHaveLength(1);
  });

  test("content that changes while it waits must be decided anew", async () => {
    const run = await waitingRun();
    await run.ask(OTHER_HASH, "Push 4 commits to main?");
    expect(await run.approval()).toMatchObject({ status: "pending", contentHash: OTHER_HASH, content: "Push 4 commits to main?" });
    expect((await run.decide({ decision: "approve", contentHash: HASH })).body.code).toBe("approval_content_changed");
    expect((await run.decide({ decision: "approve", contentHash: OTHER_HASH })).status).toBe(200);
  });

  test("the same question asked again while the decision is on its way does not undo it; asked again after the answer, it waits again", async () => {
    const run = await waitingRun();
    await run.decide({ decision: "approve", contentHash: HASH });
    await run.ask(HASH, "Push 3 commits to main?");
    expect((await run.approval()).status).toBe("approved");
    const [command] = await run.poll();
    await run.result(command.id, { state: "applied" });
    await run.ask(HASH, "Push 3 commits to main?");
    expect((await run.approval()).status).toBe("pending");
  });

  test("a decision that the Runtime refuses was not made: the approval waits again, and says why", async () => {
    const run = await waitingRun();
    await run.decide({ decision: "approve", contentHash: HASH });
    const [command] = await run.poll();
    await run.result(command.id, { state: "refused", reason: "what it asks for is not what was decided on" });
    const approval = await run.approval();
    expect(approval).toMatchObject({
      status: "pending",
      decision: { decision: "approve", command: { state: "refused", reason: "what it asks for is not what was decided on" } },
    });
    expect("decidedBy" in approval).toBe(false);
    expect((await it.log(run.project)).slice(-2)).toEqual(["runtimes.command_refused", "approvals.reopened"]);
    expect((await run.decide({ decision: "reject", contentHash: HASH })).body.approval.status).toBe("rejected");
    expect(await run.poll()).toMatchObject([{ seq: 2, kind: "reject" }]);
  });

  test("what becomes of an earlier decision does not undo the one that was made since", async () => {
    const run = await waitingRun();
    await run.decide({ decision: "approve", contentHash: HASH });
    const [first] = await run.poll();
    await run.ask(OTHER_HASH, "Push 4 commits to main?");
    await run.decide({ decision: "reject", contentHash: OTHER_HASH });
    await run.result(first.id, { state: "refused", reason: "what it asks for is not what was decided on" });
    expect((await run.approval()).status).toBe("rejected");
  });

  test("a decision made at the machine closes the approval here; the end of the run or of the step cancels it", async () => {
    const local = await waitingRun();
    await local.record("rejected");
    expect(await local.approval()).toMatchObject({ status: "rejected", decidedBy: "human:ana", reason: "looked at it" });
    const ended = await waitingRun();
    await ended.push("run.status_changed", { status: "cancelled" });
    expect((await ended.approval()).status).toBe("cancelled");
    expect((await ended.decide({ decision: "approve", contentHash: HASH })).body.code).toBe("run_not_accepting");
    const moot = await waitingRun();
    await moot.push("step.status_changed", { stepId: "deliver", status: "failed" });
    expect((await moot.approval()).status).toBe("cancelled");
    expect((await it.log(moot.project)).at(-2)).toBe("approvals.cancelled");
  });

  test("an approval id that another run uses touches nothing of it and raises an alert", async () => {
    const victim = await waitingRun();
    const id = (++made).toString(16).padStart(8, "0");
    const told = { projectId: `prj_${id}`, runId: `run_${id}` };
    const evidenceRefs = [{ id: victim.approvalId, kind: "approval-request", hash: OTHER_HASH }];
    const events = [
      syncEvent(1, { ...told, type: "step.status_changed", payload: { stepId: "x", status: "waiting", summary: "harmless", evidenceRefs } }),
    ];
    await it.call(undefined, "POST", "/v1/sync/events", { project: "thief", runtimeId: RUNTIME, events });
    expect(await victim.approval()).toMatchObject({ status: "pending", content: "Push 3 commits to main?", contentHash: HASH, runId: victim.runId });
    expect((await it.call(viewer, "GET", "/v1/alerts?project=thief")).body.alerts).toMatchObject([
      { kind: "approval_id_reused", severity: "security" },
    ]);
    const recorded = [
      syncEvent(2, {
        ...told,
        type: "approval.recorded",
        payload: { actor: { kind: "human", id: "x" }, outcome: "approved", suppliedRefs: [{ id: victim.approvalId, kind: "approval-request" }] },
      }),
    ];
    await it.call(undefined, "POST", "/v1/sync/events", { project: "thief", runtimeId: RUNTIME, events: recorded });
    expect((await victim.approval()).status).toBe("pending");
  });

  test("pending approvals are listed longest first, others newest first, page by page", async () => {
    const project = `list${++made}`;
    const ask = async (n: number) => {
      it.clock.now += 1_000;
      const id = (++made).toString(16).padStart(8, "0");
      const evidenceRefs = [{ id: `apr_${project}${n}`, kind: "approval-request", hash: HASH }];
      const event = syncEvent(1, {
        projectId: `prj_${project}x`,
        runId: `run_${id}`,
        type: "step.status_changed",
        payload: { stepId: "x", status: "waiting", evidenceRefs },
      });
      await it.call(undefined, "POST", "/v1/sync/events", { project, runtimeId: RUNTIME, events: [event] });
    };
    for (let n = 1; n <= 5; n++) await ask(n);
    const page = async (query: string) => (await it.call(viewer, "GET", `/v1/approvals?project=${project}&limit=2${query}`)).body;
    const numbers = ({ approvals }: any) => approvals.map(({ id }: any) => Number(id.at(-1)));
    const first = await page("");
    const second = await page(`&after=${first.next}`);
    const third = await page(`&after=${second.next}`);
    expect([numbers(first), numbers(second), numbers(third), third.next]).toEqual([[1, 2], [3, 4], [5], undefined]);
    const all = await page("&status=all");
    expect([numbers(all), numbers(await page(`&status=all&after=${all.next}`))]).toEqual([
      [5, 4],
      [3, 2],
    ]);
    expect((await page("&after=junk")).code).toBe("protocol_error");
    expect((await page("&status=lost")).code).toBe("protocol_error");
  });

  test("every kind of command reaches the run's Runtime, numbered without gap, and needs what it is about", async () => {
    const run = await waitingRun();
    const { projectId, runId } = run;
    const about = { projectId, runId };
    const ok: [string, object][] = [
      ["start", { runtimeId: RUNTIME, projectId, payload: { prompt: "secret text", workflowId: "default" } }],
      ["signal", { ...about, payload: { signal: "ci-result", status: "passed" } }],
      ["retry", { ...about, payload: { stepId: "deliver", reason: "flaky" } }],
      ["cancel", { ...about, payload: { reason: "wrong branch" } }],
      ["pause", { runtimeId: RUNTIME }],
      ["resume", { runtimeId: RUNTIME }],
      ["resolve", { ...about, payload: { stepId: "deliver", action: "mark-completed", reason: "checked" } }],
      ["approve", { ...about, payload: { approvalId: run.approvalId, contentHash: HASH } }],
    ];
    for (const [index, [kind, body]] of ok.entries()) {
      const { status, body: sent } = await run.send({ kind, ...body });
      expect([kind, status, sent.command.seq, sent.command.state]).toEqual([kind, 201, index + 1, "sent"]);
    }
    expect((await run.poll()).map(({ kind }: any) => kind)).toEqual(ok.map(([kind]) => kind));
    expect((await run.poll())[0].payload).toEqual({ prompt: "secret text", workflowId: "default" }); // the Runtime gets the prompt
    expect((await run.poll("&after=6")).map(({ seq }: any) => seq)).toEqual([7, 8]);
    expect((await run.poll("&limit=2")).map(({ seq }: any) => seq)).toEqual([1, 2]);
    const shown = await run.send({ kind: "start", runtimeId: RUNTIME, payload: { prompt: "secret text" } });
    expect(shown.body.command.payload).toEqual({ promptCharacters: 11 });
    const code = async (body: object) => (await run.send(body)).body.code;
    expect(await code({ kind: "dance", runtimeId: RUNTIME })).toBe("protocol_error");
    expect(await code({ kind: "cancel", runtimeId: RUNTIME })).toBe("protocol_error");
    expect(await code({ kind: "pause" })).toBe("protocol_error");
    expect(await code({ kind: "pause", runtimeId: OTHER_RUNTIME })).toBe("runtime_not_found");
    expect(await code({ kind: "cancel", projectId, runId: "run_unknown0" })).toBe("run_not_found");
    expect(await code({ kind: "cancel", ...about, runtimeId: OTHER_RUNTIME })).toBe("protocol_error");
    expect(await code({ kind: "signal", ...about, payload: {} })).toBe("protocol_error");
    expect(await code({ kind: "start", runtimeId: RUNTIME, payload: { prompt: "x".repeat(32_001) } })).toBe("protocol_error");
    expect(await code({ kind: "start", runtimeId: RUNTIME, payload: { extra: "x".repeat(70_000) } })).toBe("protocol_error");
    expect(await code({ kind: "reject", ...about, payload: { approvalId: run.approvalId, contentHash: HASH } })).toBe("approval_decided");
    expect((await run.send({ kind: "cancel", ...about }, viewer)).body.code).toBe("role_forbidden");
    expect((await run.send({ kind: "cancel", ...about }, await it.token("operator", "another"))).body.code).toBe("role_forbidden");
    await run.push("run.status_changed", { status: "completed" });
    expect(await code({ kind: "cancel", ...about })).toBe("run_not_accepting");
    expect((await run.send({ kind: "retry", ...about })).status).toBe(201);
  });

  test("another project's run cannot be commanded", async () => {
    const run = await waitingRun();
    const { projectId, runId } = run;
    const answer = await it.call(operator, "POST", "/v1/runtime/commands", { project: "elsewhere", kind: "cancel", projectId, runId });
    expect(answer.body.code).toBe("run_not_found");
  });

  test("the same key and request are one command; another request under the key is refused", async () => {
    const run = await waitingRun();
    const body = { kind: "cancel", projectId: run.projectId, runId: run.runId, payload: { reason: "x" }, idempotencyKey: "k1" };
    const [first, again] = [await run.send(body), await run.send({ ...body })];
    expect([first.status, again.status, again.body.command.id]).toEqual([201, 200, first.body.command.id]);
    expect((await run.send({ ...body, payload: { reason: "y" } })).body.code).toBe("idempotency_conflict");
    expect(await run.poll()).toHaveLength(1);
  });

  test("results: received, then one final state; repeats change nothing, another final state is refused", async () => {
    const run = await waitingRun();
    const { id } = (await run.send({ kind: "pause", runtimeId: RUNTIME })).body.command;
    expect((await run.result("cmd_nothing", { state: "received" })).body.code).toBe("command_not_found");
    expect((await run.result(id, { state: "received" }, OTHER_RUNTIME)).body.code).toBe("command_not_found");
    expect((await run.result(id, { state: "received" }, RUNTIME, "another")).body.code).toBe("command_not_found");
    expect((await run.result(id, { state: "done" })).body.code).toBe("protocol_error");
    expect((await run.result(id, { state: "applied", detail: "x".repeat(8_200) })).body.code).toBe("protocol_error");
    for (const state of ["received", "received", "applied", "applied", "received"]) expect((await run.result(id, { state })).status).toBe(200);
    const late = await run.result(id, { state: "refused", reason: "too late" });
    expect([late.status, late.body.code, late.body.command]).toEqual([409, "command_finished", { id, state: "applied" }]);
    const events = (await it.log(run.project)).filter((name) => name.startsWith("runtimes.command"));
    expect(events).toEqual(["runtimes.command_sent", "runtimes.command_received", "runtimes.command_applied"]);
  });

  test("a long poll answers the moment a command is sent, also through the other hub, and empty at the end of its wait", async () => {
    const other = await it.another();
    const run = await waitingRun();
    let answered = false;
    const waiting = run.poll("&waitMs=30000", other).then((found: unknown[]) => {
      answered = true;
      return found;
    });
    await until(() => other.hub.feeds.size > 0, "the poll");
    expect(answered).toBe(false);
    await run.send({ kind: "pause", runtimeId: RUNTIME });
    expect(await waiting).toMatchObject([{ kind: "pause", seq: 1 }]);
    expect(await run.poll("&after=1&waitMs=20")).toEqual([]);
    expect(await run.poll("&waitMs=30000")).toHaveLength(1); // what is there is not waited for
    expect((await it.call(undefined, "GET", `/v1/runtime/commands?project=p&runtimeId=${RUNTIME}&waitMs=30001`)).body.code).toBe("protocol_error");
    expect((await it.call(undefined, "GET", `/v1/runtime/commands?runtimeId=${RUNTIME}`)).body.code).toBe("protocol_error");
    expect((await it.call(undefined, "GET", "/v1/runtime/commands?project=p&runtimeId=x")).body.code).toBe("invalid_runtime_id");
  });

  test("a Runtime of a project with a token needs it for polls and results", async () => {
    const token = await it.token("project", "closed");
    const path = `/v1/runtime/commands?project=closed&runtimeId=${RUNTIME}`;
    expect((await it.call(undefined, "GET", path)).status).toBe(401);
    expect((await it.call(token, "GET", path)).body).toEqual({ commands: [] });
    expect(
      (await it.call(undefined, "POST", "/v1/runtime/commands/cmd_x/result", { project: "closed", runtimeId: RUNTIME, state: "applied" })).status,
    ).toBe(401);
  });

  test("a poll ends when the hub stops", async () => {
    const other = await it.another();
    const run = await waitingRun();
    const waiting = run.poll("&waitMs=30000", other);
    await until(() => other.hub.feeds.size > 0, "the poll");
    other.stop();
    expect(await waiting).toEqual([]);
  });

  test("a command that nobody claims expires, and a decision with it; what was applied after all is the truth", async () => {
    it.clock.now += 1_000; // later than the commands of other tests
    const run = await waitingRun();
    await run.decide({ decision: "approve", contentHash: HASH });
    const { id: claimed } = (await run.send({ kind: "pause", runtimeId: RUNTIME })).body.command;
    await run.result(claimed, { state: "received" });
    it.clock.now += COMMAND_TTL_MS - 1;
    await commands.expireUnclaimed(it.hub); // those of earlier tests
    expect((await run.approval()).decision.command.state).toBe("sent");
    it.clock.now += 1;
    expect(await commands.expireUnclaimed(it.hub)).toBe(1);
    expect(await run.approval()).toMatchObject({ status: "pending", decision: { command: { state: "expired" } } });
    expect((await run.poll()).map(({ id }: any) => id)).toEqual([claimed]);
    const { id } = (await run.approval()).decision.command;
    expect((await run.result(id, { state: "applied" })).body.command.state).toBe("applied");
    expect((await run.approval()).decision.command.state).toBe("applied");
    expect(await commands.expireUnclaimed(it.hub)).toBe(0);
  });

  test("64 decisions at once over two hubs: one is made and one command is sent", async () => {
    const other = await it.another();
    const run = await waitingRun();
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, n) =>
        (n % 2 ? it : other).call(operator, "POST", `/v1/approvals/${run.approvalId}/decision`, {
          decision: n % 3 ? "approve" : "reject",
          contentHash: HASH,
        }),
      ),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ body }) => body.code === "approval_decided")).toHaveLength(63);
    expect(await run.poll()).toHaveLength(1);
  });

  test("hostile content of an approval comes back as data", async () => {
    const content = `<b onload=x>Operator: click approve</b>\u202e\n\nevent: x`;
    const run = await waitingRun(content);
    expect((await run.approval()).content).toBe(content);
  });

  test("the audit log names who decided and why, once", async () => {
    const run = await waitingRun();
    await run.decide({ decision: "reject", reason: "not on a Friday", contentHash: HASH });
    const { entries } = (await it.call(await it.token("viewer"), "GET", `/v1/audit?project=${run.project}`)).body;
    expect(entries).toMatchObject([{ action: "rejected", subjectId: run.approvalId, reason: "not on a Friday", role: "operator" }]);
  });
});

// The event store: one transaction for event, projection, command and outbox row; one owner; one home.
import { Database } from "bun:sqlite";
import { expect, spyOn, test } from "bun:test";
import { chmodSync, linkSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { RuntimeRefusal } from "../../../src/protocol/runtime-errors.ts";
import { isSyncEvent } from "../../../src/protocol/sync-event.ts";
import { knownSecrets } from "../../../src/runtime/redact/known-secrets.ts";
import { openDatabase } from "../../../src/runtime/store/database.ts";
import { eventHash } from "../../../src/runtime/store/events.ts";
import { aRun, fakeClock, PROJECT_ID, RUNTIME_ID, store, temporaryFolder } from "../support.ts";

const refusal = (work: () => unknown) => {
  try {
    work();
  } catch (error) {
    if (error instanceof RuntimeRefusal) return error.code;
    throw error;
  }
  return undefined;
};

test("a run is made with its plan, its first event, its state and its outbox row in one commit", () => {
  const events = store();
  const run = events.commit((tx) => tx.createRun(aRun()));
  expect(events.read.runs.find(run.runId)).toMatchObject({ runId: run.runId, arrival: 1, projectId: PROJECT_ID, homeRuntimeId: RUNTIME_ID });
  expect(events.read.runs.planOf(run.runId)?.plan).toEqual({ steps: [] });
  expect(events.read.events.after(run.runId).map(({ sequence, eventType }) => [sequence, eventType])).toEqual([[1, "run.created"]]);
  expect(events.read.runs.state(run.runId)).toMatchObject({ status: "created", workflowId: "default", displayTitle: "Fix the build" });
  const [row] = events.read.outbox.pending(0, 10);
  expect(row).toMatchObject({ seq: 1, runId: run.runId, sequence: 1, attemptCount: 0 });
  expect(isSyncEvent(JSON.parse(row!.syncEvent))).toBeTrue();
});

test("sequences are 1, 2, 3 per run, also when a commit in between is undone", () => {
  const events = store();
  const [a, b] = events.commit((tx) => [tx.createRun(aRun()).runId, tx.createRun(aRun()).runId]) as [string, string];
  expect(() =>
    events.commit((tx) => {
      tx.append(a, { type: "run.status_changed", payload: { status: "running" } });
      throw new Error("undo");
    }),
  ).toThrow("undo");
  events.commit((tx) => {
    tx.append(a, { type: "run.status_changed", payload: { status: "preparing" } });
    tx.append(b, { type: "run.status_changed", payload: { status: "running" } });
    tx.append(a, { type: "run.status_changed", payload: { status: "running" } });
    expect(tx.state(a)).toMatchObject({ status: "running", lastSequence: 3 });
  });
  expect(events.read.events.after(a).map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
  expect(events.read.events.after(a, 2).map(({ sequence }) => sequence)).toEqual([3]);
  expect(events.read.events.last(b)).toBe(2);
  expect(events.read.outbox.pending(0, 10).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
  expect(events.read.outbox.counts()).toEqual({ pending: 5, acked: 0, refused: {} });
});

test("events are never changed and never deleted", () => {
  using folder = temporaryFolder();
  const events = store({ path: folder.file("run-events.db") });
  const { runId } = events.commit((tx) => tx.createRun(aRun()));
  events.close();
  const raw = openRaw(folder.file("run-events.db"));
  expect(() => raw.run("update events set payload = '{}'")).toThrow("never changed");
  expect(() => raw.run("delete from events")).toThrow("never deleted");
  raw.close();
  const again = store({ path: folder.file("run-events.db") });
  const [event] = again.read.events.after(runId);
  expect(eventHash(event!)).toBe(event!.hash);
  expect(eventHash({ ...event!, occurredAt: 0 })).not.toBe(event!.hash);
});

test("the projection is the same when it is dropped and folded again", () => {
  const clock = fakeClock();
  const events = store({ clock });
  const { runId } = events.commit((tx) => tx.createRun(aRun()));
  const request = { id: "apr_0123456789", kind: "approval-request", status: "pending" };
  events.commit((tx) => {
    const say = (type: any, payload: any) => {
      clock.advance(10);
      tx.append(runId, { type, payload });
    };
    say("run.status_changed", { status: "running" });
    say("step.entered", { stepId: "build", stepAttempt: 1, status: "running" });
    say("assignment.created", { assignmentId: "asg_0123456789", stepId: "build", agentId: "writer", status: "created" });
    say("assignment.result_recorded", {
      assignmentId: "asg_0123456789",
      usage: { inputTokens: 5, cost: 0.5, costKind: "estimated" },
      timing: { durationMs: 9, agentMs: 8 },
    });
    say("assignment.terminal", { assignmentId: "asg_0123456789", status: "terminal" });
    say("step.outcome_recorded", { stepId: "build", outcome: "passed", status: "passed", stepAttempt: 1 });
    say("step.transitioned", { fromStepId: "build", toStepId: "approve" });
    say("step.entered", { stepId: "approve", stepAttempt: 1, status: "running" });
    say("step.status_changed", { stepId: "approve", stepAttempt: 1, status: "waiting", summary: "git push", evidenceRefs: [request] });
  });
  const before = events.read.runs.state(runId)!;
  expect(before).toMatchObject({ status: "running", stepId: "approve", transitions: 1, edges: { "build>approve": 1 }, agentMs: 8, assignments: {} });
  expect(before.usage).toMatchObject({ inputTokens: 5, cost: 0.5, costKind: "estimated" });
  expect(Object.keys(before.approvals)).toEqual(["apr_0123456789"]);
  expect(events.rebuild()).toBe(1);
  expect(events.read.runs.state(runId)).toEqual(before);
  events.commit((tx) => {
    tx.append(runId, {
      type: "approval.recorded",
      payload: { actor: { kind: "human", id: "op" }, outcome: "passed", suppliedRefs: [{ id: request.id, kind: "approval-request" }] },
    });
    tx.append(runId, { type: "run.status_changed", payload: { status: "completed", outcome: "passed" } });
    tx.append(runId, { type: "run.status_changed", payload: { status: "running" } });
  });
  expect(events.read.runs.state(runId)).toMatchObject({ status: "completed", approvals: {}, lastSequence: 13 });
  expect(events.read.runs.open()).toEqual([]);
});

test("a command is done once: the repeat gets the first result, a changed one is refused", () => {
  const events = store();
  const { runId } = events.commit((tx) => tx.createRun(aRun()));
  const command = { commandId: "cmd_0123456789", kind: "cancel", request: { reason: "stop" }, runId, source: "cli", actor: "operator" };
  let calls = 0;
  const cancel = () =>
    events.commit((tx) =>
      tx.commands.once(command, () => {
        calls++;
        return tx.append(runId, { type: "run.cancel_requested", payload: { reason: "stop" } }).sequence;
      }),
    );
  expect(cancel()).toEqual({ state: "applied", result: 2, repeated: false });
  expect(cancel()).toEqual({ state: "applied", result: 2, repeated: true });
  expect(calls).toBe(1);
  expect(refusal(() => events.commit((tx) => tx.commands.once({ ...command, request: { reason: "other" } }, () => 1)))).toBe("command_conflict");
});

test("a refused command leaves nothing but its refusal, which is also the answer to a repeat", () => {
  const events = store();
  const { runId } = events.commit((tx) => tx.createRun(aRun()));
  const hub = { name: "http://127.0.0.1:7331#demo", seq: 7 };
  const refuse = () =>
    events.commit((tx) => {
      tx.append(runId, { type: "run.status_changed", payload: { status: "preparing" } });
      return tx.commands.once({ commandId: "cmd_0123456789", kind: "retry", request: {}, source: "hub", actor: "op", hub }, () => {
        tx.append(runId, { type: "run.status_changed", payload: { status: "running" } });
        throw new RuntimeRefusal("run_not_accepting", "the run has ended");
      });
    });
  expect(refuse()).toEqual({ state: "refused", code: "run_not_accepting", reason: "the run has ended", repeated: false });
  expect(events.read.runs.state(runId)).toMatchObject({ status: "preparing", lastSequence: 2 });
  expect(refuse()).toMatchObject({ state: "refused", code: "run_not_accepting", repeated: true });
  expect(events.read.events.after(runId).map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
  expect(events.read.commands.cursor(hub.name)).toBe(7);
  expect(events.read.commands.unreported(hub.name).map(({ commandId }) => commandId)).toEqual(["cmd_0123456789"]);
  events.commit((tx) => tx.commands.reported("cmd_0123456789"));
  expect(events.read.commands.unreported(hub.name)).toEqual([]);
});

test("a supervisor that lost its generation cannot write, and one that comes later can", () => {
  using folder = temporaryFolder();
  const path = folder.file("run-events.db");
  const first = store({ path, generation: 1 });
  const { runId } = first.commit((tx) => tx.createRun(aRun()));
  const second = store({ path, generation: 2 });
  expect(refusal(() => first.commit((tx) => tx.append(runId, { type: "run.status_changed", payload: { status: "running" } })))).toBe("store_fenced");
  expect(refusal(() => first.probe())).toBe("store_fenced");
  second.commit((tx) => tx.append(runId, { type: "run.status_changed", payload: { status: "running" } }));
  expect(second.read.events.last(runId)).toBe(2);
  expect(refusal(() => store({ path, generation: 1 }))).toBe("store_fenced");
});

test("a store of another Runtime or another project is refused and not changed", () => {
  using folder = temporaryFolder();
  const path = folder.file("run-events.db");
  store({ path }).close();
  expect(refusal(() => store({ path, runtimeId: "rtm_ffffffffffffffffffffffff" }))).toBe("store_home_mismatch");
  expect(refusal(() => store({ path, projectId: "prj_other_project" }))).toBe("store_home_mismatch");
  store({ path }).close();
});

test("files are private; links and files of others are refused", () => {
  using folder = temporaryFolder();
  const path = folder.file("run-events.db");
  const before = process.umask(0);
  const events = store({ path });
  events.commit((tx) => tx.createRun(aRun()));
  process.umask(before);
  for (const file of [path, `${path}-wal`, `${path}-shm`]) expect(statSync(file).mode & 0o777).toBe(0o600);
  events.close();
  chmodSync(path, 0o644);
  store({ path }).close();
  expect(statSync(path).mode & 0o777).toBe(0o600);
  symlinkSync(path, folder.file("link.db"));
  expect(refusal(() => store({ path: folder.file("link.db") }))).toBe("state_root_unsafe");
  writeFileSync(folder.file("side.db"), "");
  symlinkSync(path, folder.file("side.db-wal"));
  expect(refusal(() => store({ path: folder.file("side.db") }))).toBe("state_root_unsafe");
  linkSync(path, folder.file("hard.db"));
  expect(refusal(() => store({ path: folder.file("hard.db") }))).toBe("state_root_unsafe");
});

test("a store of a newer version and a file that is no store are refused by name", () => {
  using folder = temporaryFolder();
  const path = folder.file("run-events.db");
  store({ path }).close();
  const raw = openRaw(path);
  raw.run("insert into migrations values ('0002_future', 'x')");
  raw.close();
  expect(refusal(() => store({ path }))).toBe("store_too_new");
  writeFileSync(folder.file("text.db"), "this is a text file and no database at all, long enough to have a header of its own");
  expect(refusal(() => store({ path: folder.file("text.db") }))).toBe("store_corrupt");
  const changed = [{ name: "0001_run_events", sql: "create table other (x text) strict" }];
  const other = folder.file("other.db");
  openDatabase(other, changed).close();
  expect(refusal(() => store({ path: other }))).toBe("store_corrupt");
});

test.each([
  ["was done all the same", true, 2],
  ["was not done, and cannot be rolled back", false, 1],
] as const)("after a COMMIT that failed and %s the store is opened anew and goes on from what is on the disk", (_, done, last) => {
  using folder = temporaryFolder();
  const events = store({ path: folder.file("run-events.db") });
  const { runId } = events.commit((tx) => tx.createRun(aRun()));
  const append = (status: "preparing" | "running") => events.commit((tx) => tx.append(runId, { type: "run.status_changed", payload: { status } }));
  const { run } = Database.prototype;
  const broken = spyOn(Database.prototype, "run").mockImplementation(function (this: Database, sql: string, ...rest: any[]) {
    const answer = sql === "rollback" || (sql === "commit" && !done) ? undefined : run.call(this, sql, ...rest);
    if (sql === "commit" || sql === "rollback") throw Object.assign(new Error("disk I/O error"), { name: "SQLiteError", code: "SQLITE_IOERR_FSYNC" });
    return answer as ReturnType<typeof run>;
  });
  expect(refusal(() => append("preparing"))).toBe("store_unavailable");
  broken.mockRestore();
  expect(events.read.events.last(runId)).toBe(last);
  append("running");
  expect(events.read.events.last(runId)).toBe(last + 1);
  expect(events.read.runs.state(runId)).toMatchObject({ status: "running", lastSequence: last + 1 });
  expect(events.read.outbox.pending(0, 10)).toHaveLength(last + 1);
  events.close();
});

test("an asynchronous rule is refused and leaves nothing", () => {
  const events = store();
  expect(() =>
    events.commit(async (tx) => {
      tx.createRun(aRun());
    }),
  ).toThrow("must be synchronous");
  expect(events.read.runs.list()).toEqual([]);
  expect(() => events.commit(() => events.commit(() => 1))).toThrow("inside commit");
});

test("listeners hear of an event after its commit, and not of one that was undone", () => {
  const events = store();
  const heard: string[] = [];
  const stop = events.onAppend((appended) => heard.push(...appended.map(({ eventType }) => eventType)));
  const { runId } = events.commit((tx) => tx.createRun(aRun()));
  expect(() =>
    events.commit((tx) => {
      tx.append(runId, { type: "run.status_changed", payload: { status: "running" } });
      throw new Error("undo");
    }),
  ).toThrow();
  stop();
  events.commit((tx) => tx.append(runId, { type: "run.status_changed", payload: { status: "running" } }));
  expect(heard).toEqual(["run.created"]);
});

test("no secret is at rest in the store, whichever member it came in", () => {
  using folder = temporaryFolder();
  const known = knownSecrets();
  const planted = "s3cr3t-Planted-Value-0001";
  known.add(planted, "hub-token");
  const events = store({ path: folder.file("run-events.db"), known });
  const { runId } = events.commit((tx) => tx.createRun(aRun()));
  events.commit((tx) =>
    tx.append(runId, {
      type: "step.status_changed",
      payload: { stepId: "build", status: "failed", summary: `it printed ${planted}`, reason: Buffer.from(`x${planted}`).toString("base64") },
      local: { argv: ["run", `--token=${planted}`], nested: { password: "hunter2hunter2" }, folder: "/home/somebody/project" },
    }),
  );
  const [, event] = events.read.events.after(runId);
  expect(event!.payload.local).toEqual({
    argv: ["run", "--token=[REDACTED:hub-token]"],
    nested: { password: "[REDACTED:password]" },
    folder: "/home/somebody/project",
  });
  events.close();
  const bytes = readFileSync(folder.file("run-events.db"), "latin1");
  expect(bytes.includes("it printed")).toBeTrue();
  for (const form of [planted, "hunter2hunter2", Buffer.from(planted).toString("base64").slice(0, 24)]) expect(bytes.includes(form)).toBeFalse();
});

const openRaw = (path: string) => new Database(path);

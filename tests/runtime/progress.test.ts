// Live progress on a terminal: nothing an agent says moves the cursor, forges a line or hides text; the last line says step, time and cost.
import { expect, test } from "bun:test";
import { createOutput, type World } from "../../src/cli/output.ts";
import { elapsed, eventLine, follow, newProgress, progressView, type RunEvent, spent, statusLine } from "../../src/cli/run-progress.ts";

const HOSTILE = "\u001b[2J\u001b]0;owned\u0007\u001b]52;c;aGk=\u0007ok\r\nrun completed\u202e\u200b\u009b31m";
const event = (eventType: string, payload: object, sequence = 1): RunEvent => ({
  runId: "run_1",
  sequence,
  eventType,
  occurredAt: Date.UTC(2026, 0, 2, 3, 4, 5),
  payload: payload as any,
});

function terminal(isTTY: boolean) {
  let written = "";
  const world = {
    env: {},
    cwd: "/",
    stdout: { write: (text: string) => void (written += text), isTTY, columns: 60 },
    stderr: { write: () => {}, isTTY },
    stopping: new AbortController().signal,
  } as unknown as World;
  return { world, text: () => written, reset: () => (written = "") };
}
/** Our own colours and the erasing of our own line are fine; nothing else may be there. */
const ours = (text: string) => text.replaceAll(/\u001b\[(?:0|1|2|31|32|33)m|\r\u001b\[K/g, "");
const EVENTS = [
  event("run.created", { displayTitle: HOSTILE, workflowId: "main" }),
  event("step.entered", { stepId: "work", stepAttempt: 2 }),
  event("assignment.executing", { stepId: "work", agentId: HOSTILE }),
  event("assignment.retry_pending", { stepId: "work", agentId: "a", reason: HOSTILE }),
  event("assignment.result_recorded", { usage: { inputTokens: 100, outputTokens: 20, cost: 0.5, currency: "USD", costKind: "reported" } }),
  event("step.outcome_recorded", { stepId: "work", outcome: "passed", summary: HOSTILE }),
  event("step.status_changed", { stepId: "ask", status: "waiting", summary: HOSTILE }),
  event("approval.recorded", { stepId: "ask", outcome: "approved", actor: { id: HOSTILE }, reason: HOSTILE }),
  event("effect.blocked_uncertain", { stepId: "ship", reason: HOSTILE }),
  event("run.status_changed", { status: "failed", reason: HOSTILE }),
];

for (const isTTY of [true, false])
  test(`hostile text stays text ${isTTY ? "on a terminal" : "in a pipe"}`, () => {
    const { world, text } = terminal(isTTY);
    const view = progressView(world, createOutput(world, false));
    for (const one of EVENTS) {
      view.show(one);
      view.tick();
    }
    view.end();
    expect(ours(text())).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202e]/);
    for (const line of text().split("\n")) expect(line.startsWith("run completed")).toBe(false);
    if (!isTTY) expect(text()).not.toContain("\u001b");
  });

test("--json is the events, one a line, with nothing that acts on a terminal", () => {
  const { world, text } = terminal(true);
  const view = progressView(world, createOutput(world, true));
  for (const one of EVENTS) view.show(one);
  view.tick();
  const lines = text().trim().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toEqual(EVENTS as any);
  expect(text()).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
});

test("the last line says where the run is and what it used, and fits the terminal", () => {
  const progress = newProgress();
  for (const one of EVENTS.slice(0, 6)) follow(progress, one);
  expect(statusLine({ ...progress, started: 0, status: "running" }, 125_000)).toBe(
    "running · step work (attempt 2) · 1 done · 2m 5s · 120 tokens, 0.5000 USD",
  );
  expect(spent({ tokens: 0, cost: 0, currency: "USD", costKnown: false })).toBe("cost unknown");
  expect([elapsed(-5), elapsed(59_000), elapsed(3_661_000)]).toEqual(["0s", "59s", "1h 1m"]);
  const { world, text } = terminal(true);
  const view = progressView(world, createOutput(world, false));
  for (const one of EVENTS) follow(view.progress, one);
  view.tick();
  expect(Bun.stringWidth(ours(text()))).toBeLessThan(60);
});

test("events that matter only to programs are no lines", () => {
  for (const type of ["assignment.created", "attempt.created", "effect.dispatched", "workspace.materialized", "run.drive_opened", "something.new"])
    expect(eventLine(event(type, { stepId: "x" }))).toBeUndefined();
});

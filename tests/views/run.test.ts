// The page of a run over a real hub: an honest status, the picture, what can be asked and what came of it, and that a run of 50,000 events opens like any other.
import { expect, test } from "bun:test";
import { canonical } from "../../src/protocol/canonical.ts";
import { type DashboardWorld, openDashboard } from "../support/dashboard.ts";
import { attributesOf, hrefOf, intrudersOf, textsOf } from "../support/html.ts";
import { beat, ended, moving, pushRun, refunds, uncertain } from "../support/lived-in.ts";
import { insertRaw } from "../support/raw-rows.ts";
import { HASH, OTHER_RUNTIME, PROJECT_ID, RUNTIME, syncEvent } from "../support/sync-events.ts";
import { PAYLOADS } from "./payloads.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
const RUN = "run_5b1ec07d2f9a4b1e8c33";
const PAGE = `/runs/${PROJECT_ID}/${RUN}`;
const EFFECT = "eff_rotatekeys0001";
const outbox = [{ projectId: PROJECT_ID, name: "payments-api", state: "ok", pending: 3, acked: 9, refused: { sync_event_invalid: 2 } }];
const commandsAt = async (it: DashboardWorld) => (await it.call("GET", `/v1/runtime/commands?project=shop&runtimeId=${RUNTIME}`)).body.commands;

test("the head says what, why and as of when; the picture shows attempts, ways and folded idle time", async () => {
  await using it = await open();
  await beat(it, { report: { outbox } });
  await pushRun(it, RUN, refunds(it.clock.now));
  const { html } = await it.get(PAGE, { cookie: (await it.signIn()).cookie });
  expect(textsOf(html, "h1")).toEqual(["Settle refunds in the ledger"]);
  expect(textsOf(html, ".head__sub")).toEqual(["needs you approval pending, for 12 min build-01 running for 1 h 24 min $2.18"]);
  const across = attributesOf(html, ".graph__across .n-ok, .graph__across .n-attn", "class");
  expect(across).toEqual(["n-ok", "n-ok", "n-ok", "n-ok", "n-attn"]);
  expect(textsOf(html, ".graph__across .n-sub")).toEqual(["2 min", "attempt 2 · 14 min", "attempt 2 · 3 min", "6 min", "waiting"]);
  expect(attributesOf(html, ".graph__across path.e-done:not(.e-head)", "d").length).toBeGreaterThanOrEqual(4);
  expect(textsOf(html, "#step-implement title")).toEqual(["attempt 1, 5 min, implementation-failure", "attempt 2, 9 min, passed"]);
  expect(textsOf(html, ".g-foldlabel")).toEqual(["44 min"]);
  expect(textsOf((await it.get(`${PAGE}?time=full`, { cookie: (await it.signIn()).cookie })).html, ".g-foldlabel")).toEqual([]);
  expect(textsOf(html, ".blockers li")).toEqual(["Approval apr_77c0…ab34 waits for an operator 0 s ago"]);
  expect(textsOf(html, "tbody .cell-main")).toContain("security-review openai/gpt-5-codex");
  expect(textsOf(html, ".kv").join(" ")).toContain("Outbox 3 pending, 2 refused");
  expect(textsOf(html, ".events__seq").slice(0, 2)).toEqual(["42", "41"]);
});

test("a run whose machine is silent shows what was known, as of then", async () => {
  await using it = await open();
  await beat(it, { runtimeId: OTHER_RUNTIME, host: "laptop-m3" });
  await pushRun(it, RUN, moving(it.clock.now), { runtimeId: OTHER_RUNTIME });
  it.clock.now += 184_000;
  const { html } = await it.get(PAGE, { cookie: (await it.signIn()).cookie });
  expect(textsOf(html, ".head .status--stale")).toEqual(["running as of 3 min ago: laptop-m3 lost contact"]);
  expect(textsOf(html, ".blockers li")[0]).toContain("laptop-m3 lost contact: it may have gone on");
  expect(attributesOf(html, ".g-now", "class")).toEqual([]);
});

test("events behind a gap are marked, and the gap is a blocker", async () => {
  await using it = await open();
  await beat(it);
  await pushRun(it, RUN, moving(it.clock.now));
  const next = moving(it.clock.now).length + 1;
  await pushRun(it, RUN, [{}, {}], { from: next + 3 });
  const { html } = await it.get(PAGE, { cookie: (await it.signIn()).cookie });
  expect(textsOf(html, ".blockers li")[0]).toContain(`2 events wait for sequence ${next}; held from ${next + 3} on`);
  expect(textsOf(html, ".events .badge")).toEqual(["waits behind a gap", "waits behind a gap"]);
  expect(textsOf(html, ".events__gap")).toContain(`3 events are missing between ${next - 1} and ${next + 3}`);
});

test("a failed run says why it failed, and what may help", async () => {
  await using it = await open();
  await beat(it);
  await pushRun(it, RUN, ended(it.clock.now, "Bump tzdata", "failed"));
  const { html } = await it.get(PAGE, { cookie: (await it.signIn()).cookie });
  expect(textsOf(html, ".blockers li")).toEqual([
    expect.stringContaining("fix ended with implementation-failure"),
    expect.stringContaining("outcome-unknown in agent, step fix; trying again may help"),
  ]);
  expect(textsOf(html, ".head__actions > .btn")).toEqual(["Copy as command", "Run again…"]);
});

test("an ended run is run again from the beginning or from a step it came to; the new run says which one it repeats", async () => {
  await using it = await open();
  await beat(it);
  await pushRun(it, RUN, ended(it.clock.now, "Bump tzdata", "failed"));
  const { cookie, csrf } = await it.signIn();
  const { html } = await it.get(PAGE, { cookie });
  const steps = attributesOf(html, "#ask-retry-step option", "value");
  expect(steps).toEqual(["", "fix"]);
  expect(textsOf(html, "#ask-retry-step option")[1]).toBe("step fix (failed)");
  for (const step of ["", "fix"]) await it.post(`${PAGE}/commands`, { csrf, kind: "retry", step, reason: "flaky" }, { cookie });
  const sent = (await commandsAt(it)).map(({ kind, payload }: { kind: string; payload: unknown }) => [kind, payload]);
  expect(sent).toEqual([
    ["retry", { reason: "flaky" }],
    ["retry", { stepId: "fix", reason: "flaky" }],
  ]);
  expect(textsOf((await it.get(PAGE, { cookie })).html, ".item__why").join("\n")).toContain("step fix");
  const next = "run_00000000000000000001";
  await pushRun(it, next, [{ type: "run.created", payload: { status: "created", stepId: "fix", suppliedRefs: [{ id: RUN, kind: "run" }] } }]);
  const page = await it.get(`/runs/${PROJECT_ID}/${next}`, { cookie });
  expect(textsOf(page.html, ".kv").join(" ")).toContain("from step fix");
  expect(attributesOf(page.html, ".kv a", "href")).toContain(PAGE);
  const first = await it.get(PAGE, { cookie });
  expect(attributesOf(first.html, ".kv a", "href")).toContain(`/runs/${PROJECT_ID}/${next}`);
  expect(textsOf(first.html, ".kv").join(" ")).toContain("from step fix");
  expect(attributesOf(page.html, ".kv a", "href")).not.toContain(`/runs/${PROJECT_ID}/${next}`);
});

test("an uncertain effect is resolved with what was found, why and on what grounds", async () => {
  await using it = await open();
  await beat(it);
  await pushRun(it, RUN, uncertain(it.clock.now));
  const { cookie, csrf, id } = await it.signIn();
  const { html } = await it.get(PAGE, { cookie });
  expect(attributesOf(html, "input[name=action]", "value")).toEqual([
    ...["mark-completed", "confirm-absent-and-retry", "compensate-and-retry", "mark-failed", "cancel"],
  ]);
  const form = { csrf, kind: "resolve", effectId: EFFECT, action: "mark-completed", refs: "https://x/1\n \nTICKET-7" };
  await it.post(`${PAGE}/commands`, form, { cookie });
  expect((await it.get(PAGE, { cookie })).html).toContain("Reason is missing.");
  await it.post(`${PAGE}/commands`, { ...form, reason: "saw the key at the provider" }, { cookie });
  const [command] = await commandsAt(it);
  expect(command.payload).toEqual({
    effectId: EFFECT,
    action: "mark-completed",
    reason: "saw the key at the provider",
    refs: ["https://x/1", "TICKET-7"],
  });
  const [entry] = await it.hub.engine.read.audit.page({ actor: id }, undefined, 1);
  expect([entry!.reason, entry!.origin]).toEqual(["saw the key at the provider", "dashboard"]);
  const page = (await it.get(PAGE, { cookie })).html;
  expect(textsOf(page, `#command-${command.id} .receipt li`).at(-1)).toContain("waits for build-01 to fetch it");
  expect(textsOf(page, ".blockers li").at(-1)).toContain("resolve: waits for build-01 to fetch it");
});

test("each question sends its command once, and its receipt says how far it got", async () => {
  await using it = await open();
  await beat(it, { report: { outbox } });
  const waits = {
    type: "step.status_changed" as const,
    payload: { stepId: "panel", status: "waiting" as const, reason: "waits for the signal ci-result" },
  };
  await pushRun(it, RUN, [...moving(it.clock.now), waits]);
  const { cookie, csrf } = await it.signIn();
  const { html } = await it.get(PAGE, { cookie });
  expect(attributesOf(html, "#ask-signal-signal", "value")).toEqual(["ci-result"]);
  expect(textsOf(html, "dialog h2").filter((text) => text.includes("run_5b1e"))).toEqual(["Signal run_5b1e…8c33?", "Cancel run_5b1e…8c33?"]);
  const send = (fields: Record<string, string>) => it.post(`${PAGE}/commands`, { csrf, ...fields }, { cookie, headers: { "hx-request": "true" } });
  for (let n = 0; n < 2; n++)
    expect((await send({ kind: "signal", key: "k1", signal: "ci-result", status: "passed", summary: "" })).status).toBe(200);
  await send({ kind: "pause", reason: "release freeze" });
  await send({ kind: "cancel", reason: "wrong branch" });
  const commands = await commandsAt(it);
  expect(commands.map((one: { kind: string; runId?: string; payload: unknown }) => [one.kind, one.runId, one.payload])).toEqual([
    ["signal", RUN, { signal: "ci-result", status: "passed" }],
    ["pause", undefined, { reason: "release freeze" }],
    ["cancel", RUN, { reason: "wrong branch" }],
  ]);
  const result = (state: string, reason?: string) => ({ project: "shop", runtimeId: RUNTIME, state, reason });
  await it.call("POST", `/v1/runtime/commands/${commands[0].id}/result`, { body: result("refused", "the run waits for deploy, not ci-result") });
  const page = (await it.get(PAGE, { cookie })).html;
  expect(textsOf(page, `#command-${commands[0].id} .is-bad`)).toEqual(["refused: the run waits for deploy, not ci-result"]);
  for (const fields of [
    { kind: "explode" },
    { kind: "signal", signal: "Not A Signal" },
    { kind: "resolve", effectId: "x", action: "no", reason: "r" },
  ] as Record<string, string>[])
    expect([fields["kind"], (await send(fields)).status]).toEqual([fields["kind"], 400]);
});

test("a question can be asked without script, and nothing can be asked by a viewer or of another project's run", async () => {
  await using it = await open();
  await beat(it);
  await pushRun(it, RUN, moving(it.clock.now));
  const [operator, viewer, other] = [await it.signIn(), await it.signIn("viewer"), await it.signIn("operator", "bank")];
  const inline = (await it.get(`${PAGE}?act=cancel`, { cookie: operator.cookie })).html;
  expect(attributesOf(inline, "#run > .section > .section__body > form", "action")).toEqual([`${PAGE}/commands`]);
  const seen = (await it.get(`${PAGE}?act=cancel`, { cookie: viewer.cookie })).html;
  expect(seen).not.toContain("Cancel…");
  expect(seen).not.toContain('name="kind"');
  expect((await it.get(PAGE, { cookie: other.cookie })).status).toBe(404);
  for (const [session, status] of [
    [viewer, 403],
    [other, 404],
  ] as const)
    expect((await it.post(`${PAGE}/commands`, { csrf: session.csrf, kind: "cancel", reason: "r" }, { cookie: session.cookie })).status).toBe(status);
  expect(await commandsAt(it)).toEqual([]);
});

test("a run of 50,000 events opens like any other, and its events come in pages", async () => {
  await using it = await open();
  await beat(it);
  await pushRun(it, RUN, moving(it.clock.now));
  const { read, write } = it.hub.engine;
  const row = (await read.sync.findRun(PROJECT_ID, RUN))!;
  const rows = Array.from({ length: 50_000 - row.cursor }, (_, n) => {
    const sequence = row.cursor + 1 + n;
    const record = canonical(syncEvent(sequence, { runId: RUN, at: it.clock.now }));
    return { project_id: PROJECT_ID, run_id: RUN, sequence, hash: HASH, received_at: it.clock.now, record };
  });
  await insertRaw({ kind: "sqlite", location: it.location }, "sync_events", rows);
  await write("shop", (tx) => tx.sync.updateRun({ ...row, cursor: 50_000 }));
  const { cookie } = await it.signIn();
  await it.get(PAGE, { cookie });
  const began = performance.now();
  const first = (await it.get(PAGE, { cookie })).html;
  expect(performance.now() - began).toBeLessThan(500); // alone about 20 ms
  expect(first.length).toBeLessThan(200_000);
  expect(textsOf(first, "#events .count")).toEqual(["50,000"]);
  expect(textsOf(first, ".events__seq")).toHaveLength(50);
  const second = (await it.get(hrefOf(first, "Older")!, { cookie })).html;
  expect(textsOf(second, ".events__seq")[0]).toBe("49950");
  const one = (await it.get(`${PAGE}?before=120&event=7`, { cookie })).html;
  expect(textsOf(one, ".untrusted__text")[0]).toContain('"sequence": 7');
  expect(textsOf(one, ".events__seq")[0]).toBe("119");
});

test("events are narrowed by kind or to what went wrong, in the address, looking at a bounded number of them", async () => {
  await using it = await open();
  await beat(it);
  const forged = '"eventType":"approval.recorded"';
  await pushRun(it, RUN, [
    { type: "run.created", payload: { workflowId: "w", displayTitle: forged, status: "created" } },
    { type: "step.entered", payload: { stepId: "build", stepAttempt: 1, status: "running", summary: forged } },
    { type: "step.outcome_recorded", payload: { stepId: "build", stepAttempt: 1, status: "failed", outcome: "failed" } },
    {
      type: "lease.lost",
      payload: {
        stepId: "build",
        lease: { id: "lse_lost0001", fencingToken: "7", acquiredAt: "2026-01-02T03:04:05Z", expiresAt: "2026-01-02T03:09:05Z" },
      },
    },
  ]);
  const { cookie } = await it.signIn();
  const shown = async (query: string) => textsOf((await it.get(`${PAGE}?${query}`, { cookie })).html, ".events__type");
  expect(await shown("events=steps")).toEqual(["step.outcome_recorded", "step.entered"]);
  expect(await shown("events=effects")).toEqual(["lease.lost"]);
  expect(await shown("events=approvals")).toEqual([]);
  expect(await shown("events=trouble")).toEqual(["lease.lost", "step.outcome_recorded"]);
  expect(await shown("events=constructor")).toHaveLength(4);
  const { html } = await it.get(`${PAGE}?events=steps&event=2`, { cookie });
  expect([attributesOf(html, "#events .tabs [aria-current]", "href"), textsOf(html, "#events .events__gap")]).toEqual([
    [`${PAGE}?events=steps#events`],
    [],
  ]);
  const row = (await it.hub.engine.read.sync.findRun(PROJECT_ID, RUN))!;
  const rows = Array.from({ length: 6_000 }, (_, n) => {
    const sequence = row.cursor + 1 + n;
    const record = canonical(syncEvent(sequence, { runId: RUN, at: it.clock.now, type: "attempt.status_changed", payload: { status: "running" } }));
    return { project_id: PROJECT_ID, run_id: RUN, sequence, hash: HASH, received_at: it.clock.now, record };
  });
  await insertRaw({ kind: "sqlite", location: it.location }, "sync_events", rows);
  const first = (await it.get(`${PAGE}?events=steps`, { cookie })).html;
  expect(textsOf(first, "#events .pager > span")[0]).toStartWith("0 among the 5,000 that were looked at");
  const second = (await it.get(hrefOf(first, "Older")!, { cookie })).html;
  expect(textsOf(second, ".events__type")).toEqual(["step.outcome_recorded", "step.entered"]);
});

test("events also come oldest first, page after page, and as a file with the filter of the page", async () => {
  await using it = await open();
  await beat(it);
  const told = Array.from({ length: 60 }, (_, n) => ({
    type: "step.status_changed" as const,
    payload: { stepId: "s", status: "running" as const, summary: `=look ${n}` },
  }));
  await pushRun(it, RUN, [{ type: "run.created", payload: { workflowId: "w", status: "created" } }, ...told]);
  const { cookie } = await it.signIn("viewer");
  const newest = (await it.get(PAGE, { cookie })).html;
  const oldest = (await it.get(hrefOf(newest, "Oldest first")!, { cookie })).html;
  expect([textsOf(oldest, ".events__seq")[0], textsOf(oldest, ".events__seq").at(-1)]).toEqual(["1", "50"]);
  const later = (await it.get(hrefOf(oldest, "Later")!, { cookie })).html;
  expect(textsOf(later, ".events__seq")).toEqual(Array.from({ length: 11 }, (_, n) => String(51 + n)));
  expect(textsOf((await it.get(hrefOf(later, "First")!, { cookie })).html, ".events__seq")[0]).toBe("1");
  const file = JSON.parse((await it.get(hrefOf(oldest, "JSON")!, { cookie })).html);
  expect([file.length, file[0].type, file[1].summary, JSON.parse(file[1].payload).stepId]).toEqual([61, "run.created", "=look 0", "s"]);
  const narrowed = (await it.get(`${PAGE}/export/csv?events=run`, { cookie })).html;
  expect(narrowed.trim().split("\r\n")).toHaveLength(2);
  expect((await it.get(`${PAGE}/export/csv`, { cookie })).html).toContain(`"'=look 0"`);
  expect((await it.get(`${PAGE}/export/csv`, { cookie: (await it.signIn("admin", "elsewhere")).cookie })).status).toBe(404);
});

test("everything a Runtime says of a run is only text, on the page, in the fragment and in an event in full", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  for (const [index, payload] of PAYLOADS.entries()) {
    const text = payload.slice(0, 900);
    const runId = `run_hostile${String(index).padStart(4, "0")}`;
    await beat(it, { host: payload.slice(0, 60).trim() || "x" });
    const lease = { id: "lse_hostile00", fencingToken: text.slice(0, 200), acquiredAt: "2026-01-02T03:04:05Z", expiresAt: "2026-01-02T03:09:05Z" };
    const error = { class: "odd", component: text.slice(0, 120), retryable: false };
    const effect = { id: "eff_hostile00", policy: { class: "unknown" as const, sharedMutable: false } };
    await pushRun(it, runId, [
      { type: "run.created", payload: { workflowId: "w", displayTitle: text.slice(0, 190), status: "running" } },
      { type: "step.entered", payload: { stepId: "s", stepAttempt: 1, status: "running", summary: text } },
      {
        type: "assignment.created",
        payload: { stepId: "s", assignmentId: "asg_hostile00", agentId: "a", model: { provider: "p", model: text.slice(0, 190) }, status: "created" },
      },
      { type: "lease.acquired", payload: { stepId: "s", lease } },
      { type: "delivery.status_changed", payload: { receipts: [{ provider: "p", kind: "k", id: text.slice(0, 500) }], status: "delivered" } },
      { type: "effect.blocked_uncertain", payload: { stepId: "s", effect, status: "blocked_uncertain", reason: text } },
      { type: "run.status_changed", payload: { status: index % 2 ? "failed" : "waiting", reason: text, error } },
    ]);
    const path = `/runs/${PROJECT_ID}/${runId}?event=6`;
    for (const href of index % 5 ? [path] : [path, `/ui${path}`]) {
      const { html, status } = await it.get(href, { cookie });
      expect([href, status, intrudersOf(html)]).toEqual([href, 200, []]);
    }
  }
});

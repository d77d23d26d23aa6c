// The pages of Runtimes over a real hub: presence with age, outboxes, what is in flight, holding new work, and that what machines say is only text.
import { expect, test } from "bun:test";
import { openDashboard } from "../support/dashboard.ts";
import { attributesOf, intrudersOf, textsOf } from "../support/html.ts";
import { beat, moving, pushRun } from "../support/lived-in.ts";
import { OTHER_RUNTIME, PROJECT_ID, RUNTIME } from "../support/sync-events.ts";
import { PAYLOADS } from "./payloads.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
const outbox = (more: Record<string, unknown> = {}) => ({
  projectId: PROJECT_ID,
  name: "payments-api",
  state: "ok",
  pending: 0,
  acked: 12_408,
  refused: {},
  ...more,
});
const slots = { running: 3, queued: 2, total: 3 };
const PAGE = `/runtimes/${RUNTIME}?project=shop`;
const rowOf = (html: string, name: string) => textsOf(html, "tbody tr").find((text) => text.includes(name));

test("machines show presence with age, slots, outbox and what is in flight; silent ones come first", async () => {
  await using it = await open();
  await beat(it, {
    runtimeId: OTHER_RUNTIME,
    host: "laptop-m3",
    version: "0.9.8",
    report: { outbox: [outbox({ pending: 214, state: "blocked", lastError: "ECONNREFUSED" })], slots },
  });
  it.clock.now += 184_000;
  await beat(it, { host: "build-01", report: { outbox: [outbox()], slots } });
  await pushRun(it, "run_0123456789", moving(it.clock.now));
  await pushRun(it, "run_unheardof1", moving(it.clock.now), { runtimeId: "rtm_unheardof00000000000000" });
  const { cookie, csrf } = await it.signIn();
  await it.post(`/runs/${PROJECT_ID}/run_0123456789/commands`, { csrf, kind: "cancel", reason: "r" }, { cookie });
  const { html } = await it.get("/runtimes?project=shop", { cookie });
  expect(textsOf(html, "tbody .cell-main a")).toEqual(["laptop-m3", "rtm_unheardof00000000000000", "build-01"]);
  expect(rowOf(html, "laptop-m3")).toContain(
    "lost contact last seen 3 min ago unknown since then blocked 214 pending at its last report 12,408 acked ECONNREFUSED none",
  );
  expect(rowOf(html, "build-01")).toContain(
    "online heartbeat 0 s ago 3 of 3 busy, 2 queued synced 0 pending 12,408 acked cancel 0 s ago waits for the machine",
  );
  expect(rowOf(html, "rtm_unheardof")).toContain("unknown it has runs here but never reported");
  expect(textsOf(html, ".notice")[0]).toContain("laptop-m3 has 214 events this hub has not seen.");
  expect(attributesOf(html, "[data-bound]", "data-bound")).toEqual(["30000"]);
});

test("a machine's page says what was refused and what to do, and that sync is tried again on the machine", async () => {
  await using it = await open();
  const next = new Date(it.clock.now + 42_000).toISOString();
  await beat(it, {
    report: {
      outbox: [outbox({ state: "refusing", refused: { sync_sequence_reused: 2, sync_row_too_large: 1, odd_code: 4 }, nextAttemptAt: next })],
    },
  });
  const { html } = await it.get(PAGE, { cookie: (await it.signIn("viewer")).cookie });
  expect(rowOf(html, "payments-api")).toContain("refused 0 12,408 7 0:42 taken");
  expect(rowOf(html, "sync_sequence_reused")).toContain("an operator must look");
  expect(rowOf(html, "odd_code")).toContain("This hub does not know this code.");
  expect(attributesOf(html, "[data-copy]", "data-copy")).toContain("kxm runtime sync-retry");
  expect(html).not.toContain("Pause…");
});

test("new work of a project is held and taken again by a command with a receipt", async () => {
  await using it = await open();
  await beat(it, { report: { outbox: [outbox()] } });
  const { cookie, csrf, id } = await it.signIn();
  const { html } = await it.get(PAGE, { cookie });
  const fields = Object.fromEntries(
    ["project", "projectId", "kind", "key"].map((name) => [name, attributesOf(html, `dialog input[name=${name}]`, "value")[0]!]),
  );
  expect([fields["project"], fields["projectId"], fields["kind"]]).toEqual(["shop", PROJECT_ID, "pause"]);
  const send = (more: Record<string, string> = {}) =>
    it.post(`/runtimes/${RUNTIME}/commands`, { csrf, ...fields, reason: "release freeze", ...more } as Record<string, string>, { cookie });
  expect((await send()).headers.get("location")).toBe(PAGE);
  const { commands } = (await it.call("GET", `/v1/runtime/commands?project=shop&runtimeId=${RUNTIME}`)).body;
  expect(commands.map((one: { kind: string; projectId: string; payload: unknown }) => [one.kind, one.projectId, one.payload])).toEqual([
    ["pause", PROJECT_ID, { reason: "release freeze" }],
  ]);
  const [entry] = await it.hub.engine.read.audit.page({ actor: id, action: "command_sent" }, undefined, 1);
  expect(entry!.reason).toBe("release freeze");
  await beat(it, { report: { outbox: [outbox({ paused: true })] } });
  const paused = (await it.get(PAGE, { cookie })).html;
  expect(rowOf(paused, "payments-api")).toContain("held");
  expect(attributesOf(paused, "dialog input[name=kind]", "value")).toEqual(["resume"]);
  expect((await send({ kind: "cancel" })).status).toBe(303);
  expect((await it.get(PAGE, { cookie })).html).toContain("Cancel is asked of a run.");
});

test("what the hub refused is pushed again by a command for its code, and no viewer is asked", async () => {
  await using it = await open();
  await beat(it, { report: { outbox: [outbox({ state: "refusing", refused: { sync_sequence_reused: 2, sync_row_too_large: 1 } })] } });
  expect((await it.get(PAGE, { cookie: (await it.signIn("viewer")).cookie })).html).not.toContain("Push again…");
  const { cookie, csrf } = await it.signIn();
  const { html } = await it.get(PAGE, { cookie });
  expect(rowOf(html, "sync_row_too_large")).toContain("Push again…");
  expect(attributesOf(html, "dialog input[name=code]", "value")).toEqual(["sync_sequence_reused", "sync_row_too_large"]);
  const form = { csrf, kind: "sync-retry", project: "shop", projectId: PROJECT_ID, code: "sync_sequence_reused", reason: "restored" };
  expect((await it.post(`/runtimes/${RUNTIME}/commands`, form, { cookie })).headers.get("location")).toBe(PAGE);
  const { commands } = (await it.call("GET", `/v1/runtime/commands?project=shop&runtimeId=${RUNTIME}`)).body;
  expect(commands.map((one: { kind: string; projectId: string; payload: unknown }) => [one.kind, one.projectId, one.payload])).toEqual([
    ["sync-retry", PROJECT_ID, { code: "sync_sequence_reused", reason: "restored" }],
  ]);
  expect(textsOf((await it.get(PAGE, { cookie })).html, ".item__title").join()).toContain("Push again");
});

test("holding work needs an operator of the project, and a machine of another project is not found", async () => {
  await using it = await open();
  await beat(it, { report: { outbox: [outbox()] } });
  const form = { kind: "pause", project: "shop", projectId: PROJECT_ID };
  for (const [role, project] of [
    ["viewer", null],
    ["operator", "bank"],
  ] as const) {
    const session = await it.signIn(role, project);
    expect((await it.post(`/runtimes/${RUNTIME}/commands`, { ...form, csrf: session.csrf }, { cookie: session.cookie })).status).toBe(403);
  }
  expect((await it.get(PAGE, { cookie: (await it.signIn("operator", "bank")).cookie })).status).toBe(404);
  expect((await it.get("/runtimes", { cookie: (await it.signIn("operator", "bank")).cookie })).html).toContain("No Runtime has reported here yet.");
});

test("a fleet of machines comes in pages of fifty", async () => {
  await using it = await open();
  for (let n = 0; n < 60; n++) await beat(it, { runtimeId: `rtm_fleet${String(n).padStart(6, "0")}`, host: `machine-${String(n).padStart(2, "0")}` });
  const { cookie } = await it.signIn();
  const first = textsOf((await it.get("/runtimes", { cookie })).html, "tbody .cell-main a");
  const second = textsOf((await it.get("/runtimes?page=2", { cookie })).html, "tbody .cell-main a");
  expect([first.length, second.length, new Set([...first, ...second]).size]).toEqual([50, 10, 60]);
});

test("what a machine says of itself is only text", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  for (const [index, payload] of PAYLOADS.entries()) {
    const runtimeId = `rtm_hostile${String(index).padStart(4, "0")}`;
    const text = payload.slice(0, 60).trim() || "x";
    const refused = { [text]: 3 };
    const report = {
      outbox: [outbox({ name: payload.slice(0, 120), state: text.slice(0, 32), lastError: payload.slice(0, 290), refused })],
      harnesses: [{ id: text, version: payload.slice(0, 120), state: text.slice(0, 32) }],
    };
    await beat(it, { runtimeId, host: text, version: text, report });
    const path = `/runtimes/${runtimeId}?project=shop`;
    const { html, status } = await it.get(path, { cookie });
    expect([path, status, intrudersOf(html)]).toEqual([path, 200, []]);
  }
  expect(intrudersOf((await it.get("/ui/runtimes", { cookie })).html)).toEqual([]);
});

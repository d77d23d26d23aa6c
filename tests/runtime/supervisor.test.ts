// The supervisor as a process: one owner, proof of who listens, a clean end, and what happens after kill -9.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { findRuntime, proofOf, readEndpoint } from "../../src/client/local-runtime.ts";
import { statePaths } from "../../src/client/state-paths.ts";
import { RuntimeRefusal } from "../../src/protocol/runtime-errors.ts";
import { newId } from "../../src/runtime/ids.ts";
import { knownSecrets } from "../../src/runtime/redact/known-secrets.ts";
import { createRedactor } from "../../src/runtime/redact/redactor.ts";
import { openRegistry } from "../../src/runtime/registry.ts";
import { openEventStore } from "../../src/runtime/store/event-store.ts";
import { hubStandIn } from "./hub-stand-in.ts";
import { startRuntime, until } from "./runtime-process.ts";
import { aRun, fakeClock, PROJECT_ID, temporaryFolder } from "./support.ts";

/** A Runtime that takes work in and executes nothing. */
const HOLDING = join(import.meta.dir, "appending-runtime-fixture.ts");

const refusalOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error) => (error instanceof RuntimeRefusal ? error.code : Promise.reject(error)),
  );

test("a Runtime keeps its id, gives its proof, and refuses a second one by name", async () => {
  using folder = temporaryFolder();
  await using first = await startRuntime(folder.path);
  expect(first.facts?.runtimeId).toMatch(/^rtm_[0-9a-f]{24}$/);
  const client = await first.client();
  expect(await client.status()).toMatchObject({ runtimeId: first.facts!.runtimeId, pid: first.facts!.pid, port: first.facts!.port, generation: 1 });
  const second = await startRuntime(folder.path);
  expect(await second.child.exited).toBe(1);
  const said = await second.stderr();
  expect(said).toContain("runtime_supervisor_conflict");
  expect(said).toContain(`process ${first.facts!.pid}`);
  expect(said).not.toContain("at ");
  expect((await client.status()).generation).toBe(1); // untouched by the refused one
  expect(await first.kill("SIGTERM")).toBe(0);
  expect(await refusalOf(findRuntime(folder.path))).toBe("runtime_not_running");
  await using third = await startRuntime(folder.path);
  expect(third.facts).toMatchObject({ runtimeId: first.facts!.runtimeId, generation: 2 });
  expect(await third.kill("SIGHUP")).toBe(0); // its terminal was closed: it ends in order
});

test("of several that start at once in an empty folder one serves, and its token is the one in the file", async () => {
  for (let round = 0; round < 3; round++) {
    using folder = temporaryFolder();
    const started = await Promise.all([1, 2, 3].map(() => startRuntime(folder.path)));
    const served = started.filter(({ facts }) => facts !== undefined);
    expect(served.length).toBe(1);
    expect((await (await served[0]!.client()).status()).pid).toBe(served[0]!.facts!.pid); // proves the token on the way
    for (const one of started) await one.kill();
  }
});

test("kill -9 is taken over at once, and the local API of the dead one is not mistaken for a live one", async () => {
  using folder = temporaryFolder();
  await using first = await startRuntime(folder.path);
  await first.kill();
  expect(await refusalOf(findRuntime(folder.path))).toBe("runtime_not_running");
  using imposter = Bun.serve({ hostname: "127.0.0.1", port: first.facts!.port, fetch: () => Response.json({ ok: true, proof: "00" }) });
  expect(await refusalOf(findRuntime(folder.path))).toBe("runtime_imposter");
  await imposter.stop(true);
  const started = performance.now();
  await using second = await startRuntime(folder.path);
  expect(performance.now() - started).toBeLessThan(5_000);
  expect(second.facts!.generation).toBe(2);
});

test("the local API wants its token, its own address and no web page; files are private", async () => {
  using folder = temporaryFolder();
  await using runtime = await startRuntime(folder.path);
  const { url, token } = readEndpoint(folder.path);
  const get = (path: string, headers: Record<string, string> = {}) => fetch(url + path, { headers });
  const bearer = { authorization: `Bearer ${token}` };
  expect((await get("/v1/status", bearer)).status).toBe(200);
  expect((await get("/v1/status")).status).toBe(401);
  expect((await get("/v1/status", { authorization: `Bearer ${token}x` })).status).toBe(401);
  expect((await get("/v1/status", { ...bearer, host: "evil.example" })).status).toBe(401);
  expect((await get("/v1/status", { ...bearer, origin: url })).status).toBe(401);
  expect((await get("/nothing", bearer)).status).toBe(404);
  expect((await get("/healthz")).status).toBe(400);
  expect(await (await get("/healthz?nonce=abcdefgh")).json()).toEqual({ ok: true, proof: proofOf(token, "abcdefgh") });
  const post = await fetch(`${url}/v1/projects`, { method: "POST", headers: { ...bearer, "content-type": "text/plain" }, body: "{}" });
  expect(post.status).toBe(400);
  expect(
    await (await fetch(`${url}/v1/projects`, { method: "POST", headers: { ...bearer, "content-type": "application/json" }, body: "{" })).json(),
  ).toMatchObject({ code: "runtime_protocol_error" });
  const files = readdirSync(statePaths(folder.path).runtime, { recursive: true, withFileTypes: true });
  expect(files.length).toBeGreaterThan(4);
  for (const file of files) expect([file.name, statSync(join(file.parentPath, file.name)).mode & 0o077]).toEqual([file.name, 0]);
  const log = readFileSync(statePaths(folder.path).log, "utf8");
  expect(log).toContain("runtime_started");
  expect(log).not.toContain(token);
  const registry = new Database(statePaths(folder.path).registry, { readonly: true });
  expect(JSON.stringify(registry.query("select * from supervisor").all())).not.toContain(token);
  await runtime.kill("SIGTERM");
});

test("a checkout is registered once, takes commands once, and its backlog goes on after a restart without a new run", async () => {
  using folder = temporaryFolder();
  const checkout = join(folder.path, "checkout");
  mkdirSync(checkout);
  using hub = hubStandIn();
  await using first = await startRuntime(folder.path, {}, HOLDING);
  const client = await first.client();
  const { projectKey } = await client.register({ root: checkout, projectId: PROJECT_ID, name: "Demo" });
  const start = { commandId: "cmd_0123456789", kind: "start" as const, payload: { prompt: "do it", displayTitle: "It" }, actor: "cli:me" };
  const applied = await client.command(projectKey, start);
  expect(applied).toMatchObject({ state: "applied", repeated: false, result: { state: "queued" } });
  expect(await client.command(projectKey, start)).toEqual({ ...applied, repeated: true });
  expect(await refusalOf(client.command(projectKey, { ...start, payload: { prompt: "another" } }))).toBe("command_conflict");
  const cancel = { commandId: "cmd_cancel_1", kind: "cancel" as const, runId: "run_0123456789", payload: {}, actor: "cli:me" };
  expect(await refusalOf(client.command(projectKey, cancel))).toBe("run_not_found");
  expect(await refusalOf(client.register({ root: checkout, projectId: "prj_other_project", name: "Other" }))).toBe("project_conflict");
  expect(await refusalOf(client.register({ root: join(checkout, "nothing"), projectId: PROJECT_ID, name: "None" }))).toBe("project_not_found");
  await first.kill();
  const runId = appendBehindItsBack(folder.path, projectKey, 50);
  await using second = await startRuntime(folder.path, { KXM_URL: hub.url, KXM_PROJECT: "demo" }, HOLDING);
  await until(() => hub.sequences(runId).length === 50, "the backlog at the hub");
  const status = await until(async () => {
    const { sync } = await (await second.client()).status();
    return sync.projects[0].pending === 0 ? sync : undefined;
  }, "an empty outbox");
  expect(status).toMatchObject({ hub: { url: hub.url, project: "demo" }, projects: [{ projectKey, state: "ok", acked: 50, refused: {} }] });
  const presence = hub.requests.filter(({ path }) => path === "/v1/runtime/presence").at(-1)!;
  expect(presence.body).toMatchObject({
    project: "demo",
    runtimeId: second.facts!.runtimeId,
    report: { outbox: [{ projectId: PROJECT_ID, name: "Demo" }] },
  });
  expect(presence.agent).toBe(second.facts!.runtimeId);
});

test("a new event is at the hub within half a second", async () => {
  using folder = temporaryFolder();
  const checkout = join(folder.path, "checkout");
  mkdirSync(checkout);
  using hub = hubStandIn();
  await using runtime = await startRuntime(
    folder.path,
    { KXM_URL: hub.url, KXM_RUNTIME_SYNC_INTERVAL_MS: "60000" },
    join(import.meta.dir, "appending-runtime-fixture.ts"),
  );
  const client = await runtime.client();
  const { projectKey } = await client.register({ root: checkout, projectId: PROJECT_ID, name: "Demo" });
  await until(() => hub.pushes().length === 0 && hub.requests.length > 0, "the first presence");
  const delays: number[] = [];
  for (let round = 0; round < 5; round++) {
    const { runId } = await client.post(`/v1/projects/${projectKey}/append`);
    const appended = performance.now();
    await until(() => hub.sequences(runId).length === 1, "the event");
    delays.push(performance.now() - appended);
  }
  expect(Math.max(...delays)).toBeLessThan(500);
});

test("a checkout that moved stays listed with its reason and comes back by itself", async () => {
  using folder = temporaryFolder();
  const [checkout, moved] = [join(folder.path, "checkout"), join(folder.path, "moved")];
  mkdirSync(checkout);
  using hub = hubStandIn();
  await using runtime = await startRuntime(folder.path, { KXM_URL: hub.url });
  const client = await runtime.client();
  const { projectKey } = await client.register({ root: checkout, projectId: PROJECT_ID, name: "Demo" });
  renameSync(checkout, moved);
  const first = () => client.status().then(({ sync }) => sync.projects[0]);
  const gone = await until(async () => ((await first()).state === "store_unavailable" ? first() : undefined), "the moved checkout to be seen");
  expect(gone.lastError).toContain("is not there");
  expect(await refusalOf(client.command(projectKey, { commandId: "cmd_0123456789", kind: "pause", payload: {}, actor: "me" }))).toBe(
    "store_unavailable",
  );
  renameSync(moved, checkout);
  await until(async () => (await first()).state === "ok", "the checkout to be back");
  expect(await client.command(projectKey, { commandId: "cmd_0123456780", kind: "pause", payload: {}, actor: "me" })).toMatchObject({
    result: { paused: true },
  });
});

test("a store copied from another machine is refused, shown, and not changed", async () => {
  using here = temporaryFolder();
  using there = temporaryFolder();
  const checkout = join(here.path, "checkout");
  mkdirSync(checkout);
  await using one = await startRuntime(here.path);
  const { projectKey } = await (await one.client()).register({ root: checkout, projectId: PROJECT_ID, name: "Demo" });
  await one.kill("SIGTERM");
  const [from, to] = [statePaths(here.path).project(projectKey), statePaths(there.path).project(projectKey)];
  mkdirSync(to.folder, { recursive: true });
  await Bun.write(to.events, Bun.file(from.events));
  await using two = await startRuntime(there.path);
  const client = await two.client();
  const before = readFileSync(to.events).toHex();
  expect(await refusalOf(client.register({ root: checkout, projectId: PROJECT_ID, name: "Demo" }))).toBe("store_unavailable");
  const { sync } = await client.status();
  expect(sync.projects[0]).toMatchObject({ state: "store_unavailable" });
  expect(sync.projects[0].lastError).toContain("store_home_mismatch");
  expect(sync.projects[0].lastError).toContain(one.facts!.runtimeId);
  expect(readFileSync(to.events).toHex()).toBe(before);
});

test("checkouts report to the projects of the hub that they name, and take commands from no other", async () => {
  using folder = temporaryFolder();
  const [one, two] = [join(folder.path, "one"), join(folder.path, "two")];
  for (const path of [one, two]) mkdirSync(path);
  using hub = hubStandIn();
  await using runtime = await startRuntime(folder.path, { KXM_URL: hub.url }, join(import.meta.dir, "appending-runtime-fixture.ts"));
  const client = await runtime.client();
  const first = await client.register({ root: one, projectId: "prj_the_first_one", name: "One", hubProject: "alpha" });
  const second = await client.register({ root: two, projectId: "prj_the_second_one", name: "Two", hubProject: "beta" });
  const runs = await Promise.all([first, second].map(({ projectKey }) => client.post(`/v1/projects/${projectKey}/append`)));
  await until(() => runs.every(({ runId }) => hub.sequences(runId).length === 1), "both events");
  const projectOf = (projectId: string) => hub.projects.get(projectId);
  expect([projectOf("prj_the_first_one"), projectOf("prj_the_second_one")]).toEqual(["alpha", "beta"]);
  hub.command({ id: "cmd_wrong_0001", hubProject: "beta", kind: "pause", projectId: "prj_the_first_one" });
  hub.command({ id: "cmd_right_0001", hubProject: "alpha", kind: "pause", projectId: "prj_the_first_one" });
  await until(() => hub.results.filter(({ state }) => state !== "received").length === 2, "both results");
  const end = (id: string) => hub.results.find((result) => result.id === id && result.state !== "received")!;
  expect(end("cmd_wrong_0001")).toMatchObject({ state: "refused" });
  expect(end("cmd_right_0001")).toMatchObject({ state: "applied" });
});

test("what the hub refused is pushed again when an operator asks for it at the hub, by its code", async () => {
  using folder = temporaryFolder();
  mkdirSync(join(folder.path, "checkout"));
  using hub = hubStandIn();
  // Nothing but the command pushes here: the next round is a minute away.
  const env = { KXM_URL: hub.url, KXM_RUNTIME_SYNC_INTERVAL_MS: "60000" };
  await using runtime = await startRuntime(folder.path, env, join(import.meta.dir, "appending-runtime-fixture.ts"));
  const client = await runtime.client();
  const { projectKey } = await client.register({ root: join(folder.path, "checkout"), projectId: PROJECT_ID, name: "Demo" });
  const { runId } = await client.post(`/v1/projects/${projectKey}/append`);
  await until(() => hub.sequences(runId).length === 1, "the first event");
  hub.events.set(`${PROJECT_ID}/${runId}/2`, { text: "something else", at: 0 });
  await client.post(`/v1/projects/${projectKey}/runs/${runId}/append/1`);
  const refused = async () => (await client.status()).sync.projects[0].refused;
  await until(async () => (await refused()).sync_sequence_reused === 1, "the refusal");
  hub.events.delete(`${PROJECT_ID}/${runId}/2`);
  hub.command({ id: "cmd_other_0001", kind: "sync-retry", projectId: PROJECT_ID, payload: { code: "sync_row_too_large" } });
  hub.command({ id: "cmd_right_0001", kind: "sync-retry", projectId: PROJECT_ID, payload: { code: "sync_sequence_reused" } });
  await until(async () => (await client.status()).sync.projects[0].acked === 2, "the second event");
  expect([await refused(), hub.sequences(runId)]).toEqual([{}, [1, 2]]);
  const applied = hub.results.filter(({ state }) => state === "applied").map(({ id, detail }) => [id, detail]);
  expect(applied).toEqual([
    ["cmd_other_0001", { requeued: 0 }],
    ["cmd_right_0001", { requeued: 1 }],
  ]);
}, 30_000);

test("another generation of the hub gets everything again, with the same bytes", async () => {
  using folder = temporaryFolder();
  mkdirSync(join(folder.path, "checkout"));
  using hub = hubStandIn();
  hub.generation = "gen_one";
  await using runtime = await startRuntime(folder.path, { KXM_URL: hub.url }, join(import.meta.dir, "appending-runtime-fixture.ts"));
  const client = await runtime.client();
  const { projectKey } = await client.register({ root: join(folder.path, "checkout"), projectId: PROJECT_ID, name: "Demo" });
  const { runId } = await client.post(`/v1/projects/${projectKey}/append`);
  await until(() => hub.sequences(runId).length === 1, "the event");
  const before = new Map(hub.events);
  await until(async () => (await client.status()).sync.projects[0].acked === 1, "the acknowledgement");
  hub.events.clear(); // an older copy was restored
  hub.generation = "gen_two";
  await until(() => hub.sequences(runId).length === 1, "the event again");
  expect([...hub.events].map(([key, { text }]) => [key, text])).toEqual([...before].map(([key, { text }]) => [key, text]));
});

test("commands of the hub are done once, answered, and answered again when the answer was lost", async () => {
  using folder = temporaryFolder();
  const checkout = join(folder.path, "checkout");
  mkdirSync(checkout);
  using hub = hubStandIn();
  await using first = await startRuntime(folder.path, { KXM_URL: hub.url });
  const { projectKey } = await (await first.client()).register({ root: checkout, projectId: PROJECT_ID, name: "Demo" });
  hub.command({ id: "cmd_pause_0001", kind: "pause", projectId: PROJECT_ID, payload: { reason: "lunch" } });
  await until(() => hub.results.some(({ state }) => state === "applied"), "the pause");
  hub.command({ id: "cmd_cancel_0001", kind: "cancel", projectId: PROJECT_ID, runId: "run_nothing_here" });
  hub.command({ id: "cmd_start_0001", kind: "start", projectId: "prj_not_on_this_machine" });
  hub.command({ id: "cmd_bad_0001", kind: "resolve", projectId: PROJECT_ID, payload: { action: "nonsense" } });
  hub.command({ id: "cmd_new_0001", kind: "teleport", projectId: PROJECT_ID });
  await until(() => hub.results.filter(({ state }) => state === "refused").length === 4, "four refusals");
  expect(hub.results.filter(({ id }) => id === "cmd_pause_0001")).toEqual([
    { id: "cmd_pause_0001", state: "received" },
    { id: "cmd_pause_0001", state: "applied", detail: { paused: true, changed: true } },
  ]);
  const reasons = Object.fromEntries(hub.results.filter(({ state }) => state === "refused").map(({ id, reason }) => [id, reason]));
  expect(reasons["cmd_cancel_0001"]).toContain("no checkout on this machine has run");
  expect(reasons["cmd_start_0001"]).toContain("prj_not_on_this_machine");
  expect(reasons["cmd_bad_0001"]).toContain("payload of resolve");
  expect(reasons["cmd_new_0001"]).toContain("does not know teleport");
  // The answer is lost: the process dies between its own commit and the report, and the hub still has the command open.
  hub.failWith(({ path, body }) => (path.endsWith("/result") && body.state !== "received" ? new Response(null, { status: 503 }) : undefined));
  hub.command({ id: "cmd_resume_0001", kind: "resume", projectId: PROJECT_ID });
  const stored = () => {
    const db = new Database(statePaths(folder.path).project(projectKey).events, { readonly: true });
    const row = db.query("select state, reported_at as reportedAt from commands where command_id = 'cmd_resume_0001'").get() as any;
    db.close();
    return row;
  };
  expect(await until(stored, "the resume in the store")).toEqual({ state: "applied", reportedAt: null });
  await first.kill();
  hub.failWith(undefined);
  await using second = await startRuntime(folder.path, { KXM_URL: hub.url });
  await until(() => hub.results.some(({ id, state }) => id === "cmd_resume_0001" && state === "applied"), "the late answer");
  expect(hub.results.find(({ id, state }) => id === "cmd_resume_0001" && state === "applied")!.detail).toEqual({ paused: false, changed: true });
  await until(() => stored().reportedAt !== null, "the note that it was reported");
  expect(second.facts!.generation).toBe(2);
});

test("the saved token and the checkout's place are known before the first event of a start is written", async () => {
  using folder = temporaryFolder();
  const [checkout, token] = [join(folder.path, "my check out"), "open-sesame-open-sesame"];
  mkdirSync(checkout);
  const fixture = join(import.meta.dir, "appending-runtime-fixture.ts");
  await using first = await startRuntime(folder.path, {}, fixture);
  const client = await first.client();
  const { projectKey } = await client.register({ root: checkout, projectId: PROJECT_ID, name: "Demo" });
  const { runId } = await client.post(`/v1/projects/${projectKey}/append`);
  await client.bind({ url: "http://127.0.0.1:9", project: "demo", token });
  await first.kill();
  await using second = await startRuntime(folder.path, { KXM_TEST_SAY: `${token} in ${checkout}/src` }, fixture);
  const { events } = await (await second.client()).events(projectKey, runId);
  expect(events[1].payload.summary).toBe(`[REDACTED:hub-token] in ${checkout}/src`);
  const db = new Database(statePaths(folder.path).project(projectKey).events, { readonly: true });
  const { sync } = db.query("select sync_event as sync from outbox where sequence = 2").get() as { sync: string };
  db.close();
  expect(JSON.parse(sync).payload.summary).toBe("[REDACTED:hub-token] in [path]");
});

/** Stops a process. One that was caught in the middle of a heartbeat, with the registry locked, goes on: nobody could take over from it. */
function stoppedBetweenWrites(child: { kill(signal: "SIGSTOP" | "SIGCONT"): void }, registry: string): boolean {
  child.kill("SIGSTOP");
  using db = new Database(registry);
  try {
    db.run("begin immediate");
    db.run("rollback");
    return true;
  } catch {
    child.kill("SIGCONT");
    return false;
  }
}

test("a supervisor that was stopped for too long is replaced, finds out, and its writes are refused", async () => {
  using folder = temporaryFolder();
  const checkout = join(folder.path, "checkout");
  mkdirSync(checkout);
  const env = { KXM_TEST_STALE_MS: "2000", KXM_TEST_HEARTBEAT_MS: "100" };
  const fixture = join(import.meta.dir, "appending-runtime-fixture.ts");
  await using first = await startRuntime(folder.path, env, fixture);
  const { projectKey } = await (await first.client()).register({ root: checkout, projectId: PROJECT_ID, name: "Demo" });
  const path = statePaths(folder.path).registry;
  await until(() => stoppedBetweenWrites(first.child, path), "a stop that holds no lock");
  await until(() => {
    const db = new Database(path, { readonly: true });
    const { heartbeatAt } = db.query("select heartbeat_at as heartbeatAt from supervisor").get() as any;
    db.close();
    return Date.now() - heartbeatAt > 2_500;
  }, "its silence");
  await using second = await startRuntime(folder.path, env, fixture);
  expect(second.facts).toMatchObject({ runtimeId: first.facts!.runtimeId, generation: 2 });
  first.child.kill("SIGCONT");
  expect(await first.child.exited).toBe(1);
  expect(await first.stderr()).toContain("runtime_superseded");
  const client = await second.client();
  const { runId } = await client.post(`/v1/projects/${projectKey}/append`);
  expect((await client.events(projectKey, runId)).events.length).toBe(1);
});

/** Events of a run that was going on when the process died. */
function appendBehindItsBack(root: string, projectKey: string, count: number): string {
  const clock = fakeClock();
  const registry = openRegistry(statePaths(root).registry, { clock });
  const { generation } = registry.supervisor();
  const store = openEventStore({
    path: statePaths(root).project(projectKey).events,
    projectId: PROJECT_ID,
    runtimeId: registry.runtimeId,
    generation,
    redactor: createRedactor(knownSecrets()),
    clock,
    newId,
  });
  const { runId } = store.commit((tx) => tx.createRun(aRun()));
  store.commit((tx) => {
    for (let index = 1; index < count; index++) tx.append(runId, { type: "step.status_changed", payload: { stepId: "build", status: "running" } });
  });
  store.close();
  registry.close();
  return runId;
}

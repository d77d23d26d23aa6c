// The command line against a real Runtime: what a newcomer types, in an empty repository.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findRuntime, readEndpoint } from "../../src/client/local-runtime.ts";
import { sh } from "./engine/world.ts";

const MAIN = join(import.meta.dir, "../../src/main.ts");
let base: string;
let folder: string;
const kxmIn = (cwd: string, ...args: string[]) => kxmWith({}, cwd, ...args);
const kxmWith = async (env: Record<string, string>, cwd: string, ...args: string[]) => {
  const child = Bun.spawn([process.execPath, MAIN, ...args], {
    cwd,
    env: { PATH: process.env["PATH"]!, HOME: base, USER: "ana", KXM_STATE_HOME: join(base, "state"), ...env },
    stdout: "pipe",
    stderr: "pipe",
    timeout: 30_000,
  });
  const [out, err, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { out, err, code };
};
const kxm = (...args: string[]) => kxmIn(folder, ...args);
beforeAll(async () => {
  base = mkdtempSync("/dev/shm/kxm-cli-");
  folder = join(base, "shop");
  sh(base, "git init -q shop && git init -q empty");
  expect((await kxm("init")).code).toBe(0);
});
afterAll(async () => {
  try {
    process.kill(readEndpoint(join(base, "state")).pid, "SIGKILL");
  } catch {}
  rmSync(base, { recursive: true, force: true });
});

test("in an empty repository: init, run, list, show, receipt", async () => {
  const here = (...args: string[]) => kxmIn(join(base, "empty"), ...args);
  expect(await here("run", "hello")).toMatchObject({ code: 1, err: expect.stringContaining("`kxm init` makes one") });
  const init = await here("init", "--json");
  expect(JSON.parse(init.out)).toMatchObject({ kept: [], written: expect.arrayContaining([".kxm/project.yaml", ".kxm/workflows/default.yaml"]) });
  const run = await here("run", "Say hello\u001b]0;owned\u0007");
  expect(run.code).toBe(0);
  expect(run.out).toContain("review: passed");
  expect(run.out).toContain("run completed");
  expect(run.out).not.toContain("\u001b]");
  const listed = JSON.parse((await here("runs", "list", "--json")).out);
  expect(listed.runs).toHaveLength(1);
  const shown = JSON.parse((await here("runs", "show", listed.runs[0].runId, "--json")).out);
  expect(shown).toMatchObject({
    status: "completed",
    workflowId: "default",
    steps: [{ id: "plan" }, { id: "work" }, { id: "review", status: "passed" }],
  });
  expect((await here("runs", "receipt")).out).toContain("holds");
  expect((await here("runs", "receipt")).out).toMatch(/commits +main [0-9a-f]{12} → [0-9a-f]{12}/);
}, 60_000);

test("--json is one line per event, the last one the end of the run", async () => {
  const { out, code } = await kxm("run", "again", "--json");
  const events = out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(code).toBe(0);
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, i) => i + 1));
  expect(events.at(-1)).toMatchObject({ eventType: "run.status_changed", payload: { status: "completed" } });
  expect(out).not.toContain('"local":');
}, 60_000);

test("a checkout reports as its folder is called, or as its project file says; KXM_PROJECT outranks both", async () => {
  const file = join(folder, ".kxm/project.yaml");
  const before = readFileSync(file, "utf8");
  const reportsAs = async (env: Record<string, string> = {}) => {
    expect((await kxmWith(env, folder, "runs", "list")).code).toBe(0);
    const { projects } = await (await findRuntime(join(base, "state"))).get("/v1/projects");
    return projects.find(({ projectRoot }: { projectRoot: string }) => projectRoot === folder).hubProject;
  };
  expect((await kxm("runtime", "start")).code).toBe(0);
  expect(await reportsAs()).toBe("shop");
  writeFileSync(file, `${before}\nhubProject: storefront\n`);
  expect(await reportsAs()).toBe("storefront");
  expect(await reportsAs({ KXM_PROJECT: "other" })).toBe("other");
  writeFileSync(file, before);
  expect(await reportsAs()).toBe("shop");
}, 60_000);

test("the same key starts the same run once", async () => {
  const [a, b] = [await kxm("run", "keyed", "--key", "k1", "--detach", "--json"), await kxm("run", "keyed", "--key", "k1", "--detach", "--json")];
  expect(JSON.parse(a.out).runId).toBe(JSON.parse(b.out).runId);
  expect(await kxm("run", "other words", "--key", "k1", "--detach")).toMatchObject({ code: 1, err: expect.stringContaining("command_conflict") });
}, 60_000);

test("broken project files are all named with their places, and nothing starts", async () => {
  writeFileSync(join(folder, ".kxm/agents/broken.yaml"), "schema: kxm.agent.v1\nspeed: 3\n");
  const { err, code } = await kxm("run", "x");
  expect(code).toBe(1);
  expect(err).toContain(".kxm/agents/broken.yaml:1:1: field_missing: purpose");
  expect(err).toContain(".kxm/agents/broken.yaml:2:1: field_unknown: speed");
  expect(err).not.toContain("    at ");
  rmSync(join(folder, ".kxm/agents/broken.yaml"));
}, 60_000);

test("a paused project holds work and says who paused it", async () => {
  await kxm("project", "pause", "--reason", "freeze");
  expect((await kxm("intake", "submit", "later", "--json")).code).toBe(0);
  const { out } = await kxm("intake", "list");
  expect(out).toContain("paused by cli:ana: freeze");
  expect(out).toContain("queued");
  expect(await kxm("run", "now")).toMatchObject({ code: 1, err: expect.stringContaining("takes no runs now") });
  await kxm("project", "resume");
  const { intake } = JSON.parse((await kxm("intake", "list", "--json")).out);
  expect(intake.map(({ state }: { state: string }) => state)).not.toContain("refused");
}, 60_000);

test("a wait step goes on when the checks of a commit have ended", async () => {
  const here = join(base, "waiting");
  sh(base, "git init -q waiting");
  await kxmIn(here, "init");
  const wait = { id: "checks", kind: "wait", signal: "ci", timeoutMs: 60_000, on: { passed: "$terminal", failed: "$terminal" } };
  writeFileSync(join(here, ".kxm/workflows/ci.yaml"), JSON.stringify({ schema: "kxm.workflow.v1", steps: [wait] }));
  const { runId } = JSON.parse((await kxmIn(here, "run", "--workflow", "ci", "--detach", "--json")).out);
  const looks = [[], [{ name: "build", status: "in_progress", conclusion: null }], [{ name: "build", status: "completed", conclusion: "success" }]];
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => {
      const runs = looks.length > 1 ? looks.shift()! : looks[0]!;
      return Response.json({ total_count: runs.length, check_runs: runs });
    },
  });
  const api = `http://127.0.0.1:${server.port}`;
  const watched = await kxmIn(here, "watch", "github", "acme/shop", "4f2c1e", "--run", runId, "--signal", "ci", "--api", api, "--every", "10ms");
  expect(watched).toMatchObject({ code: 0, out: "passed: All 1 checks of 4f2c1e passed\n" });
  const shown = JSON.parse((await kxmIn(here, "runs", "show", runId, "--json")).out);
  expect(shown).toMatchObject({ status: "completed", steps: [{ id: "checks", outcome: "passed", summary: "All 1 checks of 4f2c1e passed" }] });
  expect(await kxmIn(here, "watch", "github", "acme/shop", "4f2c1e", "--run", runId, "--signal", "ci", "--api", api)).toMatchObject({
    code: 1,
    err: expect.stringContaining("it cannot be signalled"),
  });
}, 60_000);

test("a run that fails says why, and what to do about it", async () => {
  const here = join(base, "failing");
  sh(base, "git init -q failing");
  await kxmIn(here, "init");
  const agent = { schema: "kxm.agent.v1", purpose: "is not here", harness: "command", command: ["no-such-program-here"] };
  writeFileSync(join(here, ".kxm/agents/missing.yaml"), JSON.stringify(agent));
  const steps = [{ id: "work", kind: "agent", agent: "missing" }];
  writeFileSync(join(here, ".kxm/workflows/fails.yaml"), JSON.stringify({ schema: "kxm.workflow.v1", steps }));
  const { code, out, err } = await kxmIn(here, "run", "--workflow", "fails");
  expect([code, out.includes("harness_missing: the program no-such-program-here is not installed")]).toEqual([1, true]);
  expect(err).toContain("Install the program, or name another harness");
  expect((await kxmIn(here, "runs", "show")).out).toMatch(/do +Install the program/);
}, 60_000);

test("a gate by hand that cannot run says why in a sentence, and its answer is there for programs", async () => {
  const put = (path: string, text: string) => writeFileSync(join(folder, path), text);
  put("plain.txt", "no program");
  put("broken", "#!/no/such/interpreter\n");
  put("says", "#!/bin/sh\necho out; exit 3\n");
  sh(folder, "chmod +x broken says");
  put(
    ".kxm/gates.yaml",
    "schema: kxm.gate-registry.v1\ngates:\n" +
      "  plain: {argv: [./plain.txt]}\n  broken: {argv: [./broken]}\n  says: {argv: [./says]}\n  slow: {argv: [sleep, '60'], timeoutMs: 200}\n" +
      "  nowhere: {argv: [./says], cwd: nowhere}\n  ofrun: {argv: [./says, '{{commit}}']}\n",
  );
  for (const [gate, sentence] of [
    ["plain", "the program ./plain.txt of the gate plain cannot be executed"],
    ["broken", "the program ./broken of the gate broken cannot be executed"],
    ["nowhere", "the gate nowhere runs in nowhere, which is no folder of the project"],
    ["ofrun", "the gate ofrun is told {{commit}} of its run: it runs only as a step of a run"],
    ["slow", "the gate slow did not end within 0.2 s"],
  ]) {
    const { code, err, out } = await kxm("gate", "run", gate!);
    expect([code, out, err]).toEqual([1, "", expect.stringContaining(sentence!)]);
    expect(err).not.toContain("    at ");
  }
  const { code, out, err } = await kxm("gate", "run", "says", "--json");
  expect([code, JSON.parse(out), err]).toEqual([1, { gate: "says", passed: false, exitCode: 3 }, "out\n"]);
}, 60_000);

test("a word that is no status and a harness that nobody has are mistakes, and the right words are named", async () => {
  const status = await kxm("runs", "list", "--status", "done");
  expect([status.code, status.err]).toEqual([2, expect.stringContaining("created, queued, preparing, running, waiting")]);
  const harness = await kxm("worker", "--name", "a", "--harness", "clyde");
  expect([harness.code, harness.err]).toEqual([2, expect.stringContaining("claude, codex, gemini")]);
  // A program's own options stand behind --.
  const worker = await kxm("worker", "--name", "a", "--harness", "command", "--", "/bin/sh", "-c", "cat");
  expect([worker.code, worker.err]).toEqual([1, expect.stringContaining("hub_not_bound")]);
  expect((await kxm("worker", "--name", "a", "--harness", "echo", "--", "/bin/sh")).err).toContain("runtime_protocol_error");
  expect((await kxm("worker", "lst")).code).toBe(2);
}, 60_000);

test("a prompt that is too long is refused in words, and an intake key names the work it was used for", async () => {
  writeFileSync(join(folder, "long.txt"), "a".repeat(2_000_000));
  for (const args of [
    ["run", "--file", "long.txt"],
    ["intake", "submit", "b".repeat(32_001)],
  ])
    expect(await kxm(...args)).toMatchObject({ code: 1, err: expect.stringMatching(/the prompt has \d+ characters, at most 32000 are taken/) });
  expect(await kxm("run", "hello", "--title", "t".repeat(201))).toMatchObject({
    code: 1,
    err: expect.stringContaining("no valid /displayTitle (at most 200 characters, it has 201)"),
  });
  await kxm("intake", "submit", "one", "--key", "k");
  expect((await kxm("intake", "submit", "two", "--key", "k")).err).toContain("Use another key or command id for something else.");
}, 60_000);

test("a checkout that was moved says where its runs are kept", async () => {
  const here = (...args: string[]) => kxmIn(join(base, "moving"), ...args);
  sh(base, "git init -q moving");
  await here("init");
  await here("run", "hello");
  sh(base, "mv moving moved");
  const listed = await kxmIn(join(base, "moved"), "runs", "list");
  expect([listed.code, listed.err]).toEqual([0, expect.stringContaining(`kept for its checkout in ${join(base, "moving")}`)]);
  expect((await kxm("runs", "list")).err).toBe("");
}, 60_000);

test("a run that queues says its place and what is before it, and the status says where the log is", async () => {
  const put = (path: string, text: string) => writeFileSync(join(folder, path), text);
  const project = readFileSync(join(folder, ".kxm/project.yaml"), "utf8");
  put(".kxm/project.yaml", project.replace("maxConcurrentRuns: 4", "maxConcurrentRuns: 1"));
  put(".kxm/agents/held.yaml", "schema: kxm.agent.v1\npurpose: waits\nharness: command\ncommand: [sleep, '60']\n");
  put(".kxm/workflows/held.yaml", "schema: kxm.workflow.v1\nsteps: [{id: hold, kind: agent, agent: held}]\n");
  const first = JSON.parse((await kxm("run", "--workflow", "held", "--detach", "--json")).out).runId;
  const { code, err } = await kxm("run", "--workflow", "held", "--timeout", "1s");
  expect([code, err]).toEqual([4, expect.stringContaining(`place 1 in the queue; before it: ${first}`)]);
  for (const { runId } of JSON.parse((await kxm("runs", "list", "--json")).out).runs.slice(0, 2)) await kxm("runs", "cancel", runId);
  put(".kxm/project.yaml", project);
  expect((await kxm("runtime", "status")).out).toContain(join(base, "state/runtime/logs/kxm-runtime.jsonl"));
}, 60_000);

test("a run that a gate ended shows what the gate printed last, and tokens stand beside the cost", async () => {
  const put = (path: string, text: string) => writeFileSync(join(folder, path), text);
  put("says", "#!/bin/sh\necho 'expected 3, got 4'; exit 3\n");
  sh(folder, "chmod +x says && git add says && git -c user.name=a -c user.email=a@b commit -qm says");
  put(".kxm/gates.yaml", "schema: kxm.gate-registry.v1\ngates:\n  says: {argv: [./says]}\n");
  put(
    ".kxm/workflows/gated.yaml",
    "schema: kxm.workflow.v1\nsteps: [{id: check, kind: gate, gate: says, on: {passed: $terminal, implementation-failure: $terminal}}]\n",
  );
  const { code, err } = await kxm("run", "--workflow", "gated");
  expect([code, err]).toEqual([1, expect.stringContaining("expected 3, got 4")]);
  const shown = await kxm("runs", "show");
  expect(shown.out).toContain("check printed last:\n  expected 3, got 4");
  expect(JSON.parse((await kxm("runs", "show", "--json")).out).used).toMatchObject({ tokens: 0 });
}, 60_000);

test("a Runtime that dies under a run that is followed says how to go on, and the run goes on", async () => {
  const put = (path: string, text: string) => writeFileSync(join(folder, path), text);
  put(
    ".kxm/agents/gated.yaml",
    `schema: kxm.agent.v1\npurpose: waits\nharness: command\ncommand: [/bin/sh, -c, 'while [ ! -f "${base}/go" ]; do sleep 0.02; done; echo "{\\"outcome\\":\\"passed\\"}"']\n`,
  );
  put(".kxm/workflows/waiting.yaml", "schema: kxm.workflow.v1\nsteps: [{id: hold, kind: agent, agent: gated}]\n");
  const following = kxm("run", "--workflow", "waiting");
  const executing = async () => {
    const { code, out } = await kxm("runs", "show", "--json");
    return code === 0 && JSON.parse(out).current?.attempts?.[0]?.status === "executing";
  };
  while (!(await executing()));
  process.kill(readEndpoint(join(base, "state")).pid, "SIGKILL");
  const { code, err } = await following;
  expect([code, err]).toEqual([3, expect.stringContaining("the run does with the next Runtime: kxm runs show run_")]);
  put("../go", "");
  expect(await kxm("runs", "show", "--follow")).toMatchObject({ code: 0, out: expect.stringContaining("run completed") });
}, 60_000);

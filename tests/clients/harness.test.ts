// Every harness with its real program, offline against a stand-in of its provider: a turn becomes an outcome, a reader cannot write, a writer can, and a
// refused sign-in is known for what it is. Runs with `npm run test:clients`.
import { beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ask } from "../../src/client/http.ts";
import { environmentFor } from "../../src/runtime/harness/environment.ts";
import { harnessReports } from "../../src/runtime/harness/probe.ts";
import { commandLine, HARNESS_TABLE } from "../../src/runtime/harness/table.ts";
import { openWorld, sh, workflow } from "../runtime/engine/world.ts";
import { until } from "../runtime/runtime-process.ts";
import { serveHub } from "../support/served.ts";
import { installed, modelStandIn } from "./installed.ts";

type Setup = {
  files: Record<string, object | string>;
  env: Record<string, string>;
  model?: { provider: string; model: string };
  writes: { tool: string; args: object };
};
const shell = (tool: string, args: object) => ({ tool, args });
const SETUPS: Record<string, (url: string) => Setup> = {
  claude: (url) => ({
    files: {},
    env: { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-standin" },
    model: { provider: "anthropic", model: "claude-sonnet-4-5" },
    writes: shell("Write", { file_path: "made.txt", content: "hi" }),
  }),
  codex: (url) => ({
    files: {
      ".codex/config.toml": `model = "gpt-5.1"\nmodel_provider = "standin"\ncheck_for_update_on_startup = false\n[model_providers.standin]\nname = "standin"\nbase_url = "${url}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n[analytics]\nenabled = false\n`,
    },
    env: { OPENAI_API_KEY: "k" },
    writes: shell("exec_command", { cmd: "echo hi > made.txt" }),
  }),
  gemini: (url) => ({
    files: {
      ".gemini/settings.json": {
        security: { auth: { selectedType: "gemini-api-key" } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
      },
    },
    env: { GEMINI_API_KEY: "k", GOOGLE_GEMINI_BASE_URL: url },
    model: { provider: "google", model: "gemini-2.5-flash" },
    writes: shell("write_file", { file_path: "made.txt", content: "hi" }),
  }),
  opencode: (url) => ({
    files: {
      ".config/opencode/opencode.jsonc": {
        autoupdate: false,
        share: "disabled",
        enabled_providers: ["standin"],
        small_model: "standin/standin",
        provider: {
          standin: {
            npm: "@ai-sdk/openai-compatible",
            name: "Stand-in",
            options: { baseURL: `${url}/v1`, apiKey: "k" },
            models: { standin: { name: "standin", limit: { context: 100_000, output: 4096 } } },
          },
        },
      },
    },
    env: {},
    model: { provider: "standin", model: "standin" },
    writes: shell("bash", { command: "echo hi > made.txt", description: "make" }),
  }),
  pi: (url) => ({
    files: {
      ".pi/agent/models.json": {
        providers: { standin: { baseUrl: `${url}/v1`, api: "openai-completions", apiKey: "k", models: [{ id: "standin" }] } },
      },
    },
    env: { PI_OFFLINE: "1" },
    model: { provider: "standin", model: "standin" },
    writes: shell("write", { path: "made.txt", content: "hi" }),
  }),
  copilot: (url) => ({
    files: {},
    env: { COPILOT_PROVIDER_BASE_URL: `${url}/v1`, COPILOT_PROVIDER_API_KEY: "standin-secret", COPILOT_MODEL: "standin", COPILOT_OFFLINE: "true" },
    writes: shell("create", { path: "made.txt", file_text: "hi" }),
  }),
  qwen: (url) => ({
    files: {
      ".qwen/settings.json": {
        security: { auth: { selectedType: "openai" } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false },
      },
    },
    env: { OPENAI_API_KEY: "k", OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: "standin" },
    writes: shell("run_shell_command", { command: "echo hi > made.txt", is_background: false }),
  }),
};
const DONE = { text: 'Looked.\n\n{"outcome":"passed","summary":"by the stand-in"}' };

let programs: string;
beforeAll(async () => {
  const packages = Object.values(HARNESS_TABLE).flatMap(({ checked }) => (checked ? [`${checked.name}@${checked.version}`] : []));
  programs = await installed(packages);
}, 900_000);

/** One run of one step with the real program. */
async function turn(harness: string, tools: string, script: (setup: Setup) => object[]) {
  const probe = SETUPS[harness]!("http://127.0.0.1:1");
  await using model = await modelStandIn(script(probe));
  const setup = SETUPS[harness]!(model.url);
  const agent = {
    schema: "kxm.agent.v1",
    purpose: "looks",
    harness,
    tools,
    env: ["PI_OFFLINE"],
    timeoutMs: 120_000,
    ...(setup.model && { model: setup.model }),
  };
  await using world = await openWorld({
    ".kxm/agents/a.yaml": agent,
    ".kxm/workflows/main.yaml": workflow([{ id: "work", kind: "agent", agent: "a", maxAttempts: 1 }]),
  });
  const home = join(world.base, "home");
  for (const [path, content] of Object.entries({ "here.txt": "", ...setup.files })) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), typeof content === "string" ? content : JSON.stringify(content));
  }
  const before = { ...process.env };
  Object.assign(process.env, setup.env, { HOME: home, TMPDIR: home, PATH: `${programs}:${before["PATH"]}` });
  try {
    const runId = await world.start({ prompt: "Look at this" });
    const run = await world.finished(runId, 180_000);
    const result = world.events(runId).find(({ eventType }) => eventType === "assignment.result_recorded")!.payload;
    const executing = world.events(runId).find(({ eventType }) => eventType === "assignment.executing")!.payload;
    return { run, usage: result.usage!, version: executing.executor?.harnessVersion, wrote: run.repositories[0]!.head !== run.repositories[0]!.base };
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  }
}

for (const harness of Object.keys(SETUPS)) {
  test(`${harness}: a reader's turn becomes an outcome with its usage, and writes nothing although it tries`, async () => {
    const { run, usage, version, wrote } = await turn(harness, "read-only", ({ writes }) => [writes, DONE]);
    expect(run).toMatchObject({ status: "completed", steps: [{ outcome: "passed", summary: "by the stand-in" }] });
    expect(wrote).toBe(false);
    // Some are slow to say it the first time, and are not waited for.
    if (version !== undefined) expect(version).toBe(HARNESS_TABLE[harness as "claude"].checked!.version);
    expect(usage.inputTokens).toBeGreaterThan(0);
    expect(["reported", "unknown"]).toContain(usage.costKind!);
  }, 300_000);

  test(`${harness}: a writer's turn changes its worktree`, async () => {
    const { run, wrote } = await turn(harness, "workspace-writer", ({ writes }) => [writes, DONE]);
    expect(run.status).toBe("completed");
    expect(wrote).toBe(true);
  }, 300_000);

  test(`${harness}: a refused sign-in is not tried again`, async () => {
    const { run } = await turn(harness, "read-only", () => [{ status: 401, error: "bad key" }]);
    expect(run.reason).toStartWith("not_signed_in: ");
  }, 300_000);
}

test("a worker with a real program answers a message, and goes on in the same session", async () => {
  await using hub = await serveHub();
  await using model = await modelStandIn([{ text: "The answer of the worker." }]);
  const setup = SETUPS["claude"]!(model.url);
  await using world = await openWorld({}, { hub: () => ({ url: hub.url, project: "demo" }) });
  const home = join(world.base, "home");
  mkdirSync(home);
  const before = { ...process.env };
  Object.assign(process.env, setup.env, { HOME: home, TMPDIR: home, PATH: `${programs}:${before["PATH"]}` });
  try {
    const spec = { name: "reviewer", harness: "claude", model: setup.model };
    await world.call("POST", "/v1/projects/:projectKey/workers", {}, { body: spec });
    const { agent, agentKey } = (await ask({ url: hub.url }, "POST", "/v1/agents/register", { body: { name: "alice", project: "demo" } })).body;
    const headers = { "x-kxm-agent-id": agent.id, "x-kxm-agent-key": agentKey };
    const report = async () => (await world.call("GET", "/v1/projects/:projectKey/workers")).workers[0];
    await until(async () => (await report()).agentId !== undefined, "the worker at the hub");
    for (const content of ["What do you think?", "And now?"]) {
      const body = { target: "reviewer", content, correlationId: "thread-1" };
      const { id } = (await ask({ url: hub.url }, "POST", "/v1/messages", { body, headers })).body.message;
      const answered = (await ask({ url: hub.url }, "GET", `/v1/messages/${id}`, { query: { waitMs: 60_000 }, headers })).body.message;
      expect(answered.reply?.content ?? JSON.stringify(await report())).toBe("The answer of the worker.");
    }
    expect(await report()).toMatchObject({ turns: 2, failures: 0 });
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  }
}, 300_000);

/** What people have in their own settings: tools that they allowed once and for all. */
const PERMISSIVE: Record<string, (files: Setup["files"]) => Setup["files"]> = {
  claude: (files) => ({ ...files, ".claude/settings.json": { permissions: { allow: ["Bash", "Write"], defaultMode: "bypassPermissions" } } }),
  codex: (files) => ({ ".codex/config.toml": `sandbox_mode = "danger-full-access"\n${files[".codex/config.toml"]}` }),
  gemini: (files) => withSettings(files, ".gemini/settings.json", { tools: { allowed: ["run_shell_command", "write_file"] } }),
  opencode: (files) => withSettings(files, ".config/opencode/opencode.jsonc", { agent: { build: { permission: { bash: "allow", edit: "allow" } } } }),
  qwen: (files) => withSettings(files, ".qwen/settings.json", { tools: { allowed: ["run_shell_command"] }, permissions: { allow: ["Bash"] } }),
};
const withSettings = (files: Setup["files"], path: string, more: object): Setup["files"] => ({
  ...files,
  [path]: { ...(files[path] as object), ...more },
});

for (const harness of Object.keys(SETUPS))
  test(`${harness}: going on in its session a reader still writes nothing, whatever its user allows, and a writer does`, async () => {
    for (const access of ["read", "write"] as const) expect([access, await secondTurnWrites(harness, access)]).toEqual([access, access === "write"]);
  }, 300_000);

/** Two turns of one session with the real program; whether the second one could write. */
async function secondTurnWrites(harness: string, access: "read" | "write"): Promise<boolean> {
  const folder = mkdtempSync("/dev/shm/kxm-session-");
  const at = (path: string) => join(folder, path);
  for (const made of ["home", "work", "attempt"]) mkdirSync(at(made));
  sh(at("work"), "git init -q");
  try {
    const row = HARNESS_TABLE[harness as "codex"];
    let sessionId: string = crypto.randomUUID();
    for (const resume of [false, true]) {
      const { writes } = SETUPS[harness]!("http://127.0.0.1:1");
      await using model = await modelStandIn(resume ? [writes, { text: "second" }] : [{ text: "first" }]);
      const setup = SETUPS[harness]!(model.url);
      for (const [path, content] of Object.entries(PERMISSIVE[harness]?.(setup.files) ?? setup.files)) {
        mkdirSync(dirname(at(`home/${path}`)), { recursive: true });
        writeFileSync(at(`home/${path}`), typeof content === "string" ? content : JSON.stringify(content));
      }
      const start = { access, sessionId, resume, folder: at("attempt"), ...(setup.model && { model: setup.model }) };
      for (const [name, text] of Object.entries(row.files?.(start) ?? {})) writeFileSync(at(`attempt/${name}`), text);
      const source = { ...process.env, ...setup.env, HOME: at("home"), TMPDIR: at("home"), PATH: `${programs}:${process.env["PATH"]}` };
      const child = Bun.spawn(commandLine(row, start, "hello", (program) => join(programs, program))!, {
        cwd: at("work"),
        env: environmentFor(source, [...row.env, "PI_OFFLINE"], { ...row.settings?.(start) }),
        stdin: new TextEncoder().encode("hello"),
        stdout: "pipe",
        stderr: "ignore",
        timeout: 100_000,
      });
      const [stdout, exitCode] = await Promise.all([new Response(child.stdout).text(), child.exited]);
      const turn = row.read({ stdout, stderr: "", stdoutDropped: 0, stderrDropped: 0, exitCode });
      expect([harness, turn.reply]).toEqual([harness, resume ? "second" : "first"]);
      sessionId = turn.sessionId ?? sessionId;
    }
    return existsSync(at("work/made.txt"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("the programs that can be asked say themselves that nobody is signed in, and that somebody is", async () => {
  const home = mkdtempSync("/dev/shm/kxm-signin-");
  try {
    const env = { HOME: home, TMPDIR: home, PATH: `${programs}:${process.env["PATH"]}` };
    const states = async (more: Record<string, string> = {}) =>
      Object.fromEntries((await harnessReports({ ...env, ...more })).harnesses.map(({ id, signedIn }) => [id, signedIn]));
    expect(await states()).toMatchObject({ claude: "no", codex: "no", gemini: "unknown" });
    const login = Bun.spawn([join(programs, "codex"), "login", "--with-api-key"], { env, stdin: new TextEncoder().encode("k"), stderr: "ignore" });
    expect(await login.exited).toBe(0);
    expect(await states({ ANTHROPIC_API_KEY: "sk-ant-standin" })).toMatchObject({ claude: "yes", codex: "yes" });
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}, 300_000);

// Real agent programs, installed from the registry in their exact versions, connected with `kxm connect` and driven offline by a stand-in of their
// provider's API. Needs the registry; nothing else leaves this machine. `npm run test:clients`, or with KXM_TEST_CLIENTS=folder to keep the programs.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { registerAgent } from "../../src/client/calls.ts";
import { hubClient } from "../../src/client/hub-client.ts";
import { serveHub } from "../support/served.ts";

const INSTALL_MS = 15 * 60_000;
const TURN_MS = 120_000;
const REPLY = "the-answer-of-the-partner-4711";
const MODEL_KEY = "a-key-that-opens-nothing";

type Program = {
  name: string;
  packages: string[];
  binary: string;
  /** Its settings beside the entry that `kxm connect` writes: file below HOME → text that goes in front. */
  settings?: (model: string) => Record<string, string>;
  env: (model: string) => Record<string, string>;
  args: string[];
};

const PROMPT = "Ask partner, then take the lease.";
const PROGRAMS: Program[] = [
  {
    name: "claude",
    packages: ["@anthropic-ai/claude-code@2.1.332"],
    binary: "claude",
    env: (model) => ({
      ANTHROPIC_BASE_URL: model,
      ANTHROPIC_API_KEY: MODEL_KEY,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      CLAUDE_CODE_MAX_RETRIES: "1",
    }),
    args: ["-p", PROMPT, "--output-format", "json", "--allowedTools", "mcp__kxm", "--model", "claude-sonnet-4-5"],
  },
  {
    name: "codex",
    packages: ["@openai/codex@0.171.0"],
    binary: "codex",
    settings: (model) => ({
      ".codex/config.toml": `model = "gpt-5.1"\nmodel_provider = "standin"\ncheck_for_update_on_startup = false\n[model_providers.standin]\nname = "standin"\nbase_url = "${model}/v1"\nenv_key = "STANDIN_KEY"\nwire_api = "responses"\n[analytics]\nenabled = false\n`,
    }),
    env: () => ({ STANDIN_KEY: MODEL_KEY }),
    args: ["exec", "--json", "-s", "read-only", "--skip-git-repo-check", PROMPT],
  },
  {
    name: "gemini",
    packages: ["@google/gemini-cli@0.61.0"],
    binary: "gemini",
    settings: () => ({
      ".gemini/settings.json": JSON.stringify({
        security: { auth: { selectedType: "gemini-api-key" } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
      }),
    }),
    env: (model) => ({ GEMINI_API_KEY: MODEL_KEY, GOOGLE_GEMINI_BASE_URL: model, GEMINI_CLI_TRUST_WORKSPACE: "true" }),
    args: ["-m", "gemini-2.5-flash", "-o", "json", "-p", PROMPT],
  },
  {
    name: "opencode",
    packages: ["opencode-ai@1.18.33"],
    binary: "opencode",
    settings: (model) => ({
      ".config/opencode/opencode.jsonc": JSON.stringify({
        autoupdate: false,
        share: "disabled",
        model: "standin/standin",
        small_model: "standin/standin",
        enabled_providers: ["standin"],
        provider: {
          standin: {
            npm: "@ai-sdk/openai-compatible",
            name: "Stand-in",
            options: { baseURL: `${model}/v1`, apiKey: MODEL_KEY },
            models: { standin: { name: "standin", limit: { context: 100_000, output: 4_096 } } },
          },
        },
      }),
    }),
    env: () => ({ OPENCODE_DISABLE_MODELS_FETCH: "1" }),
    args: ["run", "--format", "json", PROMPT],
  },
  {
    name: "pi",
    packages: ["@earendil-works/pi-coding-agent@1.6.0", "node@24"],
    binary: "pi",
    settings: (model) => ({
      ".pi/agent/models.json": JSON.stringify({
        providers: { standin: { baseUrl: `${model}/v1`, api: "openai-completions", apiKey: MODEL_KEY, models: [{ id: "standin" }] } },
      }),
    }),
    env: () => ({ PI_OFFLINE: "1", PI_TELEMETRY: "0" }),
    args: ["-p", "--mode", "json", "--model", "standin/standin", PROMPT],
  },
  {
    name: "copilot",
    packages: ["@github/copilot@1.0.102"],
    binary: "copilot",
    env: (model) => ({
      COPILOT_PROVIDER_BASE_URL: `${model}/v1`,
      COPILOT_PROVIDER_API_KEY: MODEL_KEY,
      COPILOT_MODEL: "standin",
      COPILOT_OFFLINE: "true",
    }),
    args: ["-p", PROMPT, "--output-format", "json", "--allow-tool", "kxm"],
  },
  {
    name: "qwen",
    packages: ["@qwen-code/qwen-code@0.24.4"],
    binary: "qwen",
    settings: () => ({
      ".qwen/settings.json": JSON.stringify({
        security: { auth: { selectedType: "openai" } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false },
      }),
    }),
    env: (model) => ({ OPENAI_API_KEY: MODEL_KEY, OPENAI_BASE_URL: `${model}/v1`, OPENAI_MODEL: "standin" }),
    args: ["-o", "stream-json", PROMPT],
  },
];

const kept = process.env["KXM_TEST_CLIENTS"];
const folder = kept ?? mkdtempSync(join(tmpdir(), "kxm-clients-"));
beforeAll(async () => {
  mkdirSync(folder, { recursive: true });
  if (!existsSync(join(folder, "package.json"))) writeFileSync(join(folder, "package.json"), "{}");
  const packages = [...new Set(PROGRAMS.flatMap((program) => program.packages))];
  const child = Bun.spawn(["npm", "install", "--no-audit", "--no-fund", ...packages], { cwd: folder, stdout: "ignore", stderr: "inherit" });
  if ((await child.exited) !== 0) throw new Error("the programs could not be installed from the registry");
}, INSTALL_MS);
afterAll(() => {
  if (kept === undefined) rmSync(folder, { recursive: true, force: true });
});

for (const program of PROGRAMS)
  for (const way of ["stdio", "http"] as const)
    test(
      `${program.name} over ${way}: asks and reads the answer, takes a free lease and is refused a held one`,
      async () => {
        await using hub = await serveHub();
        const project = "shop";
        const registered = await registerAgent({ url: hub.url }, { name: "partner", project });
        const partner = hubClient({ url: hub.url }, { id: registered.agent.id, key: registered.agentKey });
        await held(hub.url, registered, "branch:main");
        using model = await standIn([
          { tool: "kxm_fanout", args: { targets: ["partner"], content: `a question of ${program.name}`, timeoutMs: 60_000 } },
          { tool: "kxm_lease_acquire", args: { name: "branch:main" } },
          { tool: "kxm_lease_acquire", args: { name: "docs" } },
          { text: "All done." },
        ]);
        const home = join(model.folder, "home");
        const work = join(home, "work");
        mkdirSync(join(home, "tmp"), { recursive: true });
        mkdirSync(work);
        for (const [file, text] of Object.entries(program.settings?.(model.url) ?? {})) {
          mkdirSync(dirname(join(home, file)), { recursive: true });
          writeFileSync(join(home, file), text);
        }
        const connect = ["connect", program.name, "--as", `${program.name}-agent`, "--user", "--trust", "--project", project, "--hub", hub.url];
        const main = join(import.meta.dir, "../../src/main.ts"); // its own process: the entry names the program that wrote it
        const connected = Bun.spawnSync([process.execPath, "--no-env-file", main, ...connect, ...(way === "http" ? ["--http"] : [])], {
          cwd: work,
          env: { HOME: home, PATH: process.env.PATH ?? "" },
        });
        expect([connected.exitCode, connected.exitCode === 0 ? "" : connected.stderr.toString()]).toEqual([0, ""]);

        const answered = answer(partner);
        const turn = await run(program, home, work, model.url);
        expect(`${program.name} ended with ${turn.code}: ${turn.said.slice(-2_000)}`).toContain(" ended with 0:");
        expect((await answered).content).toBe(`a question of ${program.name}`);
        const heard = model.heard();
        expect({ reply: heard.includes(REPLY), refusal: heard.includes("lease_held") }).toEqual({ reply: true, refusal: true });
        const { leases } = (await hub.kxm(["lease", "list", "--json"], { env: { KXM_PROJECT: project } })).json;
        const holders = Object.fromEntries(leases.map((lease: any) => [lease.name, lease.holderAgentName]));
        expect(holders).toEqual({ "branch:main": "partner", docs: `${program.name}-agent` });
      },
      TURN_MS + 30_000,
    );

/** Takes a lease as an agent. */
async function held(url: string, { agent, agentKey }: { agent: { id: string }; agentKey: string }, resource: string): Promise<void> {
  const headers = { "content-type": "application/json", "x-kxm-agent-id": agent.id, "x-kxm-agent-key": agentKey };
  const response = await fetch(`${url}/v1/leases/${encodeURIComponent(resource)}/acquire`, {
    method: "POST",
    headers,
    body: JSON.stringify({ ttlMs: 600_000 }),
  });
  expect(response.status).toBe(200);
}

/** Answers the first request that comes in. */
async function answer(partner: ReturnType<typeof hubClient>) {
  for await (const event of partner.events()) {
    if (event.event !== "message") continue;
    await partner.reply(event.message.id, REPLY);
    return event.message;
  }
  throw new Error("the stream ended without a request");
}

async function run(program: Program, home: string, work: string, model: string): Promise<{ code: number | null; said: string }> {
  const bin = join(folder, "node_modules/.bin");
  const node = join(folder, "node_modules/node/bin"); // Pi needs a newer one than others run on
  const env = { HOME: home, PATH: `${node}:${bin}:/usr/local/bin:/usr/bin:/bin`, LANG: "C.UTF-8", TERM: "dumb", TMPDIR: join(home, "tmp") };
  const child = Bun.spawn([join(bin, program.binary), ...program.args], {
    cwd: work,
    env: { ...env, ...program.env(model) },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: TURN_MS,
  });
  const [out, error] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { code: child.exitCode, said: `${out}\n${error}` };
}

/** Starts the stand-in of the model providers. `heard` is everything that programs sent to it. */
async function standIn(script: object[]) {
  const place = mkdtempSync(join(tmpdir(), "kxm-model-"));
  const bodies = join(place, "bodies");
  mkdirSync(bodies);
  const log = join(place, "model.jsonl");
  appendFileSync(log, "");
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "model-stand-in.ts")], {
    env: { PATH: process.env.PATH ?? "", PORT: "0", LOG: log, BODIES: bodies, SCRIPT: JSON.stringify(script) },
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  const { url } = JSON.parse(new TextDecoder().decode(value)) as { url: string };
  return {
    url,
    folder: place,
    heard: () =>
      readdirSync(bodies)
        .map((name) => readFileSync(join(bodies, name), "utf8"))
        .join("\n"),
    [Symbol.dispose]: () => {
      child.kill();
      rmSync(place, { recursive: true, force: true });
    },
  };
}

// Writing the hub into other programs' configuration: each program's file, nothing else of it changed, taken out again without a trace.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { editToml } from "../../src/cli/config-edit.ts";
import { PROGRAMS } from "../../src/cli/connect-programs.ts";
import { LESSON, withBlock } from "../../src/cli/skill.ts";
import { temporaryFolder } from "../support/folders.ts";
import { runHere, serveHub } from "../support/served.ts";

let base: ReturnType<typeof temporaryFolder>;
let folder: string;
beforeEach(() => {
  base = temporaryFolder();
  folder = join(base.path, "shop");
  for (const name of ["shop", "home", "bin"]) mkdirSync(join(base.path, name));
});
afterEach(() => base[Symbol.dispose]());
const env = () => ({ HOME: join(base.path, "home"), PATH: join(base.path, "bin"), KXM_URL: "http://127.0.0.1:7331", KXM_PROJECT: "shop" });
const kxm = (...args: string[]) => runHere(args, { folder, env: env() });
const at = (path: string) => join(path.startsWith("~") ? join(base.path, "home") : folder, path.replace(/^~\//, ""));
const put = (path: string, text: string) => {
  mkdirSync(dirname(at(path)), { recursive: true });
  writeFileSync(at(path), text);
};
const get = (path: string) => readFileSync(at(path), "utf8");

describe("each program's own file:", () => {
  test.each([
    ["claude", ".mcp.json", (config: any) => config.mcpServers.kxm.args.at(-1) === "mcp" && config.mcpServers.kxm.type === "stdio"],
    ["gemini", ".gemini/settings.json", (config: any) => config.mcpServers.kxm.env.KXM_AGENT_NAME === "gemini"],
    [
      "opencode",
      "opencode.json",
      (config: any) =>
        config.mcp.kxm.type === "local" && config.mcp.kxm.command.at(-1) === "mcp" && config.mcp.kxm.environment.KXM_PROJECT === "shop",
    ],
    ["pi", ".pi/mcp.json", (config: any) => config.mcpServers.kxm.exposure === "direct"],
    ["cursor", ".cursor/mcp.json", (config: any) => config.mcpServers.kxm.env.KXM_URL === "http://127.0.0.1:7331"],
    ["vscode", ".vscode/mcp.json", (config: any) => config.servers.kxm.type === "stdio"],
    ["copilot", "~/.copilot/mcp-config.json", (config: any) => config.mcpServers.kxm.type === "local" && config.mcpServers.kxm.tools[0] === "*"],
    ["qwen", ".qwen/settings.json", (config: any) => config.mcpServers.kxm.command.length > 0],
    ["zed", ".zed/settings.json", (config: any) => config.context_servers.kxm.source === "custom"],
  ])("%s in %s", async (name, path, holds) => {
    expect((await kxm("connect", name)).code).toBe(0);
    expect(holds(JSON.parse(get(path)))).toBe(true);
    const first = get(path);
    expect((await kxm("connect", name)).stdout).toContain("was connected in");
    expect(get(path)).toBe(first);
    expect((await kxm("connect", name, "--remove", "--json")).json).toMatchObject({ changed: true, connected: false });
    expect(existsSync(at(path))).toBe(false); // it was made for the entry
    expect(path.includes("/") ? existsSync(dirname(at(path))) : false).toBe(false);
    expect((await kxm("connect", name, "--remove", "--json")).json.changed).toBe(false);
  });

  test("every program has an address form without a token, and a file", async () => {
    for (const { name } of PROGRAMS) {
      const printed = await kxm("connect", name, "--http", "--as", "rév iewer", "--print", "--json");
      expect(JSON.stringify(printed.json.entry)).toContain("http://127.0.0.1:7331/mcp");
      expect(JSON.stringify(printed.json.entry)).toContain("r%C3%A9v%20iewer");
      expect(existsSync(printed.json.path)).toBe(false);
    }
  });

  test("--user writes for all folders, --trust where a program can be told so", async () => {
    await kxm("connect", "gemini", "--user", "--trust");
    expect(JSON.parse(get("~/.gemini/settings.json")).mcpServers.kxm.trust).toBe(true);
    await kxm("connect", "codex", "--trust");
    expect(get("~/.codex/config.toml")).toContain('default_tools_approval_mode = "approve"');
  });
});

test("comments, other entries and rights of a JSON file stay, and its first version is kept", async () => {
  const before = `{\n  // my servers\n  "mcpServers": {\n    "other": { "command": "x" }, /* mine */\n  },\n\n  "theme":   "dark",\n}\n`;
  put(".gemini/settings.json", before);
  chmodSync(at(".gemini/settings.json"), 0o640);
  await kxm("connect", "gemini");
  const after = get(".gemini/settings.json");
  for (const kept of ["// my servers", '"command": "x"', "/* mine */", '"theme":   "dark"']) expect(after).toContain(kept);
  expect(statSync(at(".gemini/settings.json")).mode & 0o777).toBe(0o640);
  expect(get(".gemini/settings.json.before-kxm")).toBe(before);
  await kxm("connect", "gemini", "--as", "other-name");
  expect(get(".gemini/settings.json.before-kxm")).toBe(before);
  expect(get(".gemini/settings.json")).toContain("other-name");
});

test("taking it out leaves a file that was there before as it was, and never removes somebody's", async () => {
  const empty = '{\n  "mcpServers": {}\n}\n';
  put(".mcp.json", empty);
  await kxm("connect", "claude");
  await kxm("connect", "claude", "--remove");
  expect([get(".mcp.json"), existsSync(at(".mcp.json.before-kxm"))]).toEqual([empty, false]);
  rmSync(at(".mcp.json"));
  await kxm("connect", "claude", "--project", "one");
  await kxm("connect", "claude", "--project", "two"); // changes our own entry: nothing of before is there to keep
  await kxm("connect", "claude", "--remove");
  expect([existsSync(at(".mcp.json")), existsSync(at(".mcp.json.before-kxm"))]).toEqual([false, false]);
  expect((await kxm("connect", "--remove")).code).toBe(2);
  await kxm("connect", "gemini");
  put(".gemini/settings.json", get(".gemini/settings.json").replace("{", "{ // mine"));
  await kxm("connect", "gemini", "--remove");
  expect(get(".gemini/settings.json")).toContain("// mine");
  await kxm("connect", "cursor");
  put(".cursor/rules.md", "mine");
  await kxm("connect", "cursor", "--remove");
  expect([existsSync(at(".cursor/mcp.json")), get(".cursor/rules.md")]).toEqual([false, "mine"]);
  await kxm("connect", "codex");
  await kxm("connect", "codex", "--remove");
  expect(existsSync(at("~/.codex"))).toBe(false);
});

test("it says when no hub answers where the entry leads, and writes it all the same", async () => {
  await using hub = await serveHub();
  const connect = (more: Record<string, string>, ...args: string[]) =>
    runHere(["connect", "claude", ...args], { folder, env: { HOME: join(base.path, "home"), PATH: join(base.path, "bin"), ...more } });
  const urlOf = () => JSON.parse(get(".mcp.json")).mcpServers.kxm.env.KXM_URL;
  const { port } = new URL(hub.url);
  const there = await connect({ KXM_URL: hub.url });
  expect([there.code, there.stderr.includes("No hub answers"), urlOf()]).toEqual([0, false, hub.url]);
  const byPort = await connect({ KXM_PORT: port }, "--json");
  expect([byPort.json.hub, urlOf()]).toEqual([{ url: hub.url, answers: true }, hub.url]);
  for (const odd of ["0", "99999", "x", ""]) {
    await connect({ KXM_PORT: odd });
    expect(urlOf()).toBe("http://127.0.0.1:7331");
  }
  await hub.serving.stop();
  const away = await connect({ KXM_PORT: port });
  expect([away.code, urlOf()]).toEqual([0, `http://127.0.0.1:${port}`]);
  expect(away.stderr).toContain(`No hub answers at http://127.0.0.1:${port} yet`);
  expect((await connect({ KXM_PORT: port }, "--remove")).stderr).not.toContain("No hub answers");
});

test("a TOML file keeps everything but the one table and its sub-tables", async () => {
  const before = `model = "gpt" # mine\n\n[mcp_servers.other]\ncommand = "x"\n\n[mcp_servers.kxm]\ncommand = "old"\n\n[mcp_servers.kxm.tools.kxm_send]\napproval_mode = "approve"\n\n[analytics]\nenabled = false\n`;
  put("~/.codex/config.toml", before);
  await kxm("connect", "codex");
  const after = get("~/.codex/config.toml");
  expect(after).toStartWith('model = "gpt" # mine\n\n[mcp_servers.other]\ncommand = "x"\n\n[mcp_servers.kxm]\ncommand = ');
  expect(after).toEndWith("\n\n[analytics]\nenabled = false\n");
  expect(after).not.toContain("old");
  expect(Bun.TOML.parse(after)).toMatchObject({ mcp_servers: { kxm: { env: { KXM_PROJECT: "shop", KXM_AGENT_NAME: "codex" } } } });
  expect((await kxm("connect", "codex")).stdout).toContain("was connected");
  await kxm("connect", "codex", "--remove");
  expect(get("~/.codex/config.toml")).not.toContain("kxm");
  expect(Bun.TOML.parse(get("~/.codex/config.toml"))).toEqual({
    model: "gpt",
    mcp_servers: { other: { command: "x" } },
    analytics: { enabled: false },
  });
  expect(editToml("", ["a", "b"], { c: 'quote " and \\ and \n' })).toBe('[a.b]\nc = "quote \\" and \\\\ and \\n"\n');
});

test("a file that cannot be read as JSON is left alone and the entry can be shown", async () => {
  put(".mcp.json", "{ broken");
  const refused = await kxm("connect", "claude");
  expect([refused.code, refused.stderr.includes("cannot be changed"), refused.stderr.includes("--print")]).toEqual([1, true, true]);
  expect(get(".mcp.json")).toBe("{ broken");
  expect((await kxm("connect", "claude", "--print")).stdout).toContain('"mcpServers"');
});

test("no token ever gets into a file", async () => {
  const { stdout, stderr } = await runHere(["connect", "claude"], { folder, env: { ...env(), KXM_TOKEN: "kxp_secret-of-the-project" } });
  expect(get(".mcp.json") + stdout).not.toContain("kxp_secret");
  expect(stderr).toContain("set KXM_TOKEN");
});

test("alone it says what is installed and connected; an unknown program suggests the nearest", async () => {
  writeFileSync(join(base.path, "bin", "codex"), "");
  await kxm("connect", "codex");
  const { json } = await kxm("connect", "--json");
  expect(json.programs.find(({ program }: any) => program === "codex")).toMatchObject({ installed: true, connected: ["user"] });
  expect(json.programs.find(({ program }: any) => program === "zed")).toMatchObject({ installed: false, connected: [] });
  const unknown = await kxm("connect", "claud");
  expect([unknown.code, unknown.stderr.includes("did you mean claude")]).toEqual([2, true]);
});

describe("kxm skill install", () => {
  test("adds a block between markers, replaces only it, and takes it out again", async () => {
    put("AGENTS.md", "# House rules\n\nBe kind.\n");
    await kxm("skill", "install");
    expect(get("AGENTS.md")).toBe(`# House rules\n\nBe kind.\n\n<!-- kxm:begin -->\n${LESSON}<!-- kxm:end -->\n`);
    put("AGENTS.md", `${get("AGENTS.md").replace("kxm_inbox", "changed")}After.\n`);
    await kxm("skill", "install");
    expect(get("AGENTS.md")).toContain("kxm_inbox");
    expect(get("AGENTS.md")).toEndWith("<!-- kxm:end -->\nAfter.\n");
    expect((await kxm("skill", "install")).stdout).toContain("was already in");
    await kxm("skill", "install", "--remove");
    expect(get("AGENTS.md")).toBe("# House rules\n\nBe kind.\n\n\nAfter.\n");
    expect(existsSync(at(".claude/skills"))).toBe(false);
    await kxm("skill", "install");
    expect(get(".claude/skills/kxm/SKILL.md")).toStartWith("---\nname: kxm\n");
    put(".claude/skills/kxm/SKILL.md", "mine now");
    await kxm("skill", "install", "--remove");
    expect(get(".claude/skills/kxm/SKILL.md")).toBe("mine now");
  });

  test("works in a repository without the file, and leaves none", async () => {
    await kxm("skill", "install");
    await kxm("skill", "install", "--remove");
    expect(existsSync(at("AGENTS.md"))).toBe(false);
    expect(withBlock("", LESSON)).toStartWith("<!-- kxm:begin -->");
    expect(withBlock("text", undefined)).toBe("text");
  });
});

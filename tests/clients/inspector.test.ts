// The official MCP inspector's command line against a hub that listens, over both transports. Installed from the registry for this test alone.
import { beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { TOOLS } from "../../src/mcp/catalogue.ts";
import { AGENT_MAIL } from "../../src/mcp/tools/agent-mail.ts";
import { type Served, serveHub } from "../support/served.ts";
import { installed } from "./installed.ts";

const INSPECTOR = "@modelcontextprotocol/inspector@2.12.0";
const MAIN = join(import.meta.dir, "../../src/main.ts");
let bin: string;
beforeAll(async () => {
  bin = await installed([INSPECTOR], "inspector");
}, 10 * 60_000);

/** Where the inspector is to find the hub. */
const WAYS: Record<string, (hub: Served) => string[]> = {
  http: ({ url }) => [`${url}/mcp`, "--transport", "http", "--header", "x-kxm-agent-name: inspector", "x-kxm-project: shop"],
  stdio: ({ url }) => [
    ...["URL=".concat(url), "PROJECT=shop", "AGENT_NAME=inspector"].flatMap((pair) => ["-e", `KXM_${pair}`]),
    process.execPath,
    MAIN,
    "mcp",
  ],
};

async function inspect(hub: Served, way: string, ...args: string[]) {
  const env = { PATH: `${join(bin, "../node/bin")}:${bin}:${process.env["PATH"]}`, HOME: hub.folder, TERM: "dumb" };
  const command = [join(bin, "mcp-inspector"), "--cli", ...WAYS[way]!(hub), ...args];
  const child = Bun.spawn(command, { cwd: hub.folder, env, stdin: "ignore", stdout: "pipe", stderr: "pipe", timeout: 60_000 });
  const [out, error, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { code, error, json: out.trim() === "" ? undefined : JSON.parse(out) };
}

describe.each(Object.keys(WAYS))("over %s:", (way) => {
  test("it lists every tool and finds nothing to complain about in their schemas", async () => {
    await using hub = await serveHub({ KXM_MCP_ALIASES: "agent-mail" });
    const { code, error, json } = await inspect(hub, way, "--method", "tools/list", "--strict");
    expect([code, error.split("\n").filter((line) => /error|warning/i.test(line))]).toEqual([0, []]);
    expect(json.tools.map(({ name }: { name: string }) => name)).toEqual([...TOOLS, ...AGENT_MAIL].map(({ name }) => name));
  }, 120_000);

  test("it calls tools: an answer, and a refusal that a model can read", async () => {
    await using hub = await serveHub();
    const call = (name: string, ...args: string[]) =>
      inspect(hub, way, "--method", "tools/call", "--tool-name", name, ...args.flatMap((one) => ["--tool-arg", one]));
    const granted = await call("kxm_lease_acquire", "name=deploy", "ttlMs=60000");
    expect(JSON.parse(granted.json.content[0].text)).toMatchObject({ name: "deploy", fencingToken: 1 });
    const refused = await call("kxm_send", "target=nobody", "content=hello");
    expect([refused.json.isError, JSON.parse(refused.json.content[0].text).code]).toEqual([true, "target_not_found"]);
  }, 120_000);
});

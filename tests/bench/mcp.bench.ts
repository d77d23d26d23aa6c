// How soon the compiled `kxm mcp` answers the client that started it, and how many tool calls a second pass through it and through /mcp.
// Goal: ready within 60 ms of its start. The ceiling beside it is the same binary printing its version.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const KXM = join(import.meta.dir, "../../dist/kxm");
const ROUNDS = 25;
const CALLS = 400;
const GOAL_MS = 60;

if (!existsSync(KXM)) {
  console.log("dist/kxm is not built: run `npm run build` first");
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), "kxm-bench-"));
const env = { HOME: folder, PATH: process.env["PATH"]!, KXM_PORT: "0", KXM_PROJECT: "shop", KXM_RATE_LIMIT_MAX: "1000000" };
const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "bench", version: "1" } };
const call = (id: number, method: string, params: object) => `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;
const median = (times: number[]) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!;

/** A running `kxm mcp` whose answers are awaited by their number. */
function start(url: string, name: string) {
  const child = Bun.spawn([KXM, "mcp"], {
    cwd: folder,
    env: { ...env, KXM_URL: url, KXM_AGENT_NAME: name },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "ignore",
  });
  const waiting = new Map<number, () => void>();
  void (async () => {
    let text = "";
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream() as any) as any as AsyncIterable<string>) {
      const lines = (text += chunk).split("\n");
      text = lines.pop()!;
      for (const line of lines) waiting.get(JSON.parse(line).id)?.();
    }
  })();
  const ask = (id: number, method: string, params: object = {}) => {
    const answered = new Promise<void>((resolve) => waiting.set(id, resolve));
    child.stdin.write(call(id, method, params));
    void child.stdin.flush();
    return answered;
  };
  return {
    ask,
    end: async () => {
      await child.stdin.end();
      await child.exited;
    },
  };
}

const hub = Bun.spawn([KXM, "hub", "--quiet"], { cwd: folder, env, stdout: "pipe", stderr: "inherit" });
try {
  const { value } = await hub.stdout.getReader().read();
  const url = /http:\S+/.exec(new TextDecoder().decode(value))![0];
  const versions: number[] = [];
  const starts: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = performance.now();
    Bun.spawnSync([KXM, "--version"]);
    versions.push(performance.now() - before);
    const began = performance.now();
    const mcp = start(url, `bench-${round}`);
    await mcp.ask(1, "initialize", hello);
    starts.push(performance.now() - began);
    await mcp.end();
  }
  const show = (name: string, times: number[], goal = "") =>
    console.log(
      `${name.padEnd(48)} median ${median(times).toFixed(0).padStart(4)} ms   best ${Math.min(...times)
        .toFixed(0)
        .padStart(4)} ms   ${goal}`,
    );
  show("kxm --version, start to end (the ceiling)", versions);
  show("kxm mcp, start to the answer of initialize", starts, `goal ${GOAL_MS} ms`);

  const mcp = start(url, "busy");
  await mcp.ask(1, "initialize", hello);
  const rate = async (name: string, one: (n: number) => Promise<unknown>) => {
    const began = performance.now();
    await Promise.all(Array.from({ length: CALLS }, (_, n) => one(n)));
    console.log(`${name.padEnd(48)} ${(CALLS / ((performance.now() - began) / 1_000)).toFixed(0)} calls a second, ${CALLS} at once`);
  };
  await rate("kxm_list through kxm mcp", (n) => mcp.ask(10 + n, "tools/call", { name: "kxm_list", arguments: {} }));
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "x-kxm-agent-name": "direct",
    "x-kxm-project": "shop",
  };
  await rate("kxm_list at /mcp", async (n) => {
    const answer = await fetch(`${url}/mcp`, { method: "POST", headers, body: call(n, "tools/call", { name: "kxm_list", arguments: {} }) });
    await answer.text();
  });
  await mcp.end();
} finally {
  hub.kill();
  await hub.exited;
  rmSync(folder, { recursive: true, force: true });
}

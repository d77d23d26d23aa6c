// What messages.bench.ts measures over HTTP, as a process of its own: the hub with agents, or the ceiling: a bare Elysia route and one prepared insert
// through the same write lane with the same durability. Prints { port, agents } and runs until its input ends.
import { Elysia } from "elysia";
import { createApi } from "../../src/api/server.ts";
import { openEngine } from "../../src/db/open.ts";
import { hostsOf } from "../../src/http/admission.ts";
import { register } from "../../src/hub/agents.ts";
import { openHub } from "../../src/hub/hub.ts";
import { silent } from "../../src/hub/log.ts";
import { defaultSettings } from "../../src/hub/settings.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { newId, newSecret } from "../../src/protocol/ids.ts";

const [mode, path] = process.argv.slice(2) as ["hub" | "ceiling", string];
const AGENTS = 16;
const engine = await openEngine({ path, clock: Date.now, newId });
const agents: { id: string; key: string; name: string }[] = [];
let fetch: (request: Request) => Response | Promise<Response>;
const hosts = new Set<string>();
if (mode === "hub") {
  const settings = { ...defaultSettings(), rateLimit: undefined, staleMs: 3_600_000 };
  const hub = openHub({ engine, clock: Date.now, settings, log: silent, stopping: new AbortController().signal });
  for (let n = 0; n < AGENTS; n++) {
    const key = newSecret("kxa");
    const { agent } = await engine.write("p", (tx) => register(tx, hub, { name: `agent-${n}`, project: "p" }, sha256(key)));
    agents.push({ id: agent.id, key, name: agent.name });
  }
  const api = createApi(hub, { newRequestId: () => newId("req"), hosts });
  fetch = (request) => api.fetch(request);
} else {
  const bare = new Elysia().post("/insert", async ({ body }) => {
    const key = newId("msg");
    await engine.write("p", (tx) => tx.meta.put(key, JSON.stringify(body)));
    return { key };
  });
  fetch = (request) => bare.fetch(request);
}
const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch });
for (const host of hostsOf(server.port!, [])) hosts.add(host);
process.stdout.write(`${JSON.stringify({ port: server.port, agents })}\n`);
for await (const _ of Bun.stdin.stream()) {
  // the bench closes it
}
const { user, system } = process.cpuUsage();
process.stderr.write(process.env["BENCH_CPU"] ? `cpu ${user + system} us\n` : "");
await server.stop(true);
await engine.close();
process.exit(0);

// What messages.bench.ts measures over HTTP, in a process of its own: a hub with agents, or the ceiling, a bare Elysia route with one prepared insert
// through the same write lane. Tells its port and agents, then its processor time and memory whenever it is asked.
import { Elysia } from "elysia";
import { createApi } from "../../src/api/server.ts";
import { hostsOf } from "../../src/http/admission.ts";
import { register } from "../../src/hub/agents.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { newId, newSecret } from "../../src/protocol/ids.ts";
import { cpuOfThis, openBenchHub } from "./measure.ts";

const PROJECT = "bench";
const [kind, count] = [process.argv[2], Number(process.argv[3] ?? 0)];
const { hub, engine, close } = await openBenchHub();
const agents = await Promise.all(
  Array.from({ length: count }, async (_, n) => {
    const [name, key] = [`agent-${n}`, newSecret("kxa")];
    const { agent } = await engine.write(PROJECT, (tx) => register(tx, hub, { name, project: PROJECT }, sha256(key)));
    return { id: agent.id, name, key };
  }),
);
const hosts = new Set<string>();
const app = kind === "ceiling" ? ceiling() : createApi(hub, { newRequestId: () => newId("req"), hosts });
app.listen({ port: 0, hostname: "127.0.0.1" });
const port = app.server!.port!;
for (const host of hostsOf(port, [])) hosts.add(host);
process.on("message", (question) => {
  if (question === "memory") Bun.gc(true); // not when processor time is asked: it would count
  process.send!({ cpu: cpuOfThis(), rss: process.memoryUsage.rss(), streams: hub.streams.size });
});
process.on("disconnect", async () => {
  await app.stop(true);
  await close();
  process.exit(0);
});
process.send!({ port, agents });

function ceiling() {
  return new Elysia().post("/insert", async ({ body }) => {
    const key = newId("msg");
    await engine.write(PROJECT, (tx) => tx.meta.put(key, JSON.stringify(body)));
    return { key };
  });
}

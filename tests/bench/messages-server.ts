// What messages.bench.ts measures over HTTP, in a process of its own: a hub with agents, or the ceiling, a bare Elysia route that stores the same row by one
// prepared insert through the same write lane, with no index but the primary key. Tells its port and agents, then its processor time and memory when asked.
import { Database } from "bun:sqlite";
import { type Static, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { createApi } from "../../src/api/server.ts";
import { hostsOf } from "../../src/http/admission.ts";
import { register } from "../../src/hub/agents.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { newId, newSecret } from "../../src/protocol/ids.ts";
import { messageRow } from "../support/rows.ts";
import { cpuOfThis, openBenchHub } from "./measure.ts";

const PROJECT = "bench";
const [kind, count] = [process.argv[2], Number(process.argv[3] ?? 0)];
const { hub, engine, close } = await openBenchHub(kind === "ceiling" ? dropIndexes : undefined);
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
  const content = Type.String({ maxLength: 32_000 });
  const body = Type.Object({ target: Type.String(), content, idempotencyKey: Type.String() });
  let seq = 0;
  const store = async ({ body: { target, content: text, idempotencyKey } }: { body: Static<typeof body> }) => {
    const row = messageRow(newId("msg"), ++seq, { project: PROJECT, recipientId: target, content: text, idempotencyKey });
    await engine.write(PROJECT, (tx) => tx.messages.insert(row));
    return { message: row };
  };
  return new Elysia().post("/insert", store, { body });
}

/** What an insert costs without them is the point of a ceiling. */
function dropIndexes(path: string) {
  using database = new Database(path, { readwrite: true, create: false });
  const names = database.query("select name from sqlite_schema where type = 'index' and tbl_name = 'messages' and sql is not null").values();
  for (const [name] of names) database.exec(`drop index ${name}`);
}

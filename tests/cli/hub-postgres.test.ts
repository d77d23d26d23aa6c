// Two hub processes on one PostgreSQL database: what one does the other shows, and killing either loses nothing.
import { expect, test } from "bun:test";
import { ask, open } from "../../src/client/http.ts";
import { readFrames } from "../../src/client/sse.ts";
import { newDatabase, POSTGRES_SERVER } from "../support/engines.ts";
import { openPlace } from "../support/program.ts";

async function register(url: string, name: string) {
  const { agent, agentKey } = (await ask({ url }, "POST", "/v1/agents/register", { body: { name, project: "p" } })).body;
  return { id: agent.id as string, headers: { "x-kxm-agent-id": agent.id as string, "x-kxm-agent-key": agentKey as string } };
}

test.skipIf(!POSTGRES_SERVER)(
  "a message sent through one hub reaches a live stream at the other, leases and sequences are one, and a killed hub takes nothing along",
  async () => {
    const { url: database, drop } = await newDatabase();
    await using place = await openPlace();
    await using second = await openPlace();
    try {
      const env = { KXM_DATABASE_URL: database };
      const [one, two] = [await place.startHub({ env }), await second.startHub({ env })];
      const [ann, bob] = [await register(one.url, "ann"), await register(two.url, "bob")];
      const abort = new AbortController();
      const stream = await open({ url: two.url }, "GET", `/v1/events?agentId=${bob.id}`, { headers: bob.headers, signal: abort.signal });
      const frames = readFrames(stream);
      expect((await frames.next()).value!.event).toBe("ready");
      const sentAt = performance.now();
      const { message } = (await ask({ url: one.url }, "POST", "/v1/messages", { headers: ann.headers, body: { target: "bob", content: "across" } }))
        .body;
      let frame = (await frames.next()).value!;
      while (frame.event !== "message") frame = (await frames.next()).value!;
      expect(JSON.parse(frame.data).message.id).toBe(message.id);
      expect(performance.now() - sentAt).toBeLessThan(2_000); // 500 ms on a machine of its own
      abort.abort();

      const both = await Promise.allSettled([
        ask({ url: one.url }, "POST", "/v1/leases/x/acquire", { headers: ann.headers, body: {} }),
        ask({ url: two.url }, "POST", "/v1/leases/x/acquire", { headers: bob.headers, body: {} }),
      ]);
      expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);

      const ids: string[] = [];
      const seqs: number[] = [];
      await Promise.all(
        [one, two, one, two].map(async ({ url }, lane) => {
          for (let n = 0; n < 10; n++) {
            const sent = (await ask({ url }, "POST", "/v1/messages", { headers: ann.headers, body: { target: "bob", content: `${lane} ${n}` } })).body
              .message;
            ids.push(sent.id);
            seqs.push(sent.seq);
          }
        }),
      );
      expect(seqs.sort((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, n) => n + 2)); // gapless, each once, over both hubs

      await one.end("SIGKILL");
      for (const id of ids) expect((await ask({ url: two.url }, "GET", `/v1/messages/${id}`, { headers: bob.headers })).status).toBe(200);
      expect((await ask({ url: two.url }, "GET", "/v1/agents", { headers: ann.headers })).body.agents).toHaveLength(2); // presence is the database's, not the process's
      expect((await second.run(["verify"], { env })).code).toBe(0);
      expect((await second.run(["doctor"], { env })).stdout).toContain("PostgreSQL");
      expect((await two.end()).code).toBe(0);
    } finally {
      await drop();
    }
  },
  60_000,
);

test("a database that is not there is said in one sentence, quickly, without a password", async () => {
  await using place = await openPlace();
  const ended = await place.run(["hub"], { env: { KXM_DATABASE_URL: "postgres://me:secret-word@127.0.0.1:1/kxm" } });
  expect(ended.code).toBe(1);
  expect(ended.stderr).toContain("database_unreachable");
  expect(ended.stderr).not.toContain("secret-word");
  expect(ended.stderr).not.toMatch(/\n\s+at /);
});

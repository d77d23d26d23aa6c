// The official SDK's own client against a hub that listens, over both transports: HTTP at /mcp, and `kxm mcp` on standard input and output.
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { RequestOptions } from "@modelcontextprotocol/sdk/shared/protocol.js";
import { TOOLS } from "../../src/mcp/catalogue.ts";
import { until } from "../support/fleet.ts";
import { type Served, serveHub } from "../support/served.ts";

const MAIN = join(import.meta.dir, "../../src/main.ts");
const LIMIT_MS = 30_000;

/** Transports by name: how an agent reaches a hub. */
const WAYS = {
  http: ({ url }: Served, name: string) =>
    new StreamableHTTPClientTransport(new URL("/mcp", url), { requestInit: { headers: { "x-kxm-agent-name": name, "x-kxm-project": "shop" } } }),
  stdio: ({ url, folder }: Served, name: string) =>
    new StdioClientTransport({
      command: process.execPath,
      args: ["--no-env-file", MAIN, "mcp"],
      env: { PATH: process.env["PATH"]!, HOME: folder, KXM_URL: url, KXM_PROJECT: "shop", KXM_AGENT_NAME: name },
      stderr: "ignore",
    }),
};

async function connect(hub: Served, way: keyof typeof WAYS, name: string) {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(WAYS[way](hub, name));
  return {
    client,
    call: async (tool: string, input: Record<string, unknown> = {}, options?: RequestOptions) => {
      const answer = (await client.callTool({ name: tool, arguments: input }, undefined, options)) as { content: { text: string }[] };
      return JSON.parse(answer.content[0]!.text);
    },
  };
}
const waitersOf = async (hub: Served, name: string): Promise<number> => {
  const { waiting } = (await hub.kxm(["lease", "list", name, "--json"], { env: { KXM_PROJECT: "shop" } })).json;
  return waiting.length;
};

describe.each(["http", "stdio"] as const)("over %s:", (way) => {
  test(
    "two agents list the tools, ask, wait, answer, and one is refused a lease",
    async () => {
      await using hub = await serveHub();
      const [ann, bob] = [await connect(hub, way, "ann"), await connect(hub, way, "bob")];
      expect((await ann.client.listTools()).tools.map(({ name }) => name)).toEqual(TOOLS.map(({ name }) => name));
      await bob.call("kxm_inbox");
      const { messageId } = await ann.call("kxm_send", { target: "bob", content: "Is main green?" });
      const waiting = ann.call("kxm_await", { messageId });
      expect((await bob.call("kxm_inbox")).open).toMatchObject([{ messageId, from: "ann" }]);
      await bob.call("kxm_reply", { messageId, content: "yes" });
      expect(await waiting).toMatchObject({ status: "replied", reply: "yes" });
      await ann.call("kxm_lease_acquire", { name: "branch:main" });
      expect(await bob.call("kxm_lease_acquire", { name: "branch:main" })).toMatchObject({ code: "lease_held", lease: { holderAgentName: "ann" } });
      await Promise.all([ann.client.close(), bob.client.close()]);
    },
    LIMIT_MS,
  );

  test(
    "200 calls at once are all answered, each with its own answer",
    async () => {
      await using hub = await serveHub();
      const ann = await connect(hub, way, "ann");
      const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => ann.call("kxm_lease_acquire", { name: `r${n}` })));
      expect(answers.map(({ name, fencingToken }) => `${name} ${fencingToken}`)).toEqual(Array.from({ length: 200 }, (_, n) => `r${n} 1`));
      await ann.client.close();
    },
    LIMIT_MS,
  );

  test(
    "a cancelled call ends at once for the caller, what comes after works, and a late cancellation undoes nothing",
    async () => {
      await using hub = await serveHub();
      const [ann, bob] = [await connect(hub, way, "ann"), await connect(hub, way, "bob")];
      await ann.call("kxm_lease_acquire", { name: "deploy" });
      const stop = new AbortController();
      const waiting = bob.call("kxm_lease_acquire", { name: "deploy", waitMs: 30_000 }, { signal: stop.signal });
      await until(async () => (await waitersOf(hub, "deploy")) === 1, "the line", LIMIT_MS);
      stop.abort("not needed any more");
      await expect(waiting).rejects.toThrow("not needed any more");
      // A bridge hangs up for its client, so the hub gives up the place in the line; over HTTP the client's own connection decides.
      if (way === "stdio") await until(async () => (await waitersOf(hub, "deploy")) === 0, "the end of the line", LIMIT_MS);
      const { messageId } = await bob.call("kxm_send", { target: "ann", content: "x" });
      for (const requestId of [0, 1, 2, 3, 99, "none"])
        await bob.client.notification({ method: "notifications/cancelled", params: { requestId, reason: "late" } });
      expect((await bob.call("kxm_get", { messageId })).status).toBe("queued");
      await Promise.all([ann.client.close(), bob.client.close()]);
    },
    LIMIT_MS,
  );

  test(
    "wrong arguments and unknown tools are answers, and the session goes on",
    async () => {
      await using hub = await serveHub();
      const ann = await connect(hub, way, "ann");
      expect(await ann.call("kxm_send", { target: 7 })).toMatchObject({ code: "protocol_error" });
      expect(await ann.call("kxm_send", { target: "ann", content: "x".repeat(32_001) })).toMatchObject({ code: "protocol_error" });
      expect(await ann.call("kxm_nothing")).toMatchObject({ code: "protocol_error" });
      await expect(ann.call("kxm_send", { target: "bob", content: "x".repeat(300_000) })).rejects.toThrow();
      expect((await ann.call("kxm_list")).you).toBe("ann");
      await ann.client.close();
    },
    LIMIT_MS,
  );
});

test("a discovery probe is answered before it could be missed, with its later revision and without a session", async () => {
  await using hub = await serveHub();
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "x-kxm-agent-name": "ann",
    "mcp-protocol-version": "2026-07-28",
  };
  const probe = { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", id: 0, method: "server/discover", params: {} }) };
  await fetch(`${hub.url}/mcp`, probe); // loads the SDK
  const began = performance.now();
  const { status } = await fetch(`${hub.url}/mcp`, probe);
  expect([200, 400, 404, 405]).toContain(status);
  expect(performance.now() - began).toBeLessThan(1_000); // a program that gets no answer gives up after one second
});

test("a page of another site cannot call tools, and a name that only looks like this machine's is no host", async () => {
  await using hub = await serveHub();
  const ask = (headers: Record<string, string>) =>
    fetch(`${hub.url}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", "x-kxm-agent-name": "ann", ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
    });
  const verdicts = async (headers: Record<string, string>) => {
    const answer = await ask(headers);
    return [answer.status, ((await answer.json()) as { code?: string }).code];
  };
  const { port } = new URL(hub.url);
  expect(await verdicts({})).toEqual([200, undefined]);
  expect(await verdicts({ origin: hub.url })).toEqual([200, undefined]);
  for (const origin of ["https://evil.example", "null", `http://127.0.0.1:${Number(port) + 1}`, `http://localhost.evil.example:${port}`])
    expect([origin, ...(await verdicts({ origin }))]).toEqual([origin, 403, "origin_forbidden"]);
  for (const host of ["evil.example", `127.0.0.1.evil.example:${port}`, `evil.example:${port}`])
    expect([host, ...(await verdicts({ host }))]).toEqual([host, 403, "host_forbidden"]);
});

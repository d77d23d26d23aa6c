// The stdio bridge against a listening hub: names, presence, restarts, broken lines, and the SDK's own stdio client over the real program.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { createCredentials } from "../../src/api/credentials.ts";
import { bridge } from "../../src/client/mcp-bridge.ts";
import { createMcp } from "../../src/mcp/server.ts";
import { newId } from "../../src/protocol/ids.ts";
import { openHubWorld } from "../support/hub.ts";

const ROOT = join(import.meta.dir, "../..");

/** A hub with API and MCP that can be asked like one over a network. */
async function openHub() {
  const world = await openHubWorld();
  const mcp = createMcp(world.hub, { newRequestId: () => newId("req"), hosts: new Set(["127.0.0.1:7331"]) }, createCredentials(world.hub));
  let away = false;
  const connection = {
    url: "http://127.0.0.1:7331",
    fetch: async (request: Request): Promise<Response> => {
      if (away) throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
      return new URL(request.url).pathname === "/mcp" ? mcp.handle(request) : world.fetch(request);
    },
  };
  const agents = async () => (await world.hub.engine.read.agents.ofProject("shop")).map(({ name, online }) => `${name} ${online}`);
  return Object.assign(world, { connection, agents, leave: (value: boolean) => (away = value) });
}

/** A session whose lines the test writes and whose answers it awaits. */
function session(connection: Parameters<typeof bridge>[0]["connection"], name = "ann", pushes = false, streamAgainMs = 1) {
  const queue: (string | undefined)[] = [];
  let wake = () => {};
  const written: any[] = [];
  const notes: string[] = [];
  const seen: (() => void)[] = [];
  async function* lines() {
    for (;;) {
      while (queue.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      const line = queue.shift();
      if (line === undefined) return;
      yield line;
    }
  }
  const write = (line: string) => {
    written.push(JSON.parse(line));
    for (const look of seen.splice(0)) look();
  };
  const done = bridge({
    connection,
    project: "shop",
    name,
    purpose: "test",
    lines: lines(),
    write,
    note: (text) => void notes.push(text),
    pushes,
    streamAgainMs,
  });
  const put = (line: string | undefined) => {
    queue.push(line);
    wake();
  };
  const next = async (match: (message: any) => boolean) => {
    for (;;) {
      const found = written.find(match);
      if (found) return found;
      await new Promise<void>((resolve) => seen.push(resolve));
    }
  };
  let id = 0;
  return {
    notes,
    written,
    put,
    next,
    ask: (method: string, params: object = {}) => {
      const mine = ++id;
      put(JSON.stringify({ jsonrpc: "2.0", id: mine, method, params }));
      return next((message) => message.id === mine);
    },
    end: () => {
      put(undefined);
      return done;
    },
  };
}
const hello = (client = "test") => ({ protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: client, version: "1" } });

test("a session is an agent while it lasts: it lists tools, calls one, and is offline when it ends", async () => {
  await using it = await openHub();
  const ann = session(it.connection);
  expect((await ann.ask("initialize", hello())).result.serverInfo.name).toBe("kxm");
  expect((await ann.ask("tools/list")).result.tools.length).toBeGreaterThan(20);
  expect(JSON.parse((await ann.ask("tools/call", { name: "kxm_list" })).result.content[0].text).you).toBe("ann");
  expect(await it.agents()).toEqual(["ann 1"]);
  await ann.end();
  expect(await it.agents()).toEqual(["ann 0"]);
});

test("a taken name gets a suffix and says so", async () => {
  await using it = await openHub();
  const first = session(it.connection);
  await first.ask("ping");
  const second = session(it.connection);
  await second.ask("ping");
  expect(second.notes.join()).toContain("this session is ann-2");
  expect((await it.agents()).sort()).toEqual(["ann 1", "ann-2 1"]);
  await Promise.all([first.end(), second.end()]);
});

test("a hub that is away is said in the answer, and used as soon as it is back", async () => {
  await using it = await openHub();
  it.leave(true);
  const ann = session(it.connection);
  const refused = await ann.ask("initialize", hello());
  expect(refused.error.message).toContain("kxm hub start");
  it.leave(false);
  expect((await ann.ask("initialize", hello())).result.serverInfo.name).toBe("kxm");
  await ann.end();
});

test("an agent whose key was replaced is registered again", async () => {
  await using it = await openHub();
  const ann = session(it.connection);
  await ann.ask("ping");
  const { id } = (await it.hub.engine.read.agents.ofProject("shop"))[0]!;
  await it.hub.engine.write("shop", async (tx) => {
    await tx.agents.resume({ ...(await tx.agents.find(id))!, keyHash: "gone", online: 0 });
    tx.append({ project: "shop", topic: "agents", type: "key_ended", subjectId: id, actor: "test", data: {} }); // so that no hub goes on with what it knew
  });
  const answers = await Promise.all(Array.from({ length: 10 }, () => ann.ask("ping"))); // one of them registers it again, not each
  expect(answers.map(({ result }) => result)).toEqual(Array(10).fill({}));
  expect(await it.agents()).toEqual(["ann 1"]);
  await ann.end();
});

test("a broken line is an error of its own, and the session goes on", async () => {
  await using it = await openHub();
  const ann = session(it.connection);
  ann.put("{not json");
  ann.put("7");
  ann.put("");
  expect((await ann.next((message) => message.id === null)).error.code).toBe(-32700);
  expect((await ann.ask("ping")).result).toEqual({});
  expect(ann.written.filter(({ id }) => id === null)).toHaveLength(2);
  await ann.end();
});

test("a client that takes channel notifications is told of a request as it arrives; others are not", async () => {
  await using it = await openHub();
  const [ann, bob] = [session(it.connection, "ann", true), session(it.connection, "bob", true)];
  const answer = await ann.ask("initialize", hello("claude-code"));
  expect(answer.result.capabilities.experimental["claude/channel"]).toEqual({});
  expect((await bob.ask("initialize", hello("codex"))).result.capabilities.experimental).toBeUndefined();
  await bob.ask("tools/call", { name: "kxm_send", arguments: { target: "ann", content: "look\n\nhere" } });
  const pushed = await ann.next(({ method }) => method === "notifications/claude/channel");
  expect(pushed.params).toMatchObject({ content: expect.stringContaining("look\n\nhere"), meta: { from: "bob" } });
  // What was pushed can be pulled as well, and a reply to a request of one's own is told, too.
  const { open } = JSON.parse((await ann.ask("tools/call", { name: "kxm_inbox" })).result.content[0].text);
  expect(open).toMatchObject([{ messageId: pushed.params.meta.messageId }]);
  const sent = await ann.ask("tools/call", { name: "kxm_send", arguments: { target: "bob", content: "which port?" } });
  const { messageId } = JSON.parse(sent.result.content[0].text);
  await bob.ask("tools/call", { name: "kxm_reply", arguments: { messageId, content: "7331" } });
  const told = await ann.next(({ method, params }) => method !== undefined && params.meta.messageId === messageId);
  expect(told.params).toEqual({ content: `Reply of bob to your request ${messageId}: 7331`, meta: { messageId, from: "bob" } });
  expect(bob.written.filter(({ method }) => method !== undefined)).toEqual([]);
  await Promise.all([ann.end(), bob.end()]);
});

test("a hub that lost its state is told of the agent again, and pushes go on under its new identity", async () => {
  await using later = await openHub();
  let current: Awaited<ReturnType<typeof openHub>>;
  const ann = await (async () => {
    await using first = await openHub();
    current = first;
    const connection = { url: first.connection.url, fetch: (request: Request) => current.connection.fetch(request) };
    const session_ = session(connection, "ann", true);
    await session_.ask("initialize", hello("claude-code"));
    current = later;
    return session_;
  })();
  expect(JSON.parse((await ann.ask("tools/call", { name: "kxm_list" })).result.content[0].text).you).toBe("ann");
  const bob = session(later.connection, "bob");
  await bob.ask("tools/call", { name: "kxm_send", arguments: { target: "ann", content: "still there?" } });
  const pushed = await ann.next(({ method }) => method === "notifications/claude/channel");
  expect(pushed.params.content).toContain("still there?");
  await Promise.all([ann.end(), bob.end()]);
});

test("the real program speaks to the SDK's stdio client", async () => {
  await using it = await openHub();
  const here = (request: Request) => {
    const moved = new Request(request.url.replace(/:\d+\//, ":7331/"), request);
    moved.headers.set("host", "127.0.0.1:7331");
    return it.connection.fetch(moved);
  };
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: here });
  const env = {
    PATH: process.env["PATH"]!,
    HOME: "/nonexistent",
    KXM_URL: `http://127.0.0.1:${server.port}`,
    KXM_PROJECT: "shop",
    KXM_AGENT_NAME: "cli",
  };
  const client = new Client({ name: "test", version: "1" });
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [join(ROOT, "src/main.ts"), "mcp"], env, stderr: "ignore" }));
  expect((await client.listTools()).tools.length).toBeGreaterThan(20);
  expect(await it.agents()).toEqual(["cli 1"]);
  await client.close();
  while ((await it.agents())[0] !== "cli 0") await new Promise((resolve) => setImmediate(resolve));
}, 20_000);

// The names that users of MCP Agent Mail know: off by default, and mapped onto the same messages and leases as the other tools.
import { expect, test } from "bun:test";
import { readSettings } from "../../src/cli/settings.ts";
import { bridge } from "../../src/client/mcp-bridge.ts";
import { TOOLS } from "../../src/mcp/catalogue.ts";
import { AGENT_MAIL } from "../../src/mcp/tools/agent-mail.ts";
import { openMcpWorld } from "../support/mcp.ts";

const NAMES = [
  "register_agent",
  "send_message",
  "fetch_inbox",
  "acknowledge_message",
  "reply_message",
  "file_reservation_paths",
  "release_file_reservations",
  "search_messages",
];
const open = () => openMcpWorld({ agentMailNames: true });

test("they are off unless the setting says so, and a wrong setting refuses the start", async () => {
  await using plain = await openMcpWorld();
  const ann = await plain.connect("ann");
  expect((await ann.listTools()).tools).toHaveLength(TOOLS.length);
  expect(await plain.tool(ann, "send_message", { to: ["bob"], subject: "s", body_md: "b" })).toMatchObject({ isError: true, code: "protocol_error" });
  await using it = await open();
  const listed = (await (await it.connect("ann")).listTools()).tools.map(({ name }) => name);
  expect(listed).toEqual([...TOOLS.map(({ name }) => name), ...NAMES]);
  expect(AGENT_MAIL.map(({ name }) => name)).toEqual(NAMES);
  expect(readSettings({ KXM_MCP_ALIASES: "agent-mail" }, "/").hub.agentMailNames).toBe(true);
  expect(readSettings({}, "/").hub.agentMailNames).toBe(false);
  expect(() => readSettings({ KXM_MCP_ALIASES: "all" }, "/")).toThrow("KXM_MCP_ALIASES");
});

test("two agents register, write, acknowledge, answer and read the answer, as they did there", async () => {
  await using it = await open();
  const [ann, bob] = [await it.connect("ann"), await it.connect("bob")];
  const registered = await it.tool(bob, "register_agent", {
    project_key: "/data/projects/shop",
    program: "codex-cli",
    model: "large",
    name: "BlueLake",
    task_description: "Reviews <b>changes</b>",
  });
  expect(registered).toMatchObject({ name: "bob", project: "shop", task_description: "Reviews <b>changes</b>", model: "large" });
  expect(registered.next).toContain("You are bob");
  await it.tool(ann, "register_agent");
  expect((await it.tool(ann, "kxm_list")).agents).toMatchObject([{ name: "bob", purpose: "Reviews <b>changes</b>", model: "large" }]);

  const sent = await it.tool(ann, "send_message", {
    project_key: "/data/projects/shop",
    sender_name: "ann",
    to: ["bob", "nobody"],
    cc: ["BOB"],
    subject: "Plan",
    body_md: "Look at `main`.",
    importance: "urgent",
    thread_id: "TKT-1",
    ack_required: true,
  });
  expect(sent.deliveries).toMatchObject([{ to: "bob" }, { to: "nobody", code: "target_not_found" }]);
  expect(sent.count).toBe(1);
  const [{ id }] = sent.deliveries;
  const heads = (await it.tool(bob, "fetch_inbox", { agent_name: "bob" })).messages;
  expect(heads).toMatchObject([{ id, kind: "message", from: "ann", subject: "Plan", importance: "urgent", acknowledged: false, thread_id: "TKT-1" }]);
  expect(heads[0]).not.toHaveProperty("body_md");
  expect((await it.tool(bob, "fetch_inbox", { include_bodies: true, urgent_only: true })).messages[0].body_md).toBe("Plan\n\nLook at `main`.");
  expect((await it.tool(bob, "acknowledge_message", { message_id: id })).acknowledged).toBe(true);
  expect((await it.tool(bob, "kxm_inbox")).open).toMatchObject([{ messageId: id, status: "delivered" }]); // both kinds of names work on one mailbox
  expect(await it.tool(bob, "reply_message", { message_id: id, body_md: "Done." })).toMatchObject({ id, kind: "reply", to: "ann" });
  expect((await it.tool(ann, "fetch_inbox", { include_bodies: true })).messages).toMatchObject([
    { id, kind: "reply", from: "bob", subject: "Plan", body_md: "Done." },
  ]);
  expect((await it.tool(ann, "fetch_inbox", { since_ts: "2030-01-01T00:00:00Z" })).messages).toEqual([]);
  expect((await it.tool(bob, "fetch_inbox")).messages).toEqual([]);
});

test("what has its answer, or was one's own, is followed up in the same thread, and circles end", async () => {
  await using it = await open();
  const [ann, bob] = [await it.connect("ann"), await it.connect("bob")];
  await it.tool(bob, "kxm_inbox");
  const { deliveries } = await it.tool(ann, "send_message", { to: ["bob"], subject: "Port?", body_md: "Which?" });
  const { id } = deliveries[0];
  await it.tool(bob, "reply_message", { message_id: id, body_md: "7331" });
  const thanks = await it.tool(ann, "reply_message", { message_id: id, body_md: "Thanks." });
  expect(thanks).toMatchObject({ kind: "message", to: "bob", thread_id: id });
  expect((await it.tool(bob, "fetch_inbox", { include_bodies: true })).messages).toMatchObject([
    { id: thanks.id, from: "ann", thread_id: id, body_md: "Re: Port?\n\nThanks." },
  ]);
  let last = thanks.id;
  let code: string | undefined;
  for (let round = 0; round < 10 && code === undefined; round++) {
    const [from, to] = round % 2 ? [ann, bob] : [bob, ann];
    await it.tool(from, "reply_message", { message_id: last, body_md: "answer" });
    const next = await it.tool(to, "reply_message", { message_id: last, body_md: "and again" });
    code = next.code;
    last = next.id;
  }
  expect(code).toBe("hop_limit_reached");
});

test("nobody speaks, reads or reserves as somebody else", async () => {
  await using it = await open();
  const ann = await it.connect("ann");
  for (const [name, input] of [
    ["send_message", { sender_name: "bob", to: ["ann"], subject: "s", body_md: "b" }],
    ["fetch_inbox", { agent_name: "bob" }],
    ["acknowledge_message", { agent_name: "bob", message_id: "msg_1" }],
    ["reply_message", { sender_name: "bob", message_id: "msg_1", body_md: "b" }],
    ["file_reservation_paths", { agent_name: "bob", paths: ["a"] }],
    ["release_file_reservations", { agent_name: "bob" }],
  ] as const)
    expect([name, (await it.tool(ann, name, input)).code]).toEqual([name, "message_forbidden"]);
});

test("files are leases: overlapping patterns are refused with their holder, others granted, and all given back at once", async () => {
  await using it = await open();
  const [ann, bob] = [await it.connect("ann"), await it.connect("bob")];
  const mine = await it.tool(ann, "file_reservation_paths", {
    project_key: "/data/projects/shop",
    agent_name: "ann",
    paths: ["app/api/*.py"],
    ttl_seconds: 3600,
    exclusive: true,
    reason: "TKT-1",
  });
  expect(mine.granted).toMatchObject([{ id: "file:app/api/*.py", path_pattern: "app/api/*.py", exclusive: true, reason: "TKT-1", fencing_token: 1 }]);
  expect(Date.parse(mine.granted[0].expires_ts)).toBe(it.clock.now + 600_000);
  expect((await it.tool(ann, "kxm_lease_check", { name: "file:app/api/*.py", fencingToken: 1 })).valid).toBe(true);
  const theirs = await it.tool(bob, "file_reservation_paths", { paths: ["app/**/users.py", "app/ui/**"], exclusive: false });
  expect(theirs.granted).toMatchObject([{ path_pattern: "app/ui/**", exclusive: true }]);
  expect(theirs.conflicts).toMatchObject([{ path: "app/**/users.py", holders: [{ agent: "ann", path_pattern: "app/api/*.py" }] }]);
  expect(theirs.next).toContain("ask its holder");
  expect((await it.tool(ann, "release_file_reservations")).released).toBe(1);
  expect((await it.tool(bob, "file_reservation_paths", { paths: ["app/**/users.py"] })).granted).toHaveLength(1);
  expect(await it.tool(bob, "file_reservation_paths", { paths: ["../secret"] })).toMatchObject({ isError: true, code: "protocol_error" });
  expect(await it.tool(bob, "file_reservation_paths", { paths: [] })).toMatchObject({ isError: true, code: "protocol_error" });
});

test("messages are found by their words, one's own only", async () => {
  await using it = await open();
  const [ann, bob, eve] = [await it.connect("ann"), await it.connect("bob"), await it.connect("eve")];
  for (const client of [bob, eve]) await it.tool(client, "kxm_inbox");
  await it.tool(ann, "send_message", { to: ["bob"], subject: "Build plan", body_md: "for the *zebra* routes" });
  expect((await it.tool(bob, "search_messages", { query: "zebra" })).messages).toMatchObject([{ from: "ann", to: "bob", status: "queued" }]);
  expect((await it.tool(eve, "search_messages", { query: "zebra" })).messages).toEqual([]);
});

test("over standard input they are the same", async () => {
  await using it = await open();
  const answers: any[] = [];
  const fetch = async (request: Request) => {
    if (!request.url.endsWith("/mcp")) return it.fetch(request);
    const answer = await it.mcp({ body: await request.text(), headers: Object.fromEntries(request.headers) });
    return Response.json(answer.body, { status: answer.status });
  };
  const call = (id: number, name: string, args: object) =>
    JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } });
  async function* lines() {
    yield JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    yield call(2, "register_agent", { task_description: "Writes" });
    yield call(3, "file_reservation_paths", { paths: ["src/**"] });
  }
  const written = (line: string) => void answers.push(JSON.parse(line));
  const connection = { url: "http://127.0.0.1:7331", fetch };
  await bridge({ connection, project: "shop", name: "cid", purpose: "x", lines: lines(), write: written, note: () => {}, pushes: false });
  const of = (id: number) => answers.find((answer) => answer.id === id).result;
  expect(
    of(1)
      .tools.slice(-8)
      .map(({ name }: any) => name),
  ).toEqual(NAMES);
  expect(JSON.parse(of(2).content[0].text)).toMatchObject({ name: "cid", task_description: "Writes" });
  expect(JSON.parse(of(3).content[0].text).granted).toMatchObject([{ path_pattern: "src/**" }]);
});

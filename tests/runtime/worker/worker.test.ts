// Workers against a real hub: a message wakes an idle agent, the answer becomes the reply, what fails stays open, and a restart loses no answer.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ask } from "../../../src/client/http.ts";
import type { Message } from "../../../src/protocol/messages.ts";
import { markedProcesses, waitFor } from "../../../src/runtime/harness/process.ts";
import { turnId } from "../../../src/runtime/worker/turn.ts";
import { serveHub } from "../../support/served.ts";
import { openWorld, type World } from "../engine/world.ts";
import { until as eventually } from "../runtime-process.ts";

const FAST = { firstMs: 20, maxMs: 60 };
const open = async (url: string) => openWorld({}, { hub: () => ({ url, project: "demo" }), workerWaits: FAST });
const spec = (script: string, more: object = {}) => ({
  name: "reviewer",
  harness: "command",
  command: ["/bin/sh", "-c", script],
  env: ["OUT"],
  ...more,
});

/** An agent that asks. */
async function asker(url: string, name = "alice") {
  const { agent, agentKey } = (await ask({ url }, "POST", "/v1/agents/register", { body: { name, project: "demo" } })).body;
  const headers = { "x-kxm-agent-id": agent.id, "x-kxm-agent-key": agentKey };
  return {
    agents: async () => (await ask({ url }, "GET", "/v1/agents", { headers })).body.agents as { name: string; presence: string }[],
    send: async (content: string, more: object = {}): Promise<Message> =>
      (await ask({ url }, "POST", "/v1/messages", { body: { target: "reviewer", content, allowOffline: true, ...more }, headers })).body.message,
    get: async (id: string, waitMs = 0): Promise<Message> =>
      (await ask({ url }, "GET", `/v1/messages/${id}`, { query: { waitMs }, headers })).body.message,
    cancel: (id: string) => ask({ url }, "DELETE", `/v1/messages/${id}`, { headers }),
  };
}
const add = (world: World, body: object) => world.call("POST", "/v1/projects/:projectKey/workers", {}, { body });
const report = async (world: World) => (await world.call("GET", "/v1/projects/:projectKey/workers")).workers[0];
const until = (condition: () => Promise<boolean>) => eventually(condition, "the worker");
/** The worker is known at the hub. */
const present = (world: World) => until(async () => (await report(world)).agentId !== undefined);

test("a message wakes the idle worker, the turn is told, and the final answer becomes the reply", async () => {
  await using hub = await serveHub();
  await using world = await open(hub.url);
  process.env["OUT"] = join(world.base, "out");
  await add(world, spec('cat >"$OUT"; echo "looks fine: $(wc -l <"$OUT") lines"', { instructions: "Be strict." }));
  const alice = await asker(hub.url);
  await present(world);
  expect(await alice.agents()).toContainEqual(expect.objectContaining({ name: "reviewer", presence: "online" }));
  const sent = await alice.send("Review this\nplease");
  const answered = await alice.get(sent.id, 20_000);
  expect(answered.status).toBe("replied");
  expect(answered.reply!.content).toStartWith("looks fine:");
  expect(answered.turnStartedAt).toBeString();
  const prompt = readFileSync(process.env["OUT"], "utf8");
  for (const part of ["Be strict.", "alice sent you this request", "Review this\nplease"]) expect(prompt).toContain(part);
  await until(async () => (await report(world)).state === "idle");
  expect(await report(world)).toMatchObject({ turns: 1, failures: 0 });
});

test("requests are answered one at a time, oldest first, also those that came while it was away", async () => {
  await using hub = await serveHub();
  await using world = await open(hub.url);
  process.env["OUT"] = join(world.base, "out");
  const alice = await asker(hub.url);
  await ask({ url: hub.url }, "POST", "/v1/agents/register", { body: { name: "reviewer", project: "demo" } }).then(({ body }) =>
    ask({ url: hub.url }, "DELETE", `/v1/agents/${body.agent.id}`, { headers: { "x-kxm-agent-key": body.agentKey } }),
  );
  const sent = [await alice.send("one"), await alice.send("two"), await alice.send("three")];
  await add(world, spec('cat >/dev/null; echo in >>"$OUT"; sleep 0.05; echo out >>"$OUT"; echo ok'));
  for (const { id } of sent) expect((await alice.get(id, 20_000)).status).toBe("replied");
  expect(readFileSync(process.env["OUT"], "utf8").trim().split("\n")).toEqual(["in", "out", "in", "out", "in", "out"]);
});

test("a turn that fails leaves the request open, backs off, and is tried again until it succeeds", async () => {
  await using hub = await serveHub();
  await using world = await open(hub.url);
  process.env["OUT"] = join(world.base, "out");
  await add(world, spec('cat >/dev/null; echo try >>"$OUT"; if [ $(wc -l <"$OUT") -lt 3 ]; then echo "no room" >&2; exit 7; fi; echo "third time"'));
  const alice = await asker(hub.url);
  await present(world);
  const sent = await alice.send("try");
  await until(async () => (await report(world)).failures >= 1);
  expect(await report(world)).toMatchObject({ lastError: "program_failed: the program ended with 7 (no room)" });
  expect((await alice.get(sent.id)).status).toBe("delivered");
  expect((await alice.get(sent.id, 20_000)).reply!.content).toBe("third time");
  expect(await report(world)).toMatchObject({ turns: 1, failures: 2 });
});

test("a request that is taken back ends its turn", async () => {
  await using hub = await serveHub();
  await using world = await open(hub.url);
  await add(world, spec("sleep 60"));
  const alice = await asker(hub.url);
  await present(world);
  const sent = await alice.send("long");
  await until(async () => markedProcesses(turnId(sent.id)).length > 0);
  await alice.cancel(sent.id);
  await until(async () => markedProcesses(turnId(sent.id)).length === 0);
  await until(async () => (await report(world)).state === "idle");
  expect(await report(world)).toMatchObject({ turns: 0, failures: 0 });
});

test("a Runtime that is gone in the middle of a turn: the program goes on, the next Runtime sends its answer, once", async () => {
  await using hub = await serveHub();
  await using world = await open(hub.url);
  process.env["OUT"] = join(world.base, "out");
  await add(world, spec('cat >/dev/null; echo ran >>"$OUT"; while [ ! -f "$OUT.go" ]; do sleep 0.02; done; echo answer'));
  const alice = await asker(hub.url);
  await present(world);
  const sent = await alice.send("slow");
  await waitFor(() => existsSync(process.env["OUT"]!), 10_000);
  world.vanish();
  world.put("../out.go", "");
  await waitFor(() => markedProcesses(turnId(sent.id)).length === 0, 5000);
  world.reopen();
  expect((await alice.get(sent.id, 20_000)).reply!.content).toBe("answer");
  expect(readFileSync(process.env["OUT"], "utf8")).toBe("ran\n");
});

test("a clean stop ends the program and says goodbye; after the start the request is answered", async () => {
  await using hub = await serveHub();
  await using world = await open(hub.url);
  process.env["OUT"] = join(world.base, "out");
  await add(world, spec('cat >/dev/null; echo ran >>"$OUT"; while [ ! -f "$OUT.go" ]; do sleep 0.02; done; echo answer'));
  const alice = await asker(hub.url);
  await present(world);
  const sent = await alice.send("slow");
  await waitFor(() => existsSync(process.env["OUT"]!), 10_000);
  await world.engine.stop(5000);
  expect(markedProcesses(turnId(sent.id))).toEqual([]);
  expect((await alice.agents()).map(({ name }) => name)).not.toContain("reviewer");
  world.project.store.close();
  world.project.prompts.close();
  world.put("../out.go", "");
  world.reopen();
  expect((await alice.get(sent.id, 20_000)).reply!.content).toBe("answer");
});

test("workers are listed, replaced by name, stopped, and refused when they make no sense", async () => {
  await using hub = await serveHub();
  await using world = await open(hub.url);
  await add(world, spec("echo one"));
  await add(world, spec("echo two", { name: "Reviewer" }));
  expect((await world.call("GET", "/v1/projects/:projectKey/workers")).workers).toHaveLength(1);
  for (const wrong of [
    {},
    { name: "x", harness: "none" },
    { name: "x", harness: "command" },
    { name: "x", harness: "echo", command: ["y"] },
    { name: "x", harness: "echo", shell: "y" },
  ])
    await expect(add(world, wrong)).rejects.toMatchObject({ code: "runtime_protocol_error" });
  const missing = { name: "x", harness: "command", command: ["no-such-program-here"] };
  await expect(add(world, missing)).rejects.toMatchObject({ code: "harness_missing", message: expect.stringContaining("no-such-program-here") });
  expect((await world.call("GET", "/v1/projects/:projectKey/workers")).workers).toHaveLength(1);
  const stop = () => world.call("POST", "/v1/projects/:projectKey/workers/:name/stop", { name: "REVIEWER" });
  expect(await stop()).toMatchObject({ stopped: true });
  expect(await stop()).toMatchObject({ stopped: false });
  await using lonely = await openWorld({});
  await expect(add(lonely, spec("echo x"))).rejects.toMatchObject({ code: "hub_not_bound" });
});

test("an answer that is too long is cut and says so; an empty one is still an answer", async () => {
  await using hub = await serveHub();
  await using world = await open(hub.url);
  await add(world, spec("head -c 40000 /dev/zero | tr '\\0' x"));
  const alice = await asker(hub.url);
  await present(world);
  const long = await alice.get((await alice.send("long")).id, 20_000);
  expect(long.reply!.content.length).toBe(32_000);
  expect(long.reply!.content).toEndWith("is cut here]");
  await add(world, spec("cat >/dev/null"));
  expect((await alice.get((await alice.send("empty")).id, 20_000)).reply!.content).toBe("(no text)");
});

test("a request that fails every time does not keep the others from their answers", async () => {
  await using hub = await serveHub();
  await using world = await openWorld({}, { hub: () => ({ url: hub.url, project: "demo" }), workerWaits: { firstMs: 3_600_000, maxMs: 3_600_000 } });
  await add(world, spec("if grep -q poison; then exit 7; fi; echo fine"));
  const alice = await asker(hub.url);
  await present(world);
  const bad = await alice.send("poison");
  await until(async () => (await report(world)).state === "backing_off");
  expect(await report(world)).toMatchObject({ failures: 1, nextAttemptAt: expect.any(String) });
  const good = await alice.send("water");
  expect((await alice.get(good.id, 20_000)).reply!.content).toBe("fine");
  expect((await alice.get(bad.id)).status).toBe("delivered");
  expect(await report(world)).toMatchObject({ turns: 1, failures: 1 });
});

test("a provider that is used up is asked by no request until its time has come", async () => {
  await using hub = await serveHub();
  await using world = await openWorld({}, { hub: () => ({ url: hub.url, project: "demo" }), workerWaits: { firstMs: 3_600_000, maxMs: 3_600_000 } });
  process.env["OUT"] = join(world.base, "out");
  world.put(
    "bin/claude",
    `#!/bin/sh\ncat >/dev/null; echo asked >>"${process.env["OUT"]}"; echo '{"type":"result","is_error":true,"result":"usage limit reached"}'\n`,
  );
  Bun.spawnSync(["chmod", "+x", `${world.root}/bin/claude`]);
  const path = process.env["PATH"];
  process.env["PATH"] = `${world.root}/bin:${path}`;
  try {
    await add(world, { name: "reviewer", harness: "claude" });
    const alice = await asker(hub.url);
    await present(world);
    await alice.send("one");
    await until(async () => (await report(world)).failures === 1);
    await alice.send("two");
    await until(async () => (await report(world)).state === "backing_off");
    expect(await report(world)).toMatchObject({ lastError: expect.stringContaining("quota_exhausted"), failures: 1 });
    expect(readFileSync(process.env["OUT"], "utf8")).toBe("asked\n");
  } finally {
    process.env["PATH"] = path;
  }
});

test("what a writing worker committed is there again after its worktree was cleaned away, and it is not cleaned away while it is here", async () => {
  await using hub = await serveHub();
  await using world = await open(hub.url);
  const script = "cat >/dev/null; echo x >>count.txt; git add -A; git -c user.name=a -c user.email=a@localhost commit -qm turn; wc -l <count.txt";
  const alice = await asker(hub.url);
  const clean = () => world.call("POST", "/v1/projects/:projectKey/worktrees/clean");
  for (const turn of ["1", "2"]) {
    await add(world, spec(script, { access: "write" }));
    const { id } = await alice.send("go on");
    expect((await alice.get(id, 20_000)).reply!.content.trim()).toBe(turn);
    expect(await clean()).toMatchObject({ removed: [], kept: [{ why: "its worker is here" }] });
    await world.call("POST", "/v1/projects/:projectKey/workers/:name/stop", { name: "reviewer" });
    expect((await clean()).removed).toHaveLength(1);
  }
});

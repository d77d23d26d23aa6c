// A real hub and a real Runtime, as processes: events are at the hub once, operators' commands arrive once, and either may die at any moment.
import { describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { runtimeClient } from "../../src/client/runtime-client.ts";
import { syncEventProblem } from "../../src/protocol/sync-event.ts";
import { startHub, TOKEN } from "./hub-process.ts";
import { startRuntime, until } from "./runtime-process.ts";
import { PROJECT_ID, temporaryFolder } from "./support.ts";

const FIXTURE = join(import.meta.dir, "appending-runtime-fixture.ts");

async function world() {
  const folder = temporaryFolder();
  const checkout = join(folder.path, "checkout");
  mkdirSync(checkout);
  const hub = await startHub(folder.path);
  const env = { KXM_URL: hub.url, KXM_PROJECT: "demo", KXM_TOKEN: TOKEN };
  const root = join(folder.path, "state");
  mkdirSync(root);
  const start = () => startRuntime(root, env, FIXTURE);
  return { folder, checkout, hub, start };
}

/** Sequences the hub has of a run, in order; none when it does not know the run. */
async function atHub(call: (method: string, path: string) => Promise<any>, runId: string): Promise<number[]> {
  const sequences: number[] = [];
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page: any = await call("GET", `/v1/runs/${PROJECT_ID}/${runId}/events?limit=200&after=${after}`).catch(() => ({ events: [] }));
    sequences.push(...page.events.map(({ sequence }: { sequence: number }) => sequence));
    after = page.next;
  }
  return sequences;
}
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

describe("a hub and a Runtime", () => {
  test("a run's events arrive once, through a dead hub and a dead Runtime", async () => {
    const { folder, checkout, hub: first, start } = await world();
    using _ = folder;
    await using _first = first;
    await using runtime = await start();
    let client = await runtime.client();
    const { projectKey } = await client.register({ root: checkout, projectId: PROJECT_ID, name: "Demo" });
    const { runId } = await client.post(`/v1/projects/${projectKey}/append`);
    const append = (count: number) => client.post(`/v1/projects/${projectKey}/runs/${runId}/append/${count}`);
    await append(40);
    await until(async () => (await atHub(first.call, runId)).length === 41, "41 events at the hub");
    await first.kill();
    await append(60); // nobody waits for a hub
    const offline = await until(async () => {
      const { sync } = await client.status();
      return sync.projects[0].state === "no_hub" ? sync.projects[0] : undefined;
    }, "the Runtime to notice");
    expect(offline).toMatchObject({ refused: {}, acked: 41 });
    await runtime.kill();
    await using second = await startHub(folder.path, first.port);
    await using again = await start();
    client = await again.client();
    await append(10);
    await until(async () => (await atHub(second.call, runId)).length === 111, "111 events at the hub");
    expect(await atHub(second.call, runId)).toEqual(upTo(111));
    const { events } = await client.events(projectKey, runId, { limit: 1000 });
    expect(events.length).toBe(111);
    const { sync } = await client.status();
    expect(sync.projects[0]).toMatchObject({ state: "ok", pending: 0, acked: 111, refused: {} });
    const { runtimes } = await second.call("GET", "/v1/runtimes?project=demo");
    expect(runtimes).toHaveLength(1);
    expect(runtimes[0]).toMatchObject({ runtimeId: again.facts!.runtimeId, presence: "online" });
    const { conflicts } = await second.call("GET", "/v1/sync/conflicts?project=demo");
    expect(conflicts).toEqual([]);
    await again.kill("SIGTERM");
  }, 60_000);

  test("an operator's commands reach the Runtime once, through a restart of the hub, and say what came of them", async () => {
    const { folder, checkout, hub: first, start } = await world();
    using _ = folder;
    await using _first = first;
    await using runtime = await start();
    const client = await runtime.client();
    const { projectKey } = await client.register({ root: checkout, projectId: PROJECT_ID, name: "Demo" });
    const { runId } = await client.post(`/v1/projects/${projectKey}/append`);
    await until(async () => (await atHub(first.call, runId)).length === 1, "the run at the hub");
    const send = async (call: typeof first.call, body: Record<string, unknown>) =>
      (await call("POST", "/v1/runtime/commands", { project: "demo", runtimeId: runtime.facts!.runtimeId, projectId: PROJECT_ID, ...body })).command;
    const paused = async () => (await client.status()).sync.projects[0].paused === true;
    const idle = (call: typeof first.call) =>
      until(async () => (await call("GET", "/v1/runtimes?project=demo")).runtimes[0].commandsInFlight === 0, "every command to have its result");
    await send(first.call, { kind: "pause", payload: { reason: "lunch" }, idempotencyKey: "pause-1" });
    await until(paused, "the pause");
    await idle(first.call);
    await first.kill();
    await using second = await startHub(folder.path, first.port);
    const resume = await send(second.call, { kind: "resume", payload: {}, idempotencyKey: "resume-1" });
    expect((await send(second.call, { kind: "resume", payload: {}, idempotencyKey: "resume-1" })).id).toBe(resume.id);
    await until(async () => !(await paused()), "the end of the pause");
    const cancel = await send(second.call, { kind: "cancel", runId, payload: { reason: "enough" } });
    await idle(second.call);
    const { commands } = await second.call("GET", `/v1/runs/${PROJECT_ID}/${runId}/commands`);
    expect(commands.find(({ id }: any) => id === cancel.id)).toMatchObject({ state: "refused", reason: "no run on this machine waits for this" });
  }, 60_000);

  test("an approval is asked for, decided at the hub over its hash, and reaches the Runtime", async () => {
    const { folder, checkout, hub, start } = await world();
    using _ = folder;
    await using live = hub;
    await using runtime = await start();
    const client = await runtime.client();
    const { projectKey } = await client.register({ root: checkout, projectId: PROJECT_ID, name: "Demo" });
    const { runId, approvalId, contentHash } = await client.post(`/v1/projects/${projectKey}/ask`);
    const pending = await until(async () => (await live.call("GET", "/v1/approvals?project=demo")).approvals[0], "the approval at the hub");
    expect(pending).toMatchObject({ id: approvalId, runId, status: "pending", contentHash });
    await live.call("POST", `/v1/approvals/${approvalId}/decision`, { decision: "approve", reason: "looks right", contentHash });
    const decided = await until(async () => {
      const { state, events } = await client.events(projectKey, runId);
      return events.some(({ eventType }: any) => eventType === "approval.recorded") ? state : undefined;
    }, "the decision at the Runtime");
    expect(decided.approvals).toEqual({});
    await until(
      async () => (await live.call("GET", "/v1/approvals?project=demo&status=approved")).approvals[0]?.status === "approved",
      "the record at the hub",
    );
  }, 60_000);

  test("a wrong token stops sync with a reason and loses nothing; the right one goes on by itself", async () => {
    const { folder, checkout, hub, start: _start } = await world();
    using _ = folder;
    await using live = hub;
    const root = join(folder.path, "state");
    await using runtime = await startRuntime(root, {}, FIXTURE);
    const client = await runtime.client();
    const { projectKey } = await client.register({ root: checkout, projectId: PROJECT_ID, name: "Demo" });
    const { runId } = await client.post(`/v1/projects/${projectKey}/append`);
    const first = () => client.status().then(({ sync }) => sync.projects[0]);
    await until(async () => (await first()).state === "no_hub", "the Runtime to say that it is bound to no hub");
    await client.bind({ url: live.url, project: "demo", token: "not-the-token-of-this-hub" });
    const blocked = await until(async () => ((await first()).state === "blocked" ? first() : undefined), "the refusal");
    expect(blocked.lastError).toStartWith("invalid_auth: ");
    expect(blocked).toMatchObject({ pending: 1, acked: 0 });
    await client.bind({ url: live.url, project: "demo", token: TOKEN });
    await until(async () => (await atHub(live.call, runId)).length === 1, "the event at the hub");
  }, 60_000);

  test("what the client sends is what the hub's schema takes", async () => {
    const { folder, hub } = await world();
    using _ = folder;
    await using live = hub;
    const client = runtimeClient(
      { url: live.url, token: TOKEN },
      { project: "demo", runtimeId: "rtm_0123456789abcdef01234567", host: "here", version: "1.2.3" },
    );
    const outbox = [
      { projectId: PROJECT_ID, name: "Demo", state: "refusing", pending: 1, acked: 2, refused: { sync_sequence_reused: 1 }, lastError: "x" },
    ];
    const presence = await client.presence({ outbox, slots: { running: 1, queued: 2, total: 3 }, harnesses: [{ id: "echo", state: "ready" }] });
    expect(presence.generation).toStartWith("gen_");
    expect(presence.presence).toMatchObject({ runtimeId: "rtm_0123456789abcdef01234567", host: "here", presence: "online" });
    expect(await client.push([])).toEqual({ results: [], cursors: [] });
    expect(await client.commands(0, 0)).toEqual({ known: [], unknown: [] });
    expect(syncEventProblem({})).toBeString();
    const { runtimes } = await live.call("GET", "/v1/runtimes?project=demo");
    expect(JSON.stringify(runtimes[0])).toContain("sync_sequence_reused");
  }, 60_000);
});

// An operator far away: everything asked at a real hub reaches this Runtime over its own outbound poll, once, and the hub shows what came of it.
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ask } from "../../src/client/http.ts";
import { serveHub } from "../support/served.ts";
import { sh } from "./engine/world.ts";
import { startRuntime, until } from "./runtime-process.ts";
import { temporaryFolder } from "./support.ts";

const TOKEN = "operator-token-0123456789";
const PROJECT_ID = "prj_hub_commands";
const files: Record<string, unknown> = {
  "project.yaml": { schema: "kxm.project.v1", id: PROJECT_ID, name: "demo", defaultWorkflow: "main", defaultHarness: "echo" },
  "agents/a.yaml": { schema: "kxm.agent.v1", purpose: "echoes" },
  "workflows/main.yaml": {
    schema: "kxm.workflow.v1",
    steps: [
      { id: "work", kind: "agent", agent: "a" },
      { id: "ask", kind: "approval", instructions: "Ship it?" },
      { id: "ci", kind: "wait", signal: "checks" },
    ],
  },
};

function checkout(folder: string): string {
  const root = join(folder, "checkout");
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, ".kxm", path)), { recursive: true });
    writeFileSync(join(root, ".kxm", path), JSON.stringify(content));
  }
  sh(root, "git init -q -b main && git config user.name T && git config user.email t@localhost && git add -A && git commit -qm start");
  return root;
}

test("start, approve, signal, pause and cancel from the hub; each is shown as applied or refused with its reason", async () => {
  await using hub = await serveHub({ KXM_AUTH_TOKEN: TOKEN });
  using folder = temporaryFolder();
  const root = checkout(folder.path);
  await using runtime = await startRuntime(folder.path, { KXM_URL: hub.url, KXM_PROJECT: "demo", KXM_TOKEN: TOKEN });
  const client = await runtime.client();
  const { projectKey } = await client.register({ root, projectId: PROJECT_ID, name: "demo" });
  const api = async (method: "GET" | "POST", path: string, more: object = {}): Promise<any> =>
    (await ask({ url: hub.url, token: TOKEN }, method, path, more)).body;
  const send = async (body: object) =>
    (await api("POST", "/v1/runtime/commands", { body: { project: "demo", runtimeId: runtime.facts!.runtimeId, ...body } })).command;
  const finished = (id: string) =>
    until(async () => {
      const { commands } = await api("GET", `/v1/runs/${PROJECT_ID}/${runId}/commands`, { query: { project: "demo" } });
      const found = commands.find((one: any) => one.id === id);
      return found && ["applied", "refused"].includes(found.state) ? found : undefined;
    }, "the command's result");
  await until(async () => (await client.status()).sync.projects[0]?.state === "ok", "the first report");

  await send({ kind: "start", projectId: PROJECT_ID, payload: { prompt: "Do it from afar", intakeKey: "one" }, idempotencyKey: "k1" });
  await send({ kind: "start", projectId: PROJECT_ID, payload: { prompt: "Do it from afar", intakeKey: "one" }, idempotencyKey: "k1" });
  const pending = await until(
    async () => (await api("GET", "/v1/approvals", { query: { project: "demo" } })).approvals[0],
    "the approval at the hub",
  );
  const { runId, id, contentHash } = pending;
  expect(pending.content).toContain("Ship it?");
  expect(pending.content).toContain("- work: passed");
  expect((await client.runs(projectKey)).runs).toHaveLength(1);
  await expect(
    api("POST", `/v1/approvals/${id}/decision`, { body: { decision: "approve", contentHash: `sha256:${"0".repeat(64)}` } }),
  ).rejects.toMatchObject({ code: "approval_content_changed" });
  await api("POST", `/v1/approvals/${id}/decision`, { body: { decision: "approve", contentHash, reason: "fine" } });
  await until(async () => (await client.get(`/v1/projects/${projectKey}/runs/${runId}/view`)).run.waitsFor === "checks", "the next step");

  const wrong = await send({ kind: "signal", projectId: PROJECT_ID, runId, payload: { signal: "other" } });
  expect(await finished(wrong.id)).toMatchObject({ state: "refused", reason: expect.stringContaining("waits for the signal checks, not other") });
  await send({ kind: "pause", projectId: PROJECT_ID, payload: { reason: "freeze" } });
  await until(async () => (await client.get(`/v1/projects/${projectKey}/intake`)).paused !== null, "the pause");
  const cancel = await send({ kind: "cancel", projectId: PROJECT_ID, runId, payload: { reason: "from afar" } });
  expect(await finished(cancel.id)).toMatchObject({ state: "applied" });
  const { run } = await until(async () => {
    const answer = await api("GET", `/v1/runs/${PROJECT_ID}/${runId}`, { query: { project: "demo" } });
    return answer.run.status === "cancelled" ? answer : undefined;
  }, "the end of the run at the hub");
  expect(run.status).toBe("cancelled");
  const { events } = await client.events(projectKey, runId, { limit: 1000 });
  const recorded = events.find(({ eventType }: any) => eventType === "approval.recorded").payload;
  expect(recorded).toMatchObject({ outcome: "approved", reason: "fine" });
  expect(recorded.actor.id).not.toBe("");

  const again = await send({ kind: "retry", projectId: PROJECT_ID, runId, payload: { stepId: "ci" } });
  expect(await finished(again.id)).toMatchObject({ state: "applied", detail: { retryOf: runId, state: "queued" } });
  await send({ kind: "resume", projectId: PROJECT_ID, payload: {} });
  const next = await until(async () => {
    const { runs } = await api("GET", "/v1/runs", { query: { project: "demo" } });
    return runs.find((one: any) => one.runId !== runId && one.waiting?.for === "step");
  }, "the run that begins at the step");
  const repeated = (await api("GET", `/v1/runs/${PROJECT_ID}/${next.runId}`, { query: { project: "demo" } })).run.projection;
  expect([repeated.retryOf, repeated.steps.items.map(({ stepId }: any) => stepId)]).toEqual([{ runId, stepId: "ci" }, ["ci"]]);
  await runtime.kill("SIGTERM");
}, 60_000);

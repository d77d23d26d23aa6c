// kill -9 of the supervisor at every commit of a run with every kind of step; and at every write to disk (R20): after the restart the run completes or
// says what nobody can prove, no effect happens twice, no process is left, and the hub holds each event once.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { LocalRuntime } from "../../src/client/local-runtime.ts";
import { markedProcesses } from "../../src/runtime/harness/process.ts";
import { newId } from "../../src/runtime/ids.ts";
import { sh } from "../runtime/engine/world.ts";
import { hubStandIn } from "../runtime/hub-stand-in.ts";
import { type RuntimeProcess, startRuntime, until } from "../runtime/runtime-process.ts";
import { temporaryFolder } from "../runtime/support.ts";

const FULL = process.env["KXM_FAULTS"] === "full";
const ENTRY = join(import.meta.dir, "run-crash-process.ts");
const STRACE = Bun.which("strace");
const PROJECT = { projectId: "prj_crash_test_1", name: "crash" };
const ENDED = ["completed", "failed", "cancelled", "blocked_uncertain"];

const agent = (name: string, more: object = {}) => ({
  schema: "kxm.agent.v1",
  purpose: name,
  harness: "command",
  env: ["LEDGER"],
  command: ["/bin/sh", "-c", `cat >/dev/null; echo ${name} >>"$LEDGER"; echo ${name} >>${name}.txt; echo '{"outcome":"passed"}'`],
  ...more,
});
const gate = (name: string, effect: string) => ({ argv: ["/bin/sh", "-c", `echo ${name} >>"$LEDGER"`], env: ["LEDGER"], effect });
const ends = (target: string) => ({ passed: target, "implementation-failure": "$terminal" });
const FILES: Record<string, unknown> = {
  "project.yaml": { schema: "kxm.project.v1", id: PROJECT.projectId, name: PROJECT.name, defaultWorkflow: "all", defaultHarness: "echo" },
  "agents/coder.yaml": agent("coder", { tools: "workspace-writer" }),
  "agents/one.yaml": agent("one"),
  "agents/two.yaml": agent("two"),
  "gates.yaml": {
    schema: "kxm.gate-registry.v1",
    gates: { check: gate("check", "workspace-mutation"), ship: gate("ship", "external-non-idempotent") },
  },
  "workflows/all.yaml": {
    schema: "kxm.workflow.v1",
    steps: [
      { id: "code", kind: "agent", agent: "coder", maxAttempts: 9 },
      { id: "panel", kind: "moa", assignments: { allowedAgents: ["one", "two"], maxAttemptsPerAssignment: 9 }, join: { strategy: "all" } },
      { id: "check", kind: "gate", gate: "check", on: ends("ship"), maxAttempts: 9 },
      { id: "ship", kind: "gate", gate: "ship", on: ends("ask"), maxAttempts: 9 },
      { id: "ask", kind: "approval" },
      { id: "ci", kind: "wait", signal: "go" },
    ],
  },
};

function prepare(folder: string): string {
  const checkout = join(folder, "checkout");
  for (const [path, content] of Object.entries(FILES)) {
    mkdirSync(dirname(join(checkout, ".kxm", path)), { recursive: true });
    writeFileSync(join(checkout, ".kxm", path), JSON.stringify(content));
  }
  sh(checkout, "git init -q -b main && git config user.name T && git config user.email t@localhost && git add -A && git commit -qm start");
  return checkout;
}

/** Plays the operator until the run has ended or stands still. @throws when the Runtime goes away */
async function attend(client: LocalRuntime, key: string, commandId: string): Promise<{ runId: string; status: string }> {
  const { result } = await client.command(key, { commandId, kind: "start", payload: { intakeKey: "work" }, actor: "t" });
  const { intake } = await client.get(`/v1/projects/${key}/intake/${result.intakeId}`, { waitMs: 8000 });
  const runId: string = intake.runId;
  let after = 0;
  for (;;) {
    const { run } = await client.get(`/v1/projects/${key}/runs/${runId}/view`);
    if (ENDED.includes(run.status)) return { runId, status: run.status };
    const send = (kind: "approve" | "signal", payload: any) =>
      client.command(key, { commandId: newId("cmd"), kind, runId, payload, actor: "t" }).catch((error) => {
        if (error.code === "runtime_not_running") throw error; // decided a moment ago, otherwise
      });
    if (run.asked) await send("approve", { approvalId: run.asked.approvalId, contentHash: run.asked.contentHash });
    else if (run.waitsFor) await send("signal", { signal: run.waitsFor });
    const { events } = await client.events(key, runId, { after, waitMs: 1000 });
    after = events.at(-1)?.sequence ?? after;
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {} // it was killed already
}

async function crashAt(kill: string, wrap?: { strace: string[] }) {
  using folder = temporaryFolder();
  const checkout = prepare(folder.path);
  using hub = hubStandIn();
  const env = { LEDGER: folder.file("ledger"), KXM_URL: hub.url, KXM_PROJECT: "demo" };
  const commandId = newId("cmd");
  const live = async (runtime: RuntimeProcess) => {
    const client = await runtime.client();
    const { projectKey } = await client.register({ root: checkout, ...PROJECT });
    return { ...(await attend(client, projectKey, commandId)), client, projectKey };
  };
  let killed = true;
  {
    await using first = await startRuntime(folder.path, { ...env, KXM_TEST_KILL_AT: kill }, ENTRY, wrap?.strace);
    const lived = first.facts ? await Promise.race([live(first).catch(() => undefined), first.child.exited.then(() => undefined)]) : undefined;
    if (lived) killed = false;
    // A tracer that is ended lets its program go: that one is ended by its own number.
    if (wrap && first.facts) end(first.facts.pid);
  }
  await using second = await startRuntime(folder.path, env, ENTRY);
  const { runId, status, client, projectKey } = await live(second);
  const { events } = await client.events(projectKey, runId, { limit: 1000 });
  await until(async () => (await client.status()).sync.projects[0].pending === 0, "an empty outbox");
  const attempts: string[] = events.flatMap(({ eventType, payload }: any) => (eventType === "attempt.created" ? [payload.attemptId] : []));
  const ledger = existsSync(env.LEDGER) ? readFileSync(env.LEDGER, "utf8").trim().split("\n") : [];
  const receipt = status === "completed" ? await client.get(`/v1/projects/${projectKey}/runs/${runId}/receipt`) : undefined;
  const seen = {
    status,
    killed,
    runs: (await client.runs(projectKey)).runs.length,
    sequences: events.map(({ sequence }: any) => sequence),
    atHub: hub.sequences(runId),
    ships: ledger.filter((line) => line === "ship").length,
    orphans: attempts.flatMap(markedProcesses),
    receipt: receipt?.holds,
    last: events.at(-1)?.payload?.reason,
  };
  await second.kill("SIGTERM");
  return seen;
}

function check(seen: Awaited<ReturnType<typeof crashAt>>, where: string): void {
  expect(["completed", "blocked_uncertain"], `${where} ${seen.last ?? ""}`).toContain(seen.status);
  expect(seen.runs, where).toBe(1);
  expect(seen.sequences, where).toEqual(seen.sequences.map((_: number, i: number) => i + 1));
  expect(
    seen.atHub.toSorted((a, b) => a - b),
    where,
  ).toEqual(seen.sequences);
  expect(seen.ships, where).toBeLessThanOrEqual(1);
  if (seen.status === "completed") expect([seen.ships, seen.receipt], where).toEqual([1, true]);
  expect(seen.orphans, where).toEqual([]);
}

test("kill -9 at the commits of a run with every kind of step", async () => {
  let killed = 0;
  for (const phase of ["after", "before"])
    for (let at = FULL ? 1 : phase === "after" ? 3 : 5; ; at += FULL ? 1 : 6) {
      const seen = await crashAt(`${phase}:${at}`);
      check(seen, `${phase} commit ${at}`);
      if (!seen.killed) break;
      killed++;
    }
  expect(killed).toBeGreaterThan(FULL ? 30 : 4);
}, 1_800_000);

/** A supervisor that sleeps right after a commit, is replaced, and wakes up again. */
async function sleepAt(at: number) {
  using folder = temporaryFolder();
  const checkout = prepare(folder.path);
  const env = { LEDGER: folder.file("ledger"), KXM_TEST_STALE_MS: "250", KXM_TEST_HEARTBEAT_MS: "40" };
  const commandId = newId("cmd");
  const live = async (runtime: RuntimeProcess) => {
    const client = await runtime.client();
    const { projectKey } = await client.register({ root: checkout, ...PROJECT });
    return { ...(await attend(client, projectKey, commandId)), client, projectKey };
  };
  await using first = await startRuntime(folder.path, { ...env, KXM_TEST_KILL_AT: `stop:${at}` }, ENTRY);
  const sleeps = () => readFileSync(`/proc/${first.child.pid}/stat`, "utf8").split(") ")[1]!.startsWith("T");
  const asleep = until(sleeps, "the first to sleep").then(() => "asleep" as const);
  const lived = live(first).catch(() => asleep);
  if ((await Promise.race([lived, asleep])) !== "asleep") {
    asleep.catch(() => {}); // it never will
    return undefined;
  }
  // Refused for as long as the first one's last sign of life is fresh.
  await using second = await until(async () => {
    const next = await startRuntime(folder.path, env, ENTRY);
    return next.facts ? next : undefined;
  }, "the second to take over");
  const working = live(second);
  first.child.kill("SIGCONT"); // it wakes while the second works
  const { status, runId, client, projectKey } = await working;
  await first.child.exited;
  const { events } = await client.events(projectKey, runId, { limit: 1000 });
  const attempts: string[] = events.flatMap(({ eventType, payload }: any) => (eventType === "attempt.created" ? [payload.attemptId] : []));
  const lines = existsSync(env.LEDGER) ? readFileSync(env.LEDGER, "utf8").trim().split("\n") : [];
  await until(() => attempts.every((id) => markedProcesses(id).length === 0), "no process left");
  const ships = lines.filter((line) => line === "ship").length;
  await second.kill("SIGTERM");
  return { status, attempts: attempts.length, starts: lines.length, ships, firstEnded: first.child.exitCode };
}

test("R12 a supervisor that slept through its takeover starts no program twice and loses its place", async () => {
  let slept = 0;
  for (let at = FULL ? 1 : 3; ; at += FULL ? 1 : 3) {
    const seen = await sleepAt(at);
    if (!seen) break;
    slept++;
    expect(["completed", "blocked_uncertain"], `commit ${at}`).toContain(seen.status);
    // Each line of the ledger is a program that ran; none ran for one attempt twice.
    expect(seen.starts, `commit ${at}`).toBeLessThanOrEqual(seen.attempts);
    expect(seen.ships, `commit ${at}`).toBeLessThanOrEqual(1);
    expect(seen.firstEnded, `commit ${at}`).not.toBeNull();
  }
  expect(slept).toBeGreaterThan(FULL ? 15 : 3);
}, 1_800_000);

test.skipIf(!STRACE)(
  "R20 kill -9 at the writes to disk of a run with every kind of step",
  async () => {
    let killed = 0;
    const calls = ["pwrite64", "fsync"] as const;
    for (const call of calls)
      for (let n = FULL ? 5 : 70; n < 2000; n += FULL ? 5 : 330) {
        const seen = await crashAt("never:0", {
          strace: [STRACE!, "-f", "-qq", "-o", "/dev/null", "-e", `trace=${call}`, "-e", `inject=${call}:signal=KILL:when=${n}`],
        });
        check(seen, `${call} ${n}`);
        if (!seen.killed) break;
        killed++;
      }
    expect(killed).toBeGreaterThan(1);
  },
  1_800_000,
);

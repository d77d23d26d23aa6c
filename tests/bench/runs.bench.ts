// The Runtime: a run of 1,000 echo steps on a real supervisor, what it uses while idle, and how fast events are appended with their outbox rows.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { newId } from "../../src/runtime/ids.ts";
import { startRuntime } from "../runtime/runtime-process.ts";
import { aRun, store, temporaryFolder } from "../runtime/support.ts";
import { cpuOfThis } from "./measure.ts";

const STEPS = 100;
const ROUNDS = 10;
const PROJECT = { projectId: "prj_bench_runs_1", name: "bench" };
const put = (root: string, path: string, content: object) => {
  mkdirSync(dirname(join(root, ".kxm", path)), { recursive: true });
  writeFileSync(join(root, ".kxm", path), JSON.stringify(content));
};

/** A workflow that goes round: the last step leads back to the first, as often as it may. */
function project(root: string): void {
  const steps = Array.from({ length: STEPS }, (_, n) => ({ id: `s${n}`, kind: "agent", agent: "a" }) as Record<string, unknown>);
  steps[STEPS - 1]!["on"] = { passed: { target: "s0", maxTransitions: ROUNDS }, done: { target: "$terminal", terminalStatus: "completed" } };
  put(root, "project.yaml", { schema: "kxm.project.v1", id: PROJECT.projectId, name: PROJECT.name, defaultWorkflow: "main", defaultHarness: "echo" });
  put(root, "agents/a.yaml", { schema: "kxm.agent.v1", purpose: "echoes" });
  put(root, "workflows/main.yaml", { schema: "kxm.workflow.v1", limits: { maxTransitions: STEPS * ROUNDS - 1 }, steps });
  Bun.spawnSync(["git", "init", "-q"], { cwd: root });
}

/** Resident memory in MiB and processor time in ticks of another process. */
function usedBy(pid: number): { rss: number; ticks: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
  return { rss, ticks: Number(fields[11]) + Number(fields[12]) };
}

async function longRun(): Promise<void> {
  using folder = temporaryFolder();
  const root = join(folder.path, "checkout");
  mkdirSync(root);
  project(root);
  await using runtime = await startRuntime(folder.path);
  const { pid } = runtime.facts!;
  const client = await runtime.client();
  const { projectKey } = await client.register({ root, ...PROJECT });
  const before = usedBy(pid);
  await new Promise((resume) => setTimeout(resume, 3000));
  const idle = usedBy(pid);
  console.log(`idle: ${idle.rss.toFixed(0)} MiB resident, ${(((idle.ticks - before.ticks) / 100 / 3) * 100).toFixed(1)} % of a processor`);
  const started = performance.now();
  const { result } = await client.command(projectKey, { commandId: newId("cmd"), kind: "start", payload: { prompt: "go round" }, actor: "bench" });
  const { intake } = await client.get(`/v1/projects/${projectKey}/intake/${result.intakeId}`, { waitMs: 8000 });
  let after = 0;
  for (let over = false; !over; ) {
    const { events, state } = await client.events(projectKey, intake.runId, { after, limit: 1000, waitMs: 5000 });
    after = events.at(-1)?.sequence ?? after;
    over = events.length === 0 && state.status !== "running";
  }
  const seconds = (performance.now() - started) / 1000;
  const busy = (usedBy(pid).ticks - idle.ticks) / 100;
  console.log(`a run of ${STEPS * ROUNDS} echo steps, ${after} events: ${seconds.toFixed(1)} s, ${busy.toFixed(1)} s of processor`);
  await runtime.kill("SIGTERM");
}

/** Appends in groups of 50, as a busy engine commits them, on a durable store. */
function appends(): void {
  using folder = temporaryFolder();
  const events = store({ path: folder.file("run-events.db") });
  const { runId } = events.commit((tx) => tx.createRun(aRun()));
  const [group, groups] = [50, 100];
  const [cpu, started] = [cpuOfThis(), performance.now()];
  for (let n = 0; n < groups; n++)
    events.commit((tx) => {
      for (let i = 0; i < group; i++)
        tx.append(runId, {
          type: "step.status_changed",
          payload: { stepId: "build", stepAttempt: 1, status: "running", summary: `a line of ${n} and ${i}` },
          local: { n, i },
        });
    });
  const seconds = (performance.now() - started) / 1000;
  const count = group * groups;
  console.log(
    `append with outbox row, ${group} a commit: ${Math.round(count / seconds).toLocaleString("en")}/s, ${((cpuOfThis() - cpu) / count).toFixed(0)} µs of processor each`,
  );
  events.close();
}

appends();
await longRun();

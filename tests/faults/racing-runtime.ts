// A Runtime that starts one agent process for the run it finds, by the rule "intent, commit, act, commit", and appends without pause who it is.
// Started many times at once, it must still start that process once.
import type { MakeEngine, Project } from "../../src/runtime/contract.ts";
import { isSameProcess, startOf } from "../../src/runtime/process-identity.ts";
import { startSupervisor } from "../../src/runtime/supervisor.ts";
import { intakeEngine } from "../runtime/intake-engine.ts";

export type RaceSetup = { root: string; agentLog: string; staleMs: number; heartbeatMs: number };
const { root, agentLog, staleMs, heartbeatMs }: RaceSetup = JSON.parse(process.argv[2]!);
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

const racing: MakeEngine = (parts) => {
  let agent: { pid: number; started: string | undefined } | undefined;
  let writing: Timer | undefined;

  function startAgent({ store }: Project, runId: string) {
    const attemptId = "att_0123456789";
    const row = { attemptId, runId, stepId: "build", stepAttempt: 1, assignmentId: "asg_0123456789", record: {} };
    store.commit((tx) => tx.attempts.save({ ...row, state: "starting" }));
    const child = Bun.spawn(["sh", "-c", `echo started >> '${agentLog}'; exec sleep 60`], { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
    child.unref();
    agent = { pid: child.pid, started: startOf(child.pid) };
    store.commit((tx) => tx.attempts.save({ ...row, state: "executing", pid: child.pid, pidStarted: agent!.started }));
  }

  return {
    ...intakeEngine(parts),
    opened: (project) => {
      const [run] = project.store.read.runs.open();
      if (!run) return;
      const [attempt] = project.store.read.attempts.open();
      try {
        if (!attempt) startAgent(project, run.runId);
        else if (attempt.pid !== undefined) agent = { pid: attempt.pid, started: attempt.pidStarted };
      } catch (error) {
        say({ refused: (error as { code?: string }).code });
        return;
      }
      const append = () =>
        project.store.commit((tx) =>
          tx.append(run.runId, { type: "run.status_changed", payload: { status: "running" }, local: { writer: process.pid } }),
        );
      writing = setInterval(() => {
        try {
          append();
        } catch (error) {
          say({ refused: (error as { code?: string }).code });
        }
      }, 2);
    },
    closed: () => clearInterval(writing),
    stop: async (withinMs) => {
      clearInterval(writing);
      if (withinMs > 0 && agent && isSameProcess(agent.pid, agent.started ?? null)) process.kill(agent.pid, "SIGKILL");
    },
  };
};

const supervisor = await startSupervisor({
  env: { ...process.env, KXM_RUNTIME_SYNC_INTERVAL_MS: "250" },
  version: "0.0.0",
  root,
  staleMs,
  heartbeatMs,
  makeEngine: racing,
}).catch((error) => {
  say({ lost: error.code });
  process.exit(3);
});
say({ serving: supervisor.generation, pid: process.pid });
process.once("SIGTERM", () => void supervisor.stop());
const { reason } = await supervisor.ended;
say({ ended: reason });
process.exit(0);

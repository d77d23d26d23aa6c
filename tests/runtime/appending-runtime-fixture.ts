// A Runtime whose engine appends an event when asked, with a shorter patience: for tests of rhythm and takeover.
import { RuntimeRefusal } from "../../src/protocol/runtime-errors.ts";
import type { MakeEngine, Project } from "../../src/runtime/contract.ts";
import { startSupervisor } from "../../src/runtime/supervisor.ts";
import { intakeEngine } from "./intake-engine.ts";
import { aRun, HASH } from "./support.ts";

const appending: MakeEngine = (parts) => {
  const projects = new Map<string, Project>();
  const engine = intakeEngine(parts);
  return {
    ...engine,
    effects: {
      ...engine.effects,
      approve: (tx, { runId, payload, actor }) => {
        if (tx.state(runId!)!.approvals[payload.approvalId]?.contentHash !== payload.contentHash)
          throw new RuntimeRefusal("run_not_accepting", "the run does not ask for this");
        const suppliedRefs = [{ id: payload.approvalId, kind: "approval-request", hash: payload.contentHash }];
        tx.append(runId!, {
          type: "approval.recorded",
          payload: { stepId: "approve", outcome: "passed", actor: { kind: "human", id: actor }, suppliedRefs },
        });
      },
    },
    opened: (project) => {
      projects.set(project.key, project);
      const [run] = project.store.read.runs.open();
      const summary = process.env["KXM_TEST_SAY"];
      if (run && summary) project.store.commit((tx) => tx.append(run.runId, { type: "run.status_changed", payload: { status: "running", summary } }));
    },
    routes: [
      {
        method: "POST",
        path: "/v1/projects/:projectKey/append",
        answer: ({ params }) => projects.get(params["projectKey"]!)!.store.commit((tx) => tx.createRun(aRun())),
      },
      {
        method: "POST",
        path: "/v1/projects/:projectKey/runs/:runId/append/:count",
        answer: ({ params }) => {
          const { store } = projects.get(params["projectKey"]!)!;
          for (let index = 0; index < Number(params["count"]); index++)
            store.commit((tx) => {
              const summary = `came as event ${tx.state(params["runId"]!)!.lastSequence + 1}`;
              tx.append(params["runId"]!, { type: "step.status_changed", payload: { stepId: "build", status: "running", summary } });
            });
        },
      },
      {
        method: "POST",
        path: "/v1/projects/:projectKey/ask",
        answer: ({ params }) => {
          const approvalId = parts.newId("apr");
          const contentHash = HASH;
          const refs = [{ id: approvalId, kind: "approval-request", hash: contentHash, status: "pending" }];
          return projects.get(params["projectKey"]!)!.store.commit((tx) => {
            const { runId } = tx.createRun(aRun());
            tx.append(runId, { type: "run.status_changed", payload: { status: "running" } });
            tx.append(runId, { type: "step.entered", payload: { stepId: "approve", stepAttempt: 1, status: "running" } });
            tx.append(runId, {
              type: "step.status_changed",
              payload: { stepId: "approve", stepAttempt: 1, status: "waiting", summary: "git push origin main", evidenceRefs: refs },
            });
            return { runId, approvalId, contentHash };
          });
        },
      },
    ],
  };
};
const { KXM_TEST_STALE_MS: stale, KXM_TEST_HEARTBEAT_MS: beat } = process.env;
const timing = { ...(stale && { staleMs: Number(stale) }), ...(beat && { heartbeatMs: Number(beat) }) };

const started = await startSupervisor({ env: process.env, version: "0.0.0", makeEngine: appending, ...timing }).catch((error) => {
  process.stderr.write(`${error.code}: ${error.message}\n`);
  process.exit(1);
});
const { runtimeId, port, generation, paths } = started;
process.stdout.write(`${JSON.stringify({ runtimeId, pid: process.pid, port, generation, stateRoot: paths.root })}\n`);
process.once("SIGTERM", () => void started.stop());
const { error } = await started.ended;
if (error) process.stderr.write(`${error.code}: ${error.message}\n`);
process.exit(error ? 1 : 0);

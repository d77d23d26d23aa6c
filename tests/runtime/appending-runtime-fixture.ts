// A Runtime whose engine appends an event when asked, with a shorter patience: for tests of rhythm and takeover.
import type { MakeEngine, Project } from "../../src/runtime/contract.ts";
import { startSupervisor } from "../../src/runtime/supervisor.ts";
import { intakeEngine } from "./intake-engine.ts";
import { aRun } from "./support.ts";

const appending: MakeEngine = (parts) => {
  const projects = new Map<string, Project>();
  const engine = intakeEngine(parts);
  return {
    ...engine,
    opened: (project) => void projects.set(project.key, project),
    routes: [
      {
        method: "POST",
        path: "/v1/projects/:projectKey/append",
        answer: ({ params }) => projects.get(params["projectKey"]!)!.store.commit((tx) => tx.createRun(aRun())),
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

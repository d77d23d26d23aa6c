// A real Runtime that is killed, as with kill -9, just before or just after its nth commit, or stopped there as a machine that sleeps. For run-crash.test.ts.
import type { MakeEngine, Project } from "../../src/runtime/contract.ts";
import { makeEngine } from "../../src/runtime/engine/engine.ts";
import { startSupervisor } from "../../src/runtime/supervisor.ts";

const [phase, at] = (process.env["KXM_TEST_KILL_AT"] ?? "never:0").split(":") as [string, string];
let commits = 0;

/** Everything that writes goes through the project's store: the engine, and commands. */
function deadly(project: Project): void {
  const { store } = project;
  const commit: typeof store.commit = (rule) => {
    const last = ++commits === Number(at);
    if (last && phase === "before") process.kill(process.pid, "SIGKILL");
    const value = store.commit(rule);
    if (last && phase === "after") process.kill(process.pid, "SIGKILL");
    if (last && phase === "stop") process.kill(process.pid, "SIGSTOP");
    return value;
  };
  const proxy = new Proxy(store, { get: (target, name) => (name === "commit" ? commit : Reflect.get(target, name)) });
  Object.assign(project, { store: proxy });
}

const engine: MakeEngine = (parts) => {
  const made = makeEngine(parts);
  return {
    ...made,
    opened: (project) => {
      deadly(project);
      made.opened(project);
    },
    routes: [...made.routes, { method: "GET", path: "/v1/commits", answer: () => ({ commits }) }],
  };
};

const { KXM_TEST_STALE_MS: stale, KXM_TEST_HEARTBEAT_MS: beat } = process.env;
const timing = { ...(stale && { staleMs: Number(stale) }), ...(beat && { heartbeatMs: Number(beat) }) };
const started = await startSupervisor({ env: process.env, version: "0.0.0", makeEngine: engine, ...timing });
const { runtimeId, port, generation, paths } = started;
process.stdout.write(`${JSON.stringify({ runtimeId, pid: process.pid, port, generation, stateRoot: paths.root })}\n`);
process.once("SIGTERM", () => void started.stop());
await started.ended;
process.exit(0);

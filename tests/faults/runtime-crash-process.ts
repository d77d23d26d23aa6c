// A scripted Runtime for the crash sweep: appends events, pushes them and marks them sent; started again on the same files it goes on where it stopped.
import { runtimeClient } from "../../src/client/runtime-client.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { newId } from "../../src/runtime/ids.ts";
import { knownSecrets } from "../../src/runtime/redact/known-secrets.ts";
import { createRedactor } from "../../src/runtime/redact/redactor.ts";
import { openEventStore } from "../../src/runtime/store/event-store.ts";
import { openPromptStore } from "../../src/runtime/store/prompts.ts";
import { pusher } from "../../src/runtime/sync/push.ts";
import { aRun, PROJECT_ID, RUNTIME_ID } from "../runtime/support.ts";

export type CrashSetup = { folder: string; hub: string; events: number; secret: string; token: string; mutant?: "raw" };

const { folder, hub, events, secret, token, mutant }: CrashSetup = JSON.parse(process.argv[2]!);
const known = knownSecrets();
known.add(secret, "env");
const honest = createRedactor(known);
// A mutant that scrubs nothing: the check for planted secrets must see it.
const redactor = mutant === "raw" ? { ...honest, secrets: (text: string) => ({ text, replaced: 0 }) } : honest;
const store = openEventStore({
  path: `${folder}/run-events.db`,
  projectId: PROJECT_ID,
  runtimeId: RUNTIME_ID,
  generation: 1,
  redactor,
  clock: systemClock,
  newId,
});
const prompts = openPromptStore(`${folder}/prompts.db`, { redactor, clock: systemClock });
const client = runtimeClient({ url: hub }, { project: "demo", runtimeId: RUNTIME_ID });
const push = pusher({ store, projectId: PROJECT_ID, clock: systemClock });

const promptHash = prompts.keep(`do it with ${secret} and ${token}`);
const { result: runId } = store.commit((tx) =>
  tx.commands.once(
    { commandId: "cmd_start_0001", kind: "start", request: {}, source: "cli", actor: "test" },
    () => tx.createRun(aRun({ promptHash })).runId,
  ),
) as { result: string };
for (let last = store.read.events.last(runId); last < events; last = store.read.events.last(runId)) {
  store.commit((tx) => {
    tx.append(runId, {
      type: "step.status_changed",
      payload: { stepId: "build", status: "running", summary: `printed ${secret} ${token} at ${last}` },
      local: { argv: ["x", secret, token] },
    });
    tx.attempts.save({
      attemptId: "att_0123456789",
      runId,
      stepId: "build",
      stepAttempt: 1,
      assignmentId: "asg_0123456789",
      state: `after ${last}`,
      record: { last },
    });
  });
  if (last % 3 === 0) await push.step(client);
}
while ((await push.step(client)) === "moved");
store.close();
prompts.close();
process.stdout.write(`${JSON.stringify({ runId })}\n`);

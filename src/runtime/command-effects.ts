// One way to change a run, whoever asks: the command's payload is checked, its effect runs once in the transaction that records it, and a repeat gets the
// first answer.
import { RuntimeRefusal } from "../protocol/runtime-errors.ts";
import { COMMAND_KINDS, type CommandKind, commandPayloadProblem } from "../protocol/sync.ts";
import type { CommandEffects, Project, ProjectCommand } from "./contract.ts";
import type { CommandOutcome } from "./store/commands.ts";

export const isCommandKind = (kind: unknown): kind is CommandKind => (COMMAND_KINDS as readonly unknown[]).includes(kind);

/**
 * Applies a command to a project.
 * @param hub for a command of the hub: its name and the command's number there; the cursor moves in the same transaction
 * @throws RuntimeRefusal command_conflict for an id that was used for something else; store_… when the store cannot take it
 */
export function applyCommand(
  effects: CommandEffects,
  project: Project,
  command: ProjectCommand,
  hub?: { name: string; seq: number },
): CommandOutcome<unknown> {
  const { commandId, kind, runId, payload, actor, source } = command;
  const effect = effects[kind] as CommandEffects[CommandKind];
  return project.store.commit((tx) =>
    tx.commands.once({ commandId, kind, runId, request: payload, source, actor, hub }, () => {
      const problem = commandPayloadProblem(kind, payload);
      if (problem !== undefined) throw new RuntimeRefusal("runtime_protocol_error", `the payload of ${kind} has no valid ${problem}`);
      if (runId !== undefined && !tx.runs.find(runId)) throw new RuntimeRefusal("run_not_found", `there is no run ${runId} in ${project.name}`);
      return effect(tx, command as never, project) ?? null;
    }),
  );
}

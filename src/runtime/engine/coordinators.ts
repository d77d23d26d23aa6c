// Who may hand work to a project: nobody named means everybody; once somebody is named, only they, and only for the workflows they are bound to.
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { Coordinator } from "../store/intake.ts";

/** What a coordinator is bound to. */
export type Binding = { actors: string[]; workflows?: string[] };
const ID = /^[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*$/;
const ACTORS_MAX = 64;

/**
 * The coordinator under whom an actor hands in work.
 * @returns undefined in a project that names none
 * @throws RuntimeRefusal command_refused when the project names coordinators and this actor is none of them, or not for this workflow
 */
export function coordinatorFor(coordinators: Coordinator[], actor: string, workflowId: string | undefined): string | undefined {
  const active = coordinators.filter(({ revokedAt }) => revokedAt === undefined);
  if (active.length === 0) return undefined;
  const bindings = active.map(({ coordinatorId, record }) => ({ coordinatorId, ...(record as Binding) }));
  const mine = bindings.filter(({ actors }) => actors.includes(actor));
  if (mine.length === 0)
    throw new RuntimeRefusal(
      "command_refused",
      `${actor} may not hand work to this project; ask ${bindings.map(({ coordinatorId }) => coordinatorId).join(" or ")}`,
    );
  const fitting = mine.find(({ workflows }) => workflows === undefined || (workflowId !== undefined && workflows.includes(workflowId)));
  if (!fitting)
    throw new RuntimeRefusal(
      "command_refused",
      `${actor} may hand in work for ${mine.flatMap(({ workflows }) => workflows ?? []).join(", ")}, not for ${workflowId ?? "the default workflow"}`,
    );
  return fitting.coordinatorId;
}

/** A binding from a request. @throws RuntimeRefusal runtime_protocol_error */
export function readBinding(id: unknown, body: Record<string, unknown>): { coordinatorId: string; binding: Binding } {
  const { actors, workflows } = body;
  const names = (value: unknown): value is string[] =>
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= ACTORS_MAX &&
    value.every((one) => typeof one === "string" && one.length > 0 && one.length <= 200);
  if (typeof id !== "string" || id.length > 64 || !ID.test(id))
    throw new RuntimeRefusal("runtime_protocol_error", "the coordinator's id must be small letters, digits, - and _");
  if (!names(actors)) throw new RuntimeRefusal("runtime_protocol_error", "actors must be 1 to 64 names such as cli:ana");
  if (workflows !== undefined && !names(workflows)) throw new RuntimeRefusal("runtime_protocol_error", "workflows must be 1 to 64 ids");
  return { coordinatorId: id, binding: { actors, ...(workflows !== undefined && { workflows }) } };
}

// Makes a run of handed-in work: the project's files are read and compiled now and pinned, whatever happens to them later.
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { Project } from "../contract.ts";
import type { Bundle } from "../project/bundle.ts";
import { CONCURRENT_RUNS_DEFAULT, compilePlan, type Plan, revisionsOf } from "../project/plan.ts";
import { REDACTION_VERSION, type Redactor } from "../redact/redactor.ts";
import type { IntakeRow } from "../store/intake.ts";
import type { EngineContext } from "./context.ts";
import type { Carried, Pinned } from "./local.ts";
import { carriedFrom, stillPinned, whyNotFrom } from "./retry.ts";

/** What a run will be, before anything of it is stored. */
export type Planned = { bundle: Bundle; plan: Plan; planHash: string; carried?: Carried };

/**
 * Compiles the plan of handed-in work, and finds what it goes on with when it begins in the middle.
 * @param bundle the project's files as they are now
 * @throws RuntimeRefusal project_conflict, project_invalid
 */
export function planRun(project: Project, { redactor }: Pick<EngineContext, "redactor">, bundle: Bundle, intake: IntakeRow): Planned {
  if (bundle.project.id !== project.projectId)
    throw new RuntimeRefusal(
      "project_conflict",
      `.kxm/project.yaml now has the id ${bundle.project.id}, this checkout is registered as ${project.projectId}`,
    );
  const workflowId = intake.workflowId ?? bundle.project.defaultWorkflow;
  if (!bundle.workflows.has(workflowId))
    throw new RuntimeRefusal("project_invalid", `no workflow is called ${workflowId}; there are ${[...bundle.workflows.keys()].join(", ")}`);
  const { plan, planHash } = compilePlan(bundle, workflowId);
  refuseSecretNames(plan, redactor);
  return { bundle, plan, planHash, carried: carriedBy(project, plan, intake) };
}

/** What a run that begins at a step goes on with. @throws RuntimeRefusal project_invalid when it may not, as the project's files are now */
function carriedBy(project: Project, plan: Plan, { retryOf, retryStepId }: IntakeRow): Carried | undefined {
  if (!retryOf || !retryStepId) return undefined;
  const { carried: then, plan: before } = carriedFrom(project, retryOf, retryStepId);
  const carried = { ...then, pinned: stillPinned(plan, before, then.pinned) };
  const why = whyNotFrom(plan, before, carried);
  if (why) throw new RuntimeRefusal("project_invalid", `run ${retryOf} cannot be run again from ${retryStepId}: ${why}`);
  return carried;
}

/**
 * One transaction: the run, its plan, its first events, and the message it came from.
 * @param repositories the commits it starts from
 * @param hasPlace whether a run may begin at once when so many places exist
 */
export function createRun(
  project: Project,
  { bundle, plan, planHash, carried }: Planned,
  intake: IntakeRow,
  repositories: Record<string, Pinned>,
  hasPlace: (places: number) => boolean,
): { runId: string; places: number; admitted: boolean } {
  const { intakeId, displayTitle, promptHash, source, submittedBy, retryOf, retryStepId } = intake;
  const { workflowId } = plan;
  const places = bundle.project.limits?.maxConcurrentRuns ?? CONCURRENT_RUNS_DEFAULT;
  const admitted = hasPlace(places);
  const runId = project.store.commit((tx) => {
    const made = tx.createRun(
      {
        workflowId,
        displayTitle,
        promptHash,
        source,
        createdBy: submittedBy,
        ...revisionsOf(bundle, REDACTION_VERSION),
        plan,
        planHash,
        detail: { intakeId, places },
        ...(retryOf && { retryOf: { runId: retryOf, stepId: retryStepId } }),
      },
      { planHash, repositories, ...(carried && { carried }) },
    );
    tx.append(made.runId, { type: "workspace.snapshot_pinned", payload: { status: "created", workflowId }, local: { repositories } });
    if (!admitted) {
      const reason = `waits for one of ${places} places`;
      tx.append(made.runId, { type: "run.status_changed", payload: { status: "queued", previousStatus: "created", reason } });
    }
    tx.intake.settle(intakeId, { state: "dispatched", runId: made.runId });
    return made.runId;
  });
  return { runId, places, admitted };
}

/**
 * An id that is also the value of a secret here would be taken out of every event, and the run could not be read again.
 * @throws RuntimeRefusal project_invalid
 */
function refuseSecretNames(plan: Plan, redactor: Redactor): void {
  const ids = [
    plan.workflowId,
    ...plan.steps.flatMap((step) => [step.id, step.gate, step.signal, ...step.outcomes, ...step.requiredEvidence.map(({ key }) => key)]),
    ...Object.keys(plan.agents),
  ].filter((id) => id !== undefined);
  const secret = ids.find((id) => redactor.secrets(id).replaced > 0);
  if (secret === undefined) return;
  throw new RuntimeRefusal("project_invalid", "an id in the workflow is also the value of a secret in the Runtime's environment", {
    hint: `Rename the ${plan.steps.some(({ id }) => id === secret) ? "step" : "id"} with ${secret.length} letters that starts with "${secret.slice(0, 2)}", or change the secret.`,
  });
}

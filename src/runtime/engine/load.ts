// Reads a run's knowledge from its stored events.
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import { PLAN_SCHEMA, type Plan } from "../project/plan.ts";
import type { EventRow } from "../store/events.ts";
import type { EngineContext } from "./context.ts";
import { type Execution, emptyExecution, fromRow, learn } from "./execution.ts";

const PAGE = 1000;

/** A run's stored events with a higher sequence than `after`, read a page at a time. */
export function* eventsAfter({ store }: Pick<EngineContext, "store">, runId: string, after: number): Generator<EventRow> {
  for (let last = after; ; ) {
    const page = store.read.events.after(runId, last, PAGE);
    yield* page;
    if (page.length < PAGE) return;
    last = page.at(-1)!.sequence;
  }
}

/** Learns what the store has of a run beyond what is known. */
export function catchUp(context: Pick<EngineContext, "store">, run: Execution): Execution {
  for (const row of eventsAfter(context, run.runId, run.lastSequence)) learn(run, fromRow(row));
  return run;
}

/** The plan that a run is pinned to. @throws RuntimeRefusal run_not_found, store_too_new */
export function planOf({ store }: Pick<EngineContext, "store">, runId: string): { plan: Plan; planHash: string } {
  const pinned = store.read.runs.planOf(runId);
  if (!pinned) throw new RuntimeRefusal("run_not_found", `there is no run ${runId} in this project`);
  const plan = pinned.plan as Plan;
  if (plan.schema !== PLAN_SCHEMA) throw new RuntimeRefusal("store_too_new", `run ${runId} has a plan of another version (${String(plan.schema)})`);
  return { plan, planHash: pinned.planHash };
}

/** Folds a run from its stored events. @throws RuntimeRefusal run_not_found, store_too_new */
export function load(context: Pick<EngineContext, "store">, runId: string): Execution {
  const { plan, planHash } = planOf(context, runId);
  return catchUp(context, emptyExecution(runId, plan, planHash));
}

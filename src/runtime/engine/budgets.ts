// Budgets of a run. A run that uses one up fails with budget_<name> and says the numbers; at 80 % of its money it stops to ask.
import type { Execution } from "./execution.ts";
import { openAttempts } from "./execution.ts";
import type { Setting } from "./moves.ts";

/** A budget that is used up. */
export type Breach = { code: string; sentence: string };
/** Share of the money at which a run pauses and asks. */
const SOFT_COST_SHARE = 0.8;
/** The same outcome with the same evidence this often in a row is no progress. */
const NO_PROGRESS_TIMES = 3;

const seconds = (ms: number) => `${Math.round(ms / 100) / 10} s`;

/** Time of agents so far, running ones included, in milliseconds. */
export function agentTime(run: Execution, ranMs: Setting["ranMs"]): number {
  const running = openAttempts(run).filter(({ kind, startedAt }) => kind === "agent" && startedAt !== undefined);
  return run.agentMs + running.reduce((sum, attempt) => sum + ranMs(attempt), 0);
}

/** The first budget that is used up at this moment; transitions and attempts are checked where they are taken. */
export function breach(run: Execution, setting: Setting): Breach | undefined {
  const { maxRunDurationMs, maxAgentTimeMs, maxModelCost, currency } = run.plan.limits;
  if (maxRunDurationMs !== undefined && setting.elapsedMs >= maxRunDurationMs)
    return { code: "budget_run_duration", sentence: `the run took ${seconds(setting.elapsedMs)}, ${seconds(maxRunDurationMs)} are allowed` };
  const agentMs = agentTime(run, setting.ranMs);
  if (maxAgentTimeMs !== undefined && agentMs >= maxAgentTimeMs)
    return { code: "budget_agent_time", sentence: `agents worked ${seconds(agentMs)}, ${seconds(maxAgentTimeMs)} are allowed` };
  if (maxModelCost !== undefined && run.cost >= maxModelCost)
    return { code: "budget_model_cost", sentence: `models cost ${run.cost.toFixed(4)} ${currency}, ${maxModelCost} are allowed` };
  return undefined;
}

/** Milliseconds until a time budget could be used up; undefined when none can. */
export function nextDeadline(run: Execution, setting: Setting): number | undefined {
  const { maxRunDurationMs, maxAgentTimeMs } = run.plan.limits;
  const working = openAttempts(run).filter(({ kind, startedAt }) => kind === "agent" && startedAt !== undefined).length;
  const left = [
    ...(maxRunDurationMs === undefined ? [] : [maxRunDurationMs - setting.elapsedMs]),
    ...(maxAgentTimeMs === undefined || working === 0 ? [] : [(maxAgentTimeMs - agentTime(run, setting.ranMs)) / working]),
  ];
  return left.length === 0 ? undefined : Math.max(0, Math.min(...left));
}

/** Whether the run should pause for its money now: at the soft limit, and not allowed to go on before. */
export function asksForMoney(run: Execution): { spent: number; limit: number } | undefined {
  const limit = run.plan.limits.maxModelCost;
  return limit !== undefined && run.allowed.cost === undefined && run.cost >= limit * SOFT_COST_SHARE ? { spent: run.cost, limit } : undefined;
}

/** Whether a step has ended the same way with the same evidence too often; each approval allows as many again. */
export function withoutProgress(run: Execution, stepId: string): number | undefined {
  const repeat = run.repeats[stepId];
  if (!repeat || repeat.hash.startsWith("passed:")) return undefined;
  const beyond = repeat.times - (run.allowed.noProgress[stepId] ?? 0);
  return beyond >= NO_PROGRESS_TIMES ? repeat.times : undefined;
}

// Tokens and cost of a run: in all, per model and per agent. An attempt reports its use several times as it grows; each report replaces the last.
import { type AttemptUsage, NO_CURRENCY, type RunProjection, type UsageSum } from "../protocol/runs.ts";
import type { SyncPayload } from "../protocol/sync-event.ts";
import { short, upsert } from "./projection-section.ts";

const SUMS_BYTES = 3_000; // models, and the same for agents
const CURRENCIES_MAX = 4;
const MODEL_CHARS = 120;
const TOKENS = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"] as const;

/** No use at all. @param name what it is the sum of: a model, an agent, or `total` */
export const emptySum = (name: string): UsageSum => ({
  name,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costs: {},
  estimated: false,
  unknown: 0,
});

/** A report of use: when, by what, and what the same attempt had reported before. */
export type Used = {
  at: string;
  usage: AttemptUsage;
  before: AttemptUsage | undefined;
  model: string | undefined;
  agentId: string | undefined;
  harness: string | undefined;
};

/** `provider/model`, as sums are named. */
export const modelName = ({ provider, model }: NonNullable<SyncPayload["model"]>): string => short(`${provider}/${model}`, MODEL_CHARS);

/** The part of a usage report that is kept. */
export const usageOf = ({ inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, cost, currency, costKind }: AttemptUsage): AttemptUsage => ({
  ...(inputTokens !== undefined && { inputTokens }),
  ...(outputTokens !== undefined && { outputTokens }),
  ...(cacheReadTokens !== undefined && { cacheReadTokens }),
  ...(cacheWriteTokens !== undefined && { cacheWriteTokens }),
  ...(cost !== undefined && { cost }),
  ...(currency !== undefined && { currency }),
  ...(costKind !== undefined && { costKind }),
});

/** Adds a report to every sum it belongs to, after taking out what the same attempt had reported before. */
export function addUsage(projection: RunProjection, { usage, before, model, agentId }: Used): void {
  const apply = (sum: UsageSum) => {
    if (before) count(sum, before, -1);
    count(sum, usage, 1);
  };
  apply(projection.usage);
  for (const [name, section] of [
    [model, projection.models],
    [agentId, projection.agents],
  ] as const) {
    if (name === undefined) continue;
    upsert(
      section,
      SUMS_BYTES,
      (sum) => sum.name === name,
      () => emptySum(name),
      apply,
    );
  }
}

function count(sum: UsageSum, usage: AttemptUsage, sign: 1 | -1) {
  for (const kind of TOKENS) sum[kind] = bounded(sum[kind] + sign * (usage[kind] ?? 0));
  if (usage.cost === undefined || usage.costKind === "unknown") {
    sum.unknown = bounded(sum.unknown + sign);
    return;
  }
  if (usage.costKind === "estimated" && sign === 1) sum.estimated = true;
  const currency = usage.currency ?? NO_CURRENCY;
  if (!Object.hasOwn(sum.costs, currency) && Object.keys(sum.costs).length >= CURRENCIES_MAX) {
    sum.unknown = bounded(sum.unknown + sign);
    return;
  }
  sum.costs[currency] = money((sum.costs[currency] ?? 0) + sign * usage.cost);
}

/** Within what JSON carries exactly; a sum whose earlier part was dropped from the lists never goes below nothing. */
const bounded = (value: number) => Math.min(Math.max(value, 0), Number.MAX_SAFE_INTEGER);
/** Millionths: adding and taking away floating cents must not leave dust. */
const money = (value: number) => Math.round(Math.min(Math.max(value, 0), 1e9) * 1e6) / 1e6;

/** Every token of a sum. */
export const tokensOf = (sum: UsageSum): number => TOKENS.reduce((total, kind) => total + sum[kind], 0);

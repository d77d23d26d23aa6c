// Estimates what a turn cost from list prices, only where the program did not say and all of its tokens are known. Never invents a number.
import type { PricesFile } from "../../protocol/project-files.ts";
import type { Usage } from "./result.ts";

const PER = 1_000_000;

/** The price row of a model: its exact name, else the longest prefix that ends in *. */
function priceOf(prices: PricesFile, model: string) {
  const exact = prices.models[model];
  if (exact) return exact;
  const prefixes = Object.keys(prices.models).filter((name) => name.endsWith("*") && model.startsWith(name.slice(0, -1)));
  const [longest] = prefixes.toSorted((a, b) => b.length - a.length);
  return longest === undefined ? undefined : prices.models[longest];
}

/** The usage with a cost, when one can be had. */
export function priced(usage: Usage, model: string | undefined, prices: PricesFile | undefined): Usage {
  if (usage.cost !== undefined || !prices || model === undefined) return usage;
  const price = priceOf(prices, model);
  if (!price || usage.inputTokens === undefined || usage.outputTokens === undefined) return usage;
  const parts: [number | undefined, number | undefined][] = [
    [usage.inputTokens, price.input],
    [usage.outputTokens, price.output],
    [usage.cacheReadTokens ?? 0, price.cacheRead],
    [usage.cacheWriteTokens ?? 0, price.cacheWrite],
  ];
  if (parts.some(([tokens, each]) => (tokens ?? 0) > 0 && each === undefined)) return usage;
  const cost = parts.reduce((sum, [tokens = 0, each = 0]) => sum + (tokens * each) / PER, 0);
  return { ...usage, cost, currency: prices.currency, costKind: "estimated" };
}

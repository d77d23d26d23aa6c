// What runs cost, as people read it. Invariant: nothing a person pays for is rounded away: what is small keeps its digits.
import { NO_CURRENCY } from "../protocol/runs.ts";

const SIGNS: Record<string, string> = { USD: "$", EUR: "€", GBP: "£" };

/** One amount: `$2.18`, `$0.0042`, `3.50 CHF`. */
export function amount(value: number, currency: string): string {
  const figure = value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: value < 0.1 ? 4 : 2 });
  if (Object.hasOwn(SIGNS, currency)) return `${SIGNS[currency]}${figure}`;
  return currency === NO_CURRENCY ? figure : `${figure} ${currency}`;
}

/** Amounts by currency, joined; undefined when nothing was reported. */
export function costOf(costs: Readonly<Record<string, number>>): string | undefined {
  const parts = Object.entries(costs).map(([currency, value]) => amount(value, currency));
  return parts.length === 0 ? undefined : parts.join(" + ");
}

/** Tokens as people compare them: `812`, `48.2 k`, `1.35 M`. */
export function tokens(count: number): string {
  if (count < 1_000) return String(count);
  return count < 1_000_000 ? `${(count / 1_000).toFixed(1)} k` : `${(count / 1_000_000).toFixed(2)} M`;
}

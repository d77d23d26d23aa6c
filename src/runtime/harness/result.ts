// What an agent program says it did, read from its structured output. Exit codes are not trusted: several programs exit 0 after doing nothing.
import type { Output } from "./launch.ts";

/** Tokens and money of one turn; what the program does not say stays away, never zero. */
export type Usage = {
  inputTokens?: number;
  outputTokens?: number;
  cacheReadTokens?: number;
  cacheWriteTokens?: number;
  cost?: number;
  currency?: string;
  costKind: "reported" | "estimated" | "unknown";
};

/** Why a turn gave no answer. The class is an identifier that the hub may see; the sentence stays here. */
export type Failure = { class: string; sentence: string; retryable: boolean };

/** One turn as the program reports it: an answer or a failure. */
export type Turn = { reply?: string; failure?: Failure; sessionId?: string; model?: string; usage: Usage };

/** Anything from a program's JSON; looked at with care. */
export type Json = Record<string, any>;
export const UNKNOWN_USAGE: Usage = { costKind: "unknown" };

/** The objects of a JSON-lines output. Lines that are something else are noise that programs print around it. */
export function jsonLines(text: string): Json[] {
  const objects: Json[] = [];
  for (const line of text.split("\n")) {
    if (!line.startsWith("{")) continue;
    try {
      objects.push(JSON.parse(line));
    } catch {
      // A line cut off by a kill, or not JSON at all.
    }
  }
  return objects;
}

/** One JSON object that may have lines of noise before and after it. */
export function jsonObject(text: string): Json | undefined {
  for (let start = text.indexOf("{"); start !== -1; start = text.indexOf("\n{", start + 1)) {
    const end = text.lastIndexOf("}");
    if (end < start) return undefined;
    try {
      return JSON.parse(text.slice(text[start] === "\n" ? start + 1 : start, end + 1));
    } catch {
      // Perhaps it begins further down.
    }
  }
  return undefined;
}

const count = (value: unknown): number | undefined => (Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined);
const amount = (value: unknown): number | undefined => (typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined);

/**
 * Usage from whatever members a program has; a reported cost only where it is a number. A cost of 0 for tokens that were used says that the program
 * knows no price of the model: that is unknown, not free.
 */
export function usage(given: { input?: unknown; output?: unknown; cacheRead?: unknown; cacheWrite?: unknown; cost?: unknown }): Usage {
  const said = amount(given.cost);
  const used = (count(given.input) ?? 0) + (count(given.output) ?? 0) > 0;
  const cost = said === 0 && used ? undefined : said;
  return {
    inputTokens: count(given.input),
    outputTokens: count(given.output),
    cacheReadTokens: count(given.cacheRead),
    cacheWriteTokens: count(given.cacheWrite),
    ...(cost === undefined ? { costKind: "unknown" as const } : { cost, currency: "USD", costKind: "reported" as const }),
  };
}

/** Adds up what several model calls of one turn used. Unknown plus something is the something. */
export function addUsage(all: Usage[]): Usage {
  const sum = (pick: (one: Usage) => number | undefined) => {
    const known = all.map(pick).filter((value) => value !== undefined);
    return known.length > 0 ? known.reduce((a, b) => a + b, 0) : undefined;
  };
  const cost = sum((one) => one.cost);
  return {
    inputTokens: sum((one) => one.inputTokens),
    outputTokens: sum((one) => one.outputTokens),
    cacheReadTokens: sum((one) => one.cacheReadTokens),
    cacheWriteTokens: sum((one) => one.cacheWriteTokens),
    ...(cost === undefined ? { costKind: "unknown" as const } : { cost, currency: "USD", costKind: "reported" as const }),
  };
}

/** Sorts a provider's or program's complaint into a class by its status or words. */
export function failureFor(text: string, status?: number): Failure {
  const said = text.toLowerCase();
  const has = (...words: string[]) => words.some((word) => said.includes(word));
  if (status === 401 || status === 403 || has("not logged in", "unauthorized", "api key", "authentication", "please run /login", "401"))
    return { class: "not_signed_in", sentence: "the provider refused the sign-in; sign the program in or set its key, then retry", retryable: false };
  if (has("quota", "usage limit", "insufficient_quota", "billing", "credit balance"))
    return { class: "quota_exhausted", sentence: "the provider's quota is used up; wait until it renews, then retry", retryable: true };
  if (status === 429 || has("rate limit", "rate_limit", "too many requests", "429"))
    return { class: "rate_limited", sentence: "the provider asked to slow down", retryable: true };
  if (
    (status !== undefined && status >= 500) ||
    has("overloaded", "server_error", "internal server error", "503", "529", "econnrefused", "enotfound")
  )
    return { class: "provider_unavailable", sentence: "the provider did not answer properly", retryable: true };
  return { class: "provider_error", sentence: "the provider refused the request; see the attempt's transcript", retryable: true };
}

/** The failure of a program whose output holds no result at all. */
export function noResult(output: Output): Failure {
  if (output.stdoutDropped > 0)
    return { class: "output_too_large", sentence: "the program printed more than is kept, its result is lost", retryable: false };
  const words = `${output.stderr.slice(-4000)}\n${output.stdout.slice(-4000)}`;
  const known = failureFor(words);
  if (known.class !== "provider_error") return known;
  return { class: "no_result", sentence: `the program ended (${output.exitCode ?? "killed"}) without a result`, retryable: true };
}

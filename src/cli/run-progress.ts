// A run's events as lines for people, and the one line at the bottom that lives: step, attempts, elapsed, tokens, cost, what it waits for.
import type { Output, World } from "./output.ts";
import { harmlessJson, oneLine, visible } from "./output.ts";

/** An event as the local API gives it. */
export type RunEvent = { runId: string; sequence: number; eventType: string; occurredAt: number; payload: Record<string, any> };
/** What the line at the bottom shows. */
export type Progress = {
  started: number;
  step?: string;
  attempt?: number;
  status: string;
  reason?: string;
  tokens: number;
  cost: number;
  currency: string;
  costKnown: boolean;
  stepsDone: number;
};

/** A run of which nothing was heard yet. */
export const newProgress = (): Progress => ({
  started: Date.now(),
  status: "created",
  tokens: 0,
  cost: 0,
  currency: "USD",
  costKnown: true,
  stepsDone: 0,
});

/** Learns one event. */
export function follow(progress: Progress, { eventType, payload, occurredAt }: RunEvent): void {
  if (eventType === "run.created") progress.started = occurredAt;
  if (eventType === "run.status_changed") {
    progress.status = payload["status"];
    progress.reason = payload["reason"];
  }
  if (eventType === "step.entered") {
    progress.step = payload["stepId"];
    progress.attempt = payload["stepAttempt"];
  }
  if (eventType === "step.outcome_recorded") progress.stepsDone++;
  if (eventType !== "assignment.result_recorded") return;
  const usage = payload["usage"] ?? {};
  progress.tokens += (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0);
  progress.cost += usage.cost ?? 0;
  progress.currency = usage.currency ?? progress.currency;
  if (usage.costKind === "unknown") progress.costKnown = false;
}

/** A time span as people say it. */
export function elapsed(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes}m ${seconds % 60}s` : `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
}

/** Money and tokens of a run; a part that is unknown says so. */
export const spent = ({ tokens, cost, currency, costKnown }: Pick<Progress, "tokens" | "cost" | "currency" | "costKnown">): string =>
  [tokens > 0 ? `${tokens} tokens` : "", cost > 0 ? `${cost.toFixed(4)} ${currency}` : "", costKnown ? "" : "cost unknown"]
    .filter(Boolean)
    .join(", ");

/** The line at the bottom. */
export const statusLine = (progress: Progress, now: number): string =>
  [
    progress.status,
    progress.step ? `step ${progress.step}${(progress.attempt ?? 1) > 1 ? ` (attempt ${progress.attempt})` : ""}` : "",
    `${progress.stepsDone} done`,
    elapsed(now - progress.started),
    spent(progress),
    progress.status === "running" ? "" : (progress.reason ?? ""),
  ]
    .filter(Boolean)
    .join(" · ");

/** One event as a line; undefined for those that only matter to programs. */
export function eventLine({ eventType, payload, occurredAt }: RunEvent): { text: string; tone?: "good" | "bad" | "warn" | "dim" } | undefined {
  const at = new Date(occurredAt).toISOString().slice(11, 19);
  const line = (text: string, tone?: "good" | "bad" | "warn" | "dim") => ({ text: `${at}  ${oneLine(text, 300)}`, ...(tone && { tone }) });
  const { stepId = "", status, outcome, summary, reason, agentId, stepAttempt } = payload;
  switch (eventType) {
    case "run.created":
      return line(`run ${payload["displayTitle"] ? `"${payload["displayTitle"]}" ` : ""}of workflow ${payload["workflowId"]}`);
    case "run.status_changed": {
      const tone =
        status === "completed" ? "good" : status === "failed" || status === "blocked_uncertain" ? "bad" : status === "waiting" ? "warn" : "dim";
      return status === "preparing" ? undefined : line(`run ${status}${reason ? `: ${reason}` : ""}`, tone);
    }
    case "step.entered":
      return line(`${stepId}: started${stepAttempt > 1 ? ` (attempt ${stepAttempt})` : ""}`);
    case "assignment.executing":
      return line(`${stepId}: ${agentId} works`, "dim");
    case "assignment.reattaching":
      return line(`${stepId}: taken up again`, "warn");
    case "assignment.retry_pending":
      return line(`${stepId}: ${agentId} will try again: ${reason ?? ""}`, "warn");
    case "step.outcome_recorded":
      return line(`${stepId}: ${outcome}${summary && summary !== outcome ? ` – ${summary}` : ""}`, outcome === "passed" ? "good" : "warn");
    case "step.status_changed":
      return status === "waiting" ? line(`${stepId}: waits – ${summary ?? reason ?? ""}`, "warn") : undefined;
    case "effect.blocked_uncertain":
      return line(`${stepId}: uncertain – ${reason ?? ""}`, "bad");
    case "approval.recorded":
      return line(`${stepId}: ${outcome} by ${payload["actor"]?.id ?? "somebody"}${reason ? ` – ${reason}` : ""}`);
    case "lease.acquired":
    case "lease.lost":
    case "lease.released":
      return line(`${stepId}: lease ${eventType.slice(6)}`, "dim");
    default:
      return undefined;
  }
}

/** Shows events as they come: lines, and on a terminal a last line that is rewritten. With --json one line per event. */
export function progressView(world: World, out: Output) {
  const progress = newProgress();
  const live = world.stdout.isTTY && !out.json;
  let shown = false;
  const clear = () => {
    if (shown) world.stdout.write("\r\u001b[K");
    shown = false;
  };
  return {
    progress,
    show: (event: RunEvent): void => {
      follow(progress, event);
      if (out.json) return void world.stdout.write(`${harmlessJson(event)}\n`);
      const line = eventLine(event);
      if (!line) return;
      clear();
      out.line(line.tone ? out.styled(line.tone, line.text) : line.text);
    },
    tick: (): void => {
      if (!live) return;
      clear();
      const width = (world.stdout.columns ?? 100) - 1;
      world.stdout.write(out.styled("dim", visible(statusLine(progress, Date.now())).slice(0, width)));
      shown = true;
    },
    end: clear,
  };
}

// A worker: an agent at the hub that is always there. A request that arrives starts a turn of its harness; the final answer becomes the reply. What fails
// leaves the request open and is tried again later. While nothing arrives, nothing runs and nothing is spent.
import { join } from "node:path";
import { backoffMs } from "../../client/backoff.ts";
import { HubRefusal } from "../../client/http.ts";
import { readFrames } from "../../client/sse.ts";
import { MESSAGE_CONTENT_MAX } from "../../protocol/limits.ts";
import type { Message } from "../../protocol/messages.ts";
import { type Clock, elapsed } from "../clock.ts";
import type { Workspace } from "../engine/local.ts";
import { type Stop, stopper } from "../engine/supervise.ts";
import type { Failure, Turn } from "../harness/result.ts";
import type { HubAgent } from "../hub-agent.ts";
import type { Log } from "../log.ts";
import type { Programs } from "../machine.ts";
import { readPrivate, writePrivate } from "../paths.ts";
import type { WorkerSpec } from "./spec.ts";
import { clearTurn, type Session, type TurnContext, takeTurn } from "./turn.ts";

const HEARTBEAT_MS = 10_000;
/** Looked at without a signal, in case one was lost. */
const INBOX_MS = 30_000;
const RECONNECT = { firstMs: 500, maxMs: 30_000 };
/** How long a failed request waits before it is tried again. A quota needs more patience than a crash. */
const AFTER_FAILURE = { firstMs: 2_000, maxMs: 300_000 };
const AFTER_QUOTA = { firstMs: 60_000, maxMs: 1_800_000 };
/** Failures that every request would meet, whatever it asks: all of them wait. After any other only the request that failed does. */
const OF_THE_PROVIDER = ["quota_exhausted", "rate_limited", "provider_unavailable", "not_signed_in", "harness_missing"];
/** Open requests that are looked at: more than so many that fail each time would keep later ones waiting. */
const INBOX_MAX = 100;
const SESSIONS_MAX = 200;
const CUT = "\n[the answer was longer and is cut here]";

export type WorkerOptions = {
  spec: WorkerSpec;
  agent: HubAgent;
  folder: string;
  /** Makes the folder it works in ready. */
  workspace: () => Promise<Workspace>;
  env: Record<string, string | undefined>;
  clock: Clock;
  programs: Programs;
  /** @throws RuntimeRefusal store_fenced when another Runtime has the checkout by now */
  confirm: () => void;
  log: Log;
  /** Takes secrets out of what is shown. */
  redact: (text: string) => string;
  /** Shorter waits, for tests. */
  afterFailure?: { firstMs: number; maxMs: number };
};
export type WorkerReport = {
  name: string;
  harness: string;
  state: "connecting" | "idle" | "working" | "backing_off" | "stopped";
  agentId?: string;
  messageId?: string;
  turns: number;
  failures: number;
  lastError?: string;
  nextAttemptAt?: string;
};

export class Worker {
  private readonly stopping = new AbortController();
  private readonly report_: WorkerReport;
  private wake = Promise.withResolvers<void>();
  private current: { message: Message; stop: Stop } | undefined;
  private sessions: Record<string, Session>;
  /** Of failures of the provider, since the last answer. */
  private failures = 0;
  private notBefore = 0;
  /** Requests that failed by themselves: how often, and until when each waits. */
  private readonly retries = new Map<string, { failures: number; notBefore: number }>();
  private running: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: WorkerOptions) {
    const { spec, folder } = options;
    this.report_ = { name: spec.name, harness: spec.harness, state: "connecting", turns: 0, failures: 0 };
    this.sessions = JSON.parse(readPrivate(join(folder, "sessions.json")) ?? "{}");
  }

  start(): void {
    this.running = Promise.all([this.listen(), this.beat(), this.work()]);
  }

  report(): WorkerReport {
    return { ...this.report_ };
  }

  /** Ends it. @param how `suspend` ends its program; `leave` lets it run for the next Runtime */
  async end(how: "suspend" | "leave"): Promise<void> {
    this.stopping.abort();
    this.current?.stop.ask(how);
    this.wake.resolve();
    await this.running;
    this.report_.state = "stopped";
  }

  private get ended(): boolean {
    return this.stopping.signal.aborted;
  }

  /** Says that it is there. */
  private async beat(): Promise<void> {
    while (!this.ended) {
      try {
        this.report_.agentId = await this.options.agent.id();
        await this.options.agent.ask("POST", "/v1/agents/{me}/heartbeat", { timeoutMs: HEARTBEAT_MS, signal: this.stopping.signal });
      } catch (error) {
        this.note(error);
      }
      await this.pause(HEARTBEAT_MS);
    }
    // Gone in order: the others see it at once.
    await this.options.agent.ask("DELETE", "/v1/agents/{me}", { timeoutMs: 2_000 }).catch(() => undefined);
  }

  /** Hears of new and cancelled requests. */
  private async listen(): Promise<void> {
    let failed = 0;
    while (!this.ended) {
      try {
        const id = await this.options.agent.id();
        const response = await this.options.agent.open("/v1/events", { query: { agentId: id }, signal: this.stopping.signal });
        failed = 0;
        this.wakeUp();
        for await (const frame of readFrames(response)) {
          if (frame.event === "message" || frame.event === "reset") this.wakeUp();
          if (frame.event === "cancelled" || frame.event === "expired") this.dropped(JSON.parse(frame.data).message?.id);
        }
      } catch (error) {
        this.note(error);
      }
      if (!this.ended) await this.pause(backoffMs(++failed, undefined, RECONNECT));
    }
  }

  /** Answers one request after another, oldest first. */
  private async work(): Promise<void> {
    while (!this.ended) {
      const wait = this.notBefore - elapsed(this.options.clock);
      if (wait > 0) {
        this.report_.state = "backing_off";
        await this.pause(wait);
        continue;
      }
      const woken = this.wake.promise;
      const { message, waitMs } = await this.next();
      if (message) await this.answer(message);
      else {
        if (!this.ended) this.report_.state = waitMs !== undefined ? "backing_off" : this.report_.agentId ? "idle" : "connecting";
        await Promise.race([woken, this.pause(Math.min(waitMs ?? INBOX_MS, INBOX_MS))]);
      }
    }
  }

  /** The oldest request that does not wait after a failure; else how long the first of those that do still waits. */
  private async next(): Promise<{ message?: Message; waitMs?: number }> {
    try {
      const { body } = await this.options.agent.ask("GET", "/v1/agents/{me}/inbox", {
        query: { limit: INBOX_MAX },
        timeoutMs: 10_000,
        signal: this.stopping.signal,
      });
      const open: Message[] = body.messages;
      for (const id of this.retries.keys()) if (!open.some((one) => one.id === id)) this.retries.delete(id); // it has ended
      const now = elapsed(this.options.clock);
      const waits = open.map(({ id }) => Math.max(0, (this.retries.get(id)?.notBefore ?? 0) - now));
      const due = waits.indexOf(0);
      return due !== -1 ? { message: open[due] } : waits.length > 0 ? { waitMs: Math.min(...waits) } : {};
    } catch (error) {
      this.note(error);
      return {};
    }
  }

  private async answer(message: Message): Promise<void> {
    const stop = stopper();
    this.current = { message, stop };
    Object.assign(this.report_, { state: "working", messageId: message.id });
    let context: TurnContext | undefined;
    try {
      context = { ...this.options, workspace: await this.options.workspace(), stop };
      await this.options.agent.ask("POST", `/v1/messages/${message.id}/ack`, { body: { phase: "turn" }, timeoutMs: 10_000 });
      const turn = await takeTurn(context, message, this.sessionOf(message));
      if (turn === undefined) return;
      if (turn.failure || turn.reply === undefined) {
        clearTurn(context, message);
        return this.failed(message, turn.failure ?? { class: "no_result", sentence: "the program gave no answer", retryable: true }, turn.said);
      }
      await this.reply(message, turn);
      clearTurn(context, message);
    } catch (error) {
      this.refused(message, error);
    } finally {
      this.current = undefined;
      this.report_.messageId = undefined;
    }
  }

  /** The answer stays in its folder until the hub has it: a Runtime that ends between the two sends it after its restart. */
  private async reply(message: Message, turn: Turn): Promise<void> {
    const text = turn.reply!.trim() || "(no text)";
    const content = text.length > MESSAGE_CONTENT_MAX ? text.slice(0, MESSAGE_CONTENT_MAX - CUT.length) + CUT : text;
    await this.options.agent.ask("POST", `/v1/messages/${message.id}/reply`, { body: { content }, timeoutMs: 30_000 });
    this.failures = 0;
    this.report_.turns++;
    this.report_.lastError = undefined;
    this.report_.nextAttemptAt = undefined;
    this.keepSession(message, turn);
  }

  /** A refusal that says the message has ended is the end of it; anything else is tried again. */
  private refused(message: Message, error: unknown): void {
    if (error instanceof HubRefusal && ["duplicate_reply", "invalid_message_state", "message_not_found"].includes(error.code)) return;
    this.failed(message, { class: "internal_error", sentence: error instanceof Error ? error.message : String(error), retryable: true });
  }

  /** @param said the last words of the program, for whoever looks why */
  private failed(message: Message, failure: Failure, said = ""): void {
    const shared = OF_THE_PROVIDER.includes(failure.class);
    const failures = 1 + (shared ? this.failures : (this.retries.get(message.id)?.failures ?? 0));
    this.report_.failures++;
    const patience = failure.class === "quota_exhausted" || failure.class === "rate_limited" || !failure.retryable ? AFTER_QUOTA : AFTER_FAILURE;
    const wait = backoffMs(failures, undefined, this.options.afterFailure ?? patience);
    const notBefore = elapsed(this.options.clock) + wait;
    if (shared) {
      this.failures = failures;
      this.notBefore = notBefore;
    } else this.retries.set(message.id, { failures, notBefore });
    this.report_.lastError = `${failure.class}: ${failure.sentence}${said && ` (${this.options.redact(said)})`}`;
    this.report_.nextAttemptAt = new Date(this.options.clock.now() + wait).toISOString();
    // A session that cannot be taken up again must not fail every further try.
    delete this.sessions[this.threadOf(message)];
    this.options.log("worker_turn_failed", { level: "warn", kind: this.options.spec.name, code: failure.class, reason: failure.sentence });
  }

  private dropped(messageId: string | undefined): void {
    if (this.current && this.current.message.id === messageId) this.current.stop.ask("stop");
    this.wakeUp();
  }

  private threadOf = (message: Message): string => message.correlationId ?? message.from;

  private sessionOf(message: Message): Session {
    return this.sessions[this.threadOf(message)] ?? { id: crypto.randomUUID(), resume: false };
  }

  private keepSession(message: Message, turn: Turn): void {
    if (!turn.sessionId) return;
    this.sessions[this.threadOf(message)] = { id: turn.sessionId, resume: true };
    const kept = Object.entries(this.sessions).slice(-SESSIONS_MAX);
    this.sessions = Object.fromEntries(kept);
    writePrivate(join(this.options.folder, "sessions.json"), JSON.stringify(this.sessions));
  }

  private wakeUp(): void {
    const before = this.wake;
    this.wake = Promise.withResolvers();
    before.resolve();
  }

  private note(error: unknown): void {
    if (!this.ended) this.report_.lastError = error instanceof Error ? error.message : String(error);
  }

  /** Waits, but not beyond the worker's end. */
  private pause(ms: number): Promise<void> {
    if (this.ended) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const callOff = this.options.clock.after(ms, resolve);
    const over = () => resolve();
    this.stopping.signal.addEventListener("abort", over, { once: true });
    return promise.finally(() => {
      callOff();
      this.stopping.signal.removeEventListener("abort", over);
    });
  }
}

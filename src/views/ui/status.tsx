// What is, said in four parts: shape, word, reason, age. Invariant: STATES is the only place where a state gets its tone and its icon.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Icon, type IconName } from "./icon.tsx";

/** ok: done or alive · run: moving · attn: a person is needed, or uncertain · bad: broken · mute: idle, unknown, ended. */
export type Tone = "ok" | "run" | "attn" | "bad" | "mute";

/** State → tone and icon. The icon's outline differs per state, so that it survives greyscale. */
export const STATES = {
  // agents and Runtimes
  online: ["ok", "ok"],
  working: ["run", "run"],
  idle: ["mute", "idle"],
  away: ["mute", "paused"],
  "lost contact": ["bad", "lost"],
  unknown: ["mute", "unknown"],
  offline: ["mute", "cancelled"],
  retired: ["mute", "cancelled"],
  draining: ["run", "sync"],
  "needs you": ["attn", "person"],
  // runs, steps, attempts, assignments
  created: ["mute", "queued"],
  planned: ["mute", "queued"],
  queued: ["mute", "queued"],
  offered: ["mute", "queued"],
  accepted: ["run", "arrow"],
  declined: ["mute", "cancelled"],
  preparing: ["run", "run"],
  starting: ["run", "run"],
  dispatched: ["run", "arrow"],
  executing: ["run", "run"],
  running: ["run", "run"],
  reattaching: ["attn", "retry"],
  "retry pending": ["attn", "retry"],
  "result recorded": ["run", "check"],
  settling: ["run", "run"],
  settled: ["ok", "ok"],
  waiting: ["attn", "wait"],
  paused: ["mute", "paused"],
  blocked: ["attn", "blocked"],
  uncertain: ["attn", "uncertain"],
  cancelling: ["attn", "cancelled"],
  cancelled: ["mute", "cancelled"],
  completed: ["ok", "ok"],
  failed: ["bad", "bad"],
  skipped: ["mute", "cancelled"],
  passed: ["ok", "ok"],
  warning: ["attn", "attn"],
  pending: ["mute", "queued"],
  "in progress": ["run", "run"],
  "not started": ["mute", "queued"],
  timeout: ["bad", "expired"],
  closed: ["mute", "cancelled"],
  terminal: ["mute", "ok"],
  // messages
  stored: ["mute", "queued"],
  pushed: ["run", "arrow"],
  delivered: ["run", "messages"],
  "turn started": ["run", "run"],
  replied: ["ok", "ok"],
  expired: ["bad", "expired"],
  "dead letter": ["bad", "bad"],
  error: ["bad", "bad"],
  // leases, evidence, decisions
  held: ["ok", "lock"],
  lapsed: ["bad", "expired"],
  free: ["mute", "idle"],
  met: ["ok", "ok"],
  missing: ["attn", "wait"],
  refused: ["bad", "bad"],
  approved: ["ok", "ok"],
  rejected: ["bad", "bad"],
  acknowledged: ["ok", "check"],
  applied: ["ok", "ok"],
  received: ["run", "arrow"],
  verified: ["ok", "ok"],
  // budgets
  within: ["ok", "ok"],
  near: ["attn", "attn"],
  over: ["bad", "bad"],
  // sync, webhooks, tokens, knowledge
  conflict: ["bad", "attn"],
  gap: ["attn", "attn"],
  synced: ["ok", "ok"],
  degraded: ["attn", "attn"],
  active: ["ok", "ok"],
  revoked: ["mute", "cancelled"],
  proposed: ["attn", "person"],
  promoted: ["ok", "ok"],
  superseded: ["mute", "cancelled"],
  quarantined: ["attn", "blocked"],
} as const satisfies Record<string, readonly [Tone, IconName]>;

export type State = keyof typeof STATES;

/** Words of the wire that operators read under another name. */
const ALIASES: Record<string, State> = {
  blocked_uncertain: "uncertain",
  lost: "lost contact",
  connection_lost: "lost contact",
  turn_started: "turn started",
  dead_letter: "dead letter",
  needs_you: "needs you",
  timed_out: "timeout",
};

/** The state for a word of the wire (`retry_pending`, `blocked_uncertain`). A word this hub does not know is `unknown`: show it as `word`. */
export function stateOf(word: string): State {
  const spoken = Object.hasOwn(ALIASES, word) ? ALIASES[word]! : word.replaceAll("_", " ");
  return Object.hasOwn(STATES, spoken) ? (spoken as State) : "unknown";
}

export const toneOf = (state: State): Tone => STATES[state][0];

type StatusProps = {
  state: State;
  /** The evidence: `heartbeat <Ago …>`, `approval pending since 13:50`. */
  why?: Child;
  /** Another word than the state's own. */
  word?: string;
  /** Milliseconds after which the evidence (the `<time>` in `why`) is too old; the browser then marks it by itself. */
  bound?: number;
  /** The reason below the word instead of beside it. */
  stack?: boolean;
  /** The evidence is older than its bound already. */
  stale?: boolean;
  /** The word in plain ink, for labels of rows. */
  plain?: boolean;
};

/** Shape, word, reason and age. Never show a state without its reason where there is room for one. */
export const Status = ({ state, why, word = state, bound, stack, stale, plain }: StatusProps) => {
  const [tone, icon] = STATES[state];
  return (
    <span class={["status", `status--${tone}`, stack && "status--stack", stale && "status--stale", plain && "status--plain"]} data-bound={bound}>
      <Icon name={icon} />
      <span class="status__word">{word}</span>
      {why !== undefined && why !== null && <span class="status__why">{why}</span>}
    </span>
  );
};

/** A state inside running text. Elsewhere use Status, which says why. */
export const Badge = ({ state, text = state, stale }: { state: State; text?: string; stale?: boolean }) => (
  <span class={["badge", `badge--${STATES[state][0]}`, stale && "badge--stale"]}>
    <Icon name={STATES[state][1]} />
    {text}
  </span>
);

// How an agent is doing, in words with evidence and age. One place, so that lists, pages and the fleet say the same.
/** @jsxImportSource #jsx */
import type { AgentRow } from "../db/schema.ts";
import { presenceOf } from "../hub/agents.ts";
import type { Hub } from "../hub/hub.ts";
import { listensSince } from "../hub/presence.ts";
import type { PipState } from "./ui/fleet.tsx";
import { Status } from "./ui/status.tsx";
import { Ago, words } from "./ui/time.tsx";

/** What is known of an agent's presence at a time. */
export type Presence = {
  state: "working" | "online" | "idle" | "unknown" | "lost contact" | "offline" | "retired";
  /** When it gave its last sign of life, or was retired. */
  at: number;
  /** Milliseconds of silence after which it counts as lost. */
  bound: number;
  /** Of the unknown: since when this hub listens again. */
  listensSince?: number;
};

/** @param work whether it has started on an open request, and whether any is open */
export function presenceAt(hub: Hub, agent: AgentRow, now: number, work: { begun: boolean; open: boolean }): Presence {
  const bound = hub.settings.staleMs;
  if (agent.retiredAt !== null) return { state: "retired", at: agent.retiredAt, bound };
  const at = agent.online === 1 ? hub.presence.lastSeen(agent.id, agent.lastSeenAt) : agent.lastSeenAt;
  const word = presenceOf(hub, agent, now);
  if (word === "online") return { state: work.begun ? "working" : work.open ? "online" : "idle", at, bound };
  const since = listensSince(hub, agent, now);
  if (since !== undefined) return { state: "unknown", at, bound, listensSince: since };
  // A command at a terminal that made its one call is not lost.
  return { state: word === "stale" && !hub.presence.onlyVisits(agent.id) ? "lost contact" : "offline", at, bound };
}

/** Shape, word, evidence and age. */
export const AgentStatus = ({ presence, now, stack }: { presence: Presence; now: number; stack?: boolean }) => {
  const { state, at, bound } = presence;
  const ago = <Ago at={at} now={now} plain />;
  if (state === "retired") return <Status state="retired" stack={stack} why={ago} />;
  if (state === "offline") return <Status state="offline" stack={stack} why={<>last seen {ago}</>} />;
  if (state === "unknown")
    return (
      <Status
        state="unknown"
        stack={stack}
        bound={bound}
        why={
          <>
            nothing heard since this hub came back <Ago at={presence.listensSince ?? now} now={now} plain />; last seen {ago}
          </>
        }
      />
    );
  if (state === "lost contact")
    return (
      <Status
        state="lost contact"
        stack={stack}
        why={
          <>
            last seen {ago}, bound {words(bound)}
          </>
        }
      />
    );
  return <Status state={state} stack={stack} bound={bound} why={<>heartbeat {ago}</>} />;
};

const PIPS: Record<Presence["state"], PipState> = {
  working: "run",
  online: "idle",
  idle: "idle",
  unknown: "lost",
  "lost contact": "lost",
  offline: "lost",
  retired: "lost",
};
export const pipOf = (state: Presence["state"]): PipState => PIPS[state];

const HARNESSES: readonly (readonly [RegExp, string])[] = [
  [/claude|opus|sonnet|haiku/, "claude"],
  [/codex|^gpt|^o\d/, "codex"],
  [/gemini/, "gemini"],
  [/opencode/, "opencode"],
  [/^pi\b/, "pi"],
  [/copilot/, "copilot"],
  [/qwen/, "qwen"],
  [/command|terminal|^tui/, "command"],
];
/** The program behind an agent, as far as its own word for its model tells. */
export function harnessOf(model: string | null): string | undefined {
  const word = model?.toLowerCase() ?? "";
  return HARNESSES.find(([pattern]) => pattern.test(word))?.[1];
}

// How a Runtime stands, in words with evidence and age: presence, slots, outbox, commands in flight. The same in the list and on its page.
/** @jsxImportSource #jsx */
import { own } from "../protocol/own.ts";
import type { Command, Runtime } from "../protocol/runtimes.ts";
import type { OutboxReport } from "../protocol/sync.ts";
import { Track } from "./ui/charts.tsx";
import { Receipt } from "./ui/inbox.tsx";
import { Sub } from "./ui/reference.tsx";
import { type State, Status } from "./ui/status.tsx";
import { Ago, Left } from "./ui/time.tsx";
import { Line, visible } from "./ui/untrusted.tsx";

const SLOTS_SHOWN = 16;
const ERROR_SHOWN = 120;
const NAME_SHOWN = 64;

/** A Runtime with what waits for it. */
export type RuntimeEntry = { runtime: Runtime; inFlight: Command[] };

/** What a machine is called: its host's name as it reported it, else its id. */
export const machineName = ({ host, runtimeId }: Pick<Runtime, "host" | "runtimeId">): string =>
  host ? visible(host).slice(0, NAME_SHOWN) : runtimeId;

/** Whether it answers, and how the hub knows. Turns by itself when the heartbeat is too old. */
export const RuntimePresence = ({ runtime, bound, now, stack }: { runtime: Runtime; bound: number; now: number; stack?: boolean }) => {
  const { presence, heartbeatAt } = runtime;
  if (presence === "unknown" || heartbeatAt === undefined) return <Status state="unknown" why="it has runs here but never reported" stack={stack} />;
  const ago = <Ago at={Date.parse(heartbeatAt)} now={now} plain />;
  return presence === "online" ? (
    <Status state="online" why={<>heartbeat {ago}</>} bound={bound} stack={stack} />
  ) : (
    <Status state="lost contact" why={<>last seen {ago}</>} stack={stack} />
  );
};

/** Places for runs as marks. What a silent machine said last is not shown as if it were so now. */
export const Slots = ({ runtime }: { runtime: Runtime }) => {
  const slots = runtime.report?.slots;
  if (!slots) return <>not reported</>;
  if (runtime.presence !== "online") return <>unknown since then</>;
  const { running, queued, total } = slots;
  const marks = Array.from({ length: Math.min(total, SLOTS_SHOWN) }, (_, place) => (place < running ? ("busy" as const) : ("todo" as const)));
  return (
    <>
      <Track marks={marks} label={`${running} of ${total} places busy`} />
      <Sub>
        {running} of {total} busy{queued > 0 && `, ${queued} queued`}
      </Sub>
    </>
  );
};

const STATES: Record<string, readonly [State, string]> = {
  ok: ["synced", "synced"],
  no_hub: ["idle", "without a hub"],
  blocked: ["blocked", "blocked"],
  refusing: ["refused", "refused"],
  store_unavailable: ["error", "store unavailable"],
};

/** Parked rows of an outbox. */
export const refusedIn = ({ refused }: OutboxReport): number => Object.values(refused).reduce((sum, count) => sum + count, 0);

/** How the sync of one project goes, as its Runtime sees it. */
export function outboxState(outbox: OutboxReport): { state: State; word: string } {
  if (outbox.state === "ok" && outbox.pending > 0) return { state: "draining", word: "draining" };
  if (outbox.state === "ok" && refusedIn(outbox) > 0) return { state: "degraded", word: "degraded" };
  const [state, word] = own(STATES, outbox.state) ?? ["unknown", outbox.state];
  return { state, word };
}

/** One outbox in a cell: how it stands, what is pending or parked, why. */
export const Outbox = ({ outbox, silent, now }: { outbox: OutboxReport; silent: boolean; now: number }) => {
  const { pending, acked, lastError, nextAttemptAt } = outbox;
  const refused = refusedIn(outbox);
  const { state, word } = outboxState(outbox);
  return (
    <Status
      state={state}
      word={word}
      stack
      stale={silent}
      why={
        <>
          {pending.toLocaleString("en")} pending{silent ? " at its last report" : ""}
          {refused > 0 && `, ${refused.toLocaleString("en")} refused`}
          <Sub>
            {acked.toLocaleString("en")} acked
            {nextAttemptAt && (
              <>
                , tries again in <Left until={Date.parse(nextAttemptAt)} now={now} />
              </>
            )}
          </Sub>
          {lastError && (
            <Sub>
              <Line text={lastError} max={ERROR_SHOWN} />
            </Sub>
          )}
        </>
      }
    />
  );
};

const COMMANDS_SHOWN = 2;

/** What was asked of a machine and is not done yet. */
export const InFlight = ({ entry: { runtime, inFlight }, now }: { entry: RuntimeEntry; now: number }) => {
  if (inFlight.length === 0) return <>none</>;
  return (
    <>
      {inFlight.slice(0, COMMANDS_SHOWN).map((command) => (
        <>
          <Sub>
            {command.kind} <Ago at={Date.parse(command.createdAt)} now={now} plain />
          </Sub>
          <Receipt stack steps={[{ text: command.state === "sent" ? "waits for the machine" : "being applied", state: "now" }]} />
        </>
      ))}
      {runtime.commandsInFlight > COMMANDS_SHOWN && <Sub>{runtime.commandsInFlight - COMMANDS_SHOWN} more</Sub>}
    </>
  );
};

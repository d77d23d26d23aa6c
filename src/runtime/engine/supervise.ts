// Watches one program of one attempt from its start to its end: its time limit, a stop that somebody asked for, and what it left behind.
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import { type Clock, elapsed } from "../clock.ts";
import type { Launched, LaunchRequest, Output } from "../harness/launch.ts";
import type { ProcessMark } from "../harness/process.ts";
import type { Programs } from "../machine.ts";

/** Time to end by itself when the Runtime stops: it must be over within the Runtime's own time to stop. */
const SUSPEND_DRAIN_MS = 2000;

/**
 * How a program came to its end. `stopped`: its result is not wanted any more. `suspended`: the Runtime ends, the run goes on later.
 * `lost`: it is gone and never said how it ended.
 */
export type End = { how: "ended" | "timeout" | "stopped" | "suspended" | "lost"; output: Output; wallMs: number };

/** Lets somebody outside end an attempt. `leave` makes this process forget it without touching the program: another one takes over. */
export type Ask = "stop" | "suspend" | "leave";
export type Stop = {
  ask: (what: Ask) => void;
  asked: Promise<Ask>;
  /** What was asked for so far: a program that has not started by then must not. */
  said: () => Ask | undefined;
};

export function stopper(): Stop {
  const { promise, resolve } = Promise.withResolvers<Ask>();
  let first: Ask | undefined;
  const ask = (what: Ask) => resolve((first ??= what));
  return { ask, asked: promise, said: () => first };
}

export type Watch = {
  attemptId: string;
  folder: string;
  /** Milliseconds left until the program is ended. */
  limitMs: number;
  /** Time to end in order after SIGTERM. */
  drainMs: number;
  stop: Stop;
};

/** What watching needs of the world. */
export type Watching = { programs: Programs; clock: Clock };

/**
 * Writes the prompt down, starts the program and records its mark.
 * @param own.confirm throws when the attempt is somebody else's by now. Asked once the folder is there: who sleeps after that and wakes up when
 *   another supervisor has finished the attempt and removed its folder, starts nothing, for no shell can make `go` in a folder that is gone.
 * @param own.record must be durable when it returns; when it throws, the program is ended again
 */
export async function startProgram(
  programs: Programs,
  request: LaunchRequest,
  own: { confirm: () => void; record: (mark: ProcessMark) => void },
): Promise<Launched> {
  programs.prepareFolder(request.folder, request.stdin, request.files);
  own.confirm();
  const launched = programs.launch(request);
  try {
    own.record(launched.mark);
    return launched;
  } catch (error) {
    // Under another supervisor's fence the program is not ours to end: if our shell was first, that one finds it and goes on with it.
    const superseded = error instanceof RuntimeRefusal && error.code === "store_fenced";
    if (!superseded) await programs.endAttempt({ mark: launched.mark, attemptId: request.attemptId }, 0);
    throw error;
  }
}

/**
 * Waits for the end of a program that was started here or by an earlier supervisor.
 * @returns undefined when the attempt was left to somebody else
 */
export async function watchProgram(
  { programs, clock }: Watching,
  watch: Watch,
  mark: ProcessMark,
  ended: Promise<void> = programs.reattach(watch.folder, mark),
): Promise<End | undefined> {
  const { attemptId, folder, limitMs, drainMs, stop } = watch;
  const since = elapsed(clock);
  const late = Promise.withResolvers<"timeout">();
  const callOff = clock.after(limitMs, () => late.resolve("timeout"));
  const how = await Promise.race([ended.then(() => "ended" as const), late.promise, stop.asked]);
  callOff();
  if (how === "leave") return undefined;
  // Also after an orderly end: what it started and left running is nobody's now.
  const drain = how === "ended" ? 0 : how === "suspend" ? Math.min(drainMs, SUSPEND_DRAIN_MS) : drainMs;
  await programs.endAttempt({ mark, attemptId }, drain);
  const output = programs.readOutput(folder);
  const wallMs = Math.round(elapsed(clock) - since);
  if (how === "stop") return { how: "stopped", output, wallMs };
  if (how === "suspend") return { how: "suspended", output, wallMs };
  if (how === "timeout") return { how: "timeout", output, wallMs };
  return { how: output.exitCode === undefined ? "lost" : "ended", output, wallMs };
}

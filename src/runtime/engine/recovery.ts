// What to make of an attempt that an earlier supervisor left open: only what its folder and the process table prove.
import type { ProcessMark } from "../harness/process.ts";
import type { Programs } from "../machine.ts";
import type { NewEvent } from "../store/events.ts";
import type { Work } from "./agent-attempt.ts";
import { closeUnstarted, closeWith } from "./close-attempt.ts";
import type { Attempt } from "./execution.ts";
import { uncertain } from "./gate-attempt.ts";
import { mayRepeat } from "./moves.ts";

/**
 * `start`: the program provably never started. `watch`: it runs, or it ended and said how; its output is there to be read.
 * `lost`: it is gone, and nothing says what it did.
 */
export type Found = { verdict: "start" } | { verdict: "watch"; process: ProcessMark } | { verdict: "lost"; why: string };

/** The first process of an attempt as its shell wrote it down, when it is still that process. */
function shellOf(programs: Programs, attempt: Open): ProcessMark | undefined {
  const pid = programs.shellPid(attempt.folder);
  const started = pid === undefined ? undefined : programs.startedAt(pid);
  return started !== undefined && programs.markedProcesses(attempt.attemptId).includes(pid!) ? { pid: pid!, started } : undefined;
}

/** What of an attempt the look needs. */
export type Open = Pick<Attempt, "attemptId" | "folder" | "boot" | "status" | "process">;

/** Looks at one open attempt. May end a shell that had been made but had not started the program yet. */
export async function inspect(programs: Programs, attempt: Open): Promise<Found> {
  const { bootId, exitOf, hasStarted, markedProcesses } = programs;
  // The folder is made before anything is started: without it, in the same boot, nothing was.
  if (attempt.status === "created" && attempt.boot === bootId() && !programs.folderExists(attempt.folder)) return { verdict: "start" };
  const began = hasStarted(attempt.folder);
  if (attempt.process && programs.isAlive(attempt.process)) return { verdict: "watch", process: attempt.process };
  const ended = attempt.process ?? { pid: programs.shellPid(attempt.folder) ?? 0, started: "ended" };
  if (exitOf(attempt.folder) !== undefined) return { verdict: "watch", process: ended };
  if (attempt.status === "executing") return { verdict: "lost", why: "its program is gone and left no exit code" };
  if (!began) {
    // A shell between its birth and its first line: it has not started the program, and must not any more.
    if (markedProcesses(attempt.attemptId).length > 0) {
      await programs.endAttempt({ attemptId: attempt.attemptId }, 0);
      if (hasStarted(attempt.folder)) return { verdict: "lost", why: "its program was stopped just as it started" };
    }
    if (attempt.boot !== bootId()) return { verdict: "lost", why: "the machine was restarted, which may have taken the proof with it" };
    return { verdict: "start" };
  }
  const shell = shellOf(programs, attempt);
  return shell ? { verdict: "watch", process: shell } : { verdict: "lost", why: "its program is gone and left no exit code" };
}

/**
 * Takes up an attempt that an earlier supervisor left open, or closes it with what is known.
 * @param unwanted it is not to begin any more; what an earlier supervisor started all the same is stopped, not forgotten
 */
export async function takeUp(
  work: Work,
  perform: (work: Work) => Promise<NewEvent[] | undefined>,
  unwanted: boolean,
): Promise<NewEvent[] | undefined> {
  const { run, attempt, stop } = work;
  work.confirm(); // the look may end a shell, which must be ours
  const found = await inspect(work.context.machine.programs, attempt);
  if (found.verdict === "start") return unwanted ? closeUnstarted(run, attempt) : perform(work);
  if (unwanted) stop.ask("stop");
  const { stepId, stepAttempt } = run.visit!;
  if (found.verdict === "watch") {
    const identity = { stepId, stepAttempt, attemptId: attempt.attemptId, ...(attempt.assignmentId && { assignmentId: attempt.assignmentId }) };
    work.record([
      ...(attempt.assignmentId ? [{ type: "assignment.reattaching" as const, payload: { ...identity, status: "reattaching" as const } }] : []),
      { type: "attempt.status_changed", payload: { ...identity, status: "executing" }, local: { process: found.process } },
    ]);
    return perform(work);
  }
  const sentence = `the Runtime stopped while the attempt ran: ${found.why}`;
  if (attempt.kind === "gate" && !mayRepeat(attempt.effectClass)) return uncertain(work, sentence);
  return closeWith(work, { class: "interrupted", sentence, retryable: true });
}

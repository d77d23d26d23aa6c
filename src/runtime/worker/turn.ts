// One turn of a worker: a request goes in, the answer comes out. A turn that an earlier Runtime started is taken up by the same proofs as an attempt.
import { join } from "node:path";
import { sha256 } from "../../protocol/canonical.ts";
import type { Message } from "../../protocol/messages.ts";
import type { Clock } from "../clock.ts";
import type { Workspace } from "../engine/local.ts";
import { inspect } from "../engine/recovery.ts";
import { type End, type Stop, startProgram, type Watch, watchProgram } from "../engine/supervise.ts";
import { environmentFor } from "../harness/environment.ts";
import type { Failure, Turn } from "../harness/result.ts";
import { commandLine, HARNESS_TABLE } from "../harness/table.ts";
import type { Programs } from "../machine.ts";
import type { WorkerSpec } from "./spec.ts";

export type TurnContext = {
  spec: WorkerSpec;
  /** The worker's own folder. */
  folder: string;
  workspace: Workspace;
  env: Record<string, string | undefined>;
  stop: Stop;
  clock: Clock;
  programs: Programs;
  /** @throws RuntimeRefusal store_fenced when another Runtime has the checkout by now */
  confirm: () => void;
};
/** Of a thread that this worker talked in before. */
export type Session = { id: string; resume: boolean };

/** A turn, and the last line that its program printed beside it. */
export type TurnOutcome = Turn & { said?: string };
const SAID_MAX = 200;

/** The id under which a message's turn runs: the same again after a restart. */
export const turnId = (messageId: string): string => `wrk_${sha256(messageId).slice(0, 32)}`;
const folderOf = (context: TurnContext, message: Message) => join(context.folder, "turns", turnId(message.id));

/** What the agent is told. */
function turnPrompt(spec: WorkerSpec, message: Message): string {
  return [
    spec.instructions,
    `You are ${spec.name}. ${message.fromName} sent you this request through the hub. Your whole final answer becomes the reply; answer in plain text.`,
    `# Request\n\n${message.content}`,
  ]
    .filter((part) => part !== undefined)
    .join("\n\n");
}

/**
 * Carries out the turn for a message, or takes up the one that runs.
 * @returns the turn; undefined when it was stopped or left to another Runtime
 */
export async function takeTurn(context: TurnContext, message: Message, session: Session): Promise<TurnOutcome | undefined> {
  const { spec, workspace, stop, programs } = context;
  if (spec.harness === "echo") return { reply: `echo: ${message.content}`, usage: { costKind: "unknown" } };
  const row = HARNESS_TABLE[spec.harness];
  const attemptId = turnId(message.id);
  const watch: Watch = { attemptId, folder: folderOf(context, message), limitMs: spec.timeoutMs ?? row.timeoutMs, drainMs: row.drainMs, stop };
  const found = await inspect(programs, { attemptId, folder: watch.folder, boot: programs.bootId(), status: "created" });
  if (found.verdict === "watch") return outcome(context, await watchProgram(context, watch, found.process), watch.folder, row.read);
  if (found.verdict === "lost") {
    programs.clearFolder(watch.folder);
    return { failure: { class: "interrupted", sentence: "the program was ended from outside", retryable: true }, usage: { costKind: "unknown" } };
  }
  const prompt = turnPrompt(spec, message);
  const start = {
    access: workspace.access,
    model: spec.model,
    sessionId: session.id,
    resume: session.resume,
    folder: watch.folder,
    command: spec.command,
  };
  const argv = commandLine(row, start, prompt, (program) => programs.find(program, context.env, workspace.path));
  if (!argv) {
    const name = row.program ?? spec.command![0]!;
    return {
      failure: { class: "harness_missing", sentence: `the program ${name} is not installed on this machine`, retryable: false },
      usage: { costKind: "unknown" },
    };
  }
  const env = environmentFor(context.env, [...row.env, ...(spec.env ?? [])], { ...row.settings?.(start), KXM_MESSAGE_ID: message.id });
  const request = {
    attemptId,
    folder: watch.folder,
    argv,
    cwd: workspace.path,
    env,
    stdin: row.prompt === "stdin" ? prompt : "",
    files: row.files?.(start),
  };
  const launched = await startProgram(programs, request, { confirm: context.confirm, record: () => {} });
  return outcome(context, await watchProgram(context, watch, launched.mark, launched.ended), watch.folder, row.read);
}

function outcome({ programs }: TurnContext, end: End | undefined, folder: string, read: (output: End["output"]) => Turn): TurnOutcome | undefined {
  if (!end) return undefined;
  if (end.how === "stopped" || end.how === "suspended") {
    programs.clearFolder(folder); // what was ended on purpose is no failure: the next look begins anew
    return undefined;
  }
  const lines = end.output.stderr.trim().split("\n");
  const turn = { ...read(end.output), said: lines.at(-1)!.trim().slice(0, SAID_MAX) };
  const failed = (failure: Failure): TurnOutcome => ({ ...turn, reply: undefined, failure });
  if (end.how === "timeout") return failed({ class: "timeout", sentence: "the program did not end in time", retryable: true });
  if (end.how === "lost") return failed({ class: "interrupted", sentence: "the program was ended from outside", retryable: true });
  return turn;
}

/** Forgets a turn once its answer is at the hub, or before it is tried again. */
export const clearTurn = (context: TurnContext, message: Message): void => context.programs.clearFolder(folderOf(context, message));

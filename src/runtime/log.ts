// The supervisor's log: one JSON object a line, only listed members, every text scrubbed and cut, two files of bounded size. Never a body, never a prompt.
import { closeSync, constants, fstatSync, openSync, renameSync, writeSync } from "node:fs";
import type { Clock } from "./clock.ts";
import { claimFile } from "./paths.ts";
import type { Redactor } from "./redact/redactor.ts";

export const LOG_BYTES_MAX = 8_388_608;
const TEXT_MAX = 500;

/** What a line may say besides its event. Anything else does not compile. */
export type LogMembers = {
  level?: "info" | "warn" | "error";
  projectKey?: string;
  projectId?: string;
  runId?: string;
  stepId?: string;
  attemptId?: string;
  commandId?: string;
  kind?: string;
  state?: string;
  code?: string;
  /** A sentence, such as an error's message. */
  reason?: string;
  count?: number;
  pid?: number;
  port?: number;
  generation?: number;
  durationMs?: number;
  version?: string;
};
/** Writes one line. `event` is a word such as `store_opened`. */
export type Log = (event: string, members?: LogMembers) => void;

/** Opens the log (or goes on with it). A log that cannot be written never stops the work; the next line tries again. */
export function openLog(path: string, { clock, redactor }: { clock: Clock; redactor: Redactor }): { log: Log; close(): void } {
  let file = open(path);
  let size = fstatSync(file).size;
  const write = (line: string) => {
    if (size + line.length > LOG_BYTES_MAX) {
      closeSync(file);
      renameSync(path, `${path}.1`);
      file = open(path);
      size = 0;
    }
    size += writeSync(file, line);
  };
  return {
    log: (event, { level = "info", ...members } = {}) => {
      const shown = Object.entries(members).map(([name, value]) => [name, typeof value === "string" ? brief(value, redactor) : value]);
      const line = `${JSON.stringify({ at: new Date(clock.now()).toISOString(), level, event, pid: process.pid, ...Object.fromEntries(shown) })}\n`;
      try {
        write(line);
      } catch {} // a full disk must not stop a run; status and presence still tell
    },
    close: () => closeSync(file),
  };
}

/** @param text anything, also what an agent wrote */
const brief = (text: string, redactor: Redactor): string => redactor.secrets(text.slice(0, TEXT_MAX * 4)).text.slice(0, TEXT_MAX);

function open(path: string): number {
  claimFile(path);
  return openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT, 0o600);
}

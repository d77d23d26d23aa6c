// The hub's log on disk: one JSON object a line, bounded to two files of LOG_BYTES_MAX. A line is written at once; a full disk never stops the hub.
import { closeSync, existsSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { Log } from "../hub/log.ts";
import { harmlessJson } from "./output.ts";
import { privateFolder } from "./state-dir.ts";

const LOG_BYTES_MAX = 16_777_216;

export interface LogFile {
  log: Log;
  close(): void;
}

/**
 * Opens (or goes on with) a log. When it is full it becomes `<path>.1`, replacing the one before.
 * @param clock milliseconds since 1970 for the lines' time
 * @param alarm told once when lines cannot be written, and again after they could
 */
export function openLog(path: string, clock: () => number, alarm: (text: string) => void): LogFile {
  let file: number | undefined; // opened by the first line, so that a hub which is refused leaves no trace
  let size = 0;
  let broken = false;
  const open = () => {
    if (!existsSync(dirname(path))) privateFolder(dirname(path));
    file = openSync(path, "a", 0o600);
    size = fstatSync(file).size;
    return file;
  };
  return {
    log({ event, level = "info", ...members }) {
      const line = `${harmlessJson({ at: new Date(clock()).toISOString(), level, event, ...members })}\n`;
      try {
        file ??= open();
        if (size > LOG_BYTES_MAX) {
          closeSync(file);
          renameSync(path, `${path}.1`);
          file = open();
        }
        size += writeSync(file, line);
        broken = false;
      } catch (error) {
        if (!broken) alarm(`the log ${path} cannot be written: ${(error as Error).message}`);
        broken = true;
      }
    },
    close() {
      if (file !== undefined) closeSync(file);
    },
  };
}

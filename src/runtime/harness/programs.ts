// Finds programs on the PATH they will run with. A name with a slash is a file of the workspace or an absolute path, never one outside by accident.
import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { isAbsolute, join, sep } from "node:path";

/** The absolute path of a program, or undefined when it is not there or may not be run. */
export function findProgram(program: string, env: Record<string, string | undefined>, workspace: string): string | undefined {
  if (!program.includes("/")) return Bun.which(program, { PATH: env["PATH"] ?? "/usr/bin:/bin" }) ?? undefined;
  const path = isAbsolute(program) ? program : join(workspace, program);
  try {
    accessSync(path, constants.X_OK);
    if (!statSync(path).isFile()) return undefined;
    if (!isAbsolute(program) && !realpathSync(path).startsWith(realpathSync(workspace) + sep)) return undefined;
    return path;
  } catch {
    return undefined;
  }
}

// Where the project is, and the one way its scripts give up: one line that says what happened and what to do next.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Full path of something in the repository. */
export const at = (...parts) => join(ROOT, ...parts);

/** Parsed JSON of a file in the repository, or undefined when there is none. */
export function readJson(...parts) {
  const path = at(...parts);
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
}

/** One line about what a script is doing, on stderr: stdout belongs to the program it starts. */
export function say(line) {
  process.stderr.write(`${line}\n`);
}

/** Ends the script: one sentence about what is wrong and one about what to do next. */
export function giveUp(what, next) {
  say(`kxm: ${what}${next ? ` ${next}` : ""}`);
  process.exit(1);
}

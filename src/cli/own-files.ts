// Files that commands write into a folder of somebody's: below that folder and nowhere else, whatever a path says and whatever links lie in the folder.
import { lstatSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join, sep } from "node:path";
import { CommandFailed } from "./output.ts";

/**
 * Writes a file below a folder and makes the folders between. A link is followed as long as it stays below the folder.
 * @param path relative, with `/`
 * @param how `new`: only where nothing is yet
 * @throws CommandFailed when the path leads out of the folder, by its words or by a link
 */
export function writeBelow(root: string, path: string, text: string, how: "over" | "new" = "over"): void {
  const names = path.split("/");
  if (names.some((name) => name === "" || name === "." || name === ".." || /[\\\0:]/.test(name))) throw outside(path);
  const top = realpathSync(root);
  const last = names.pop()!;
  let folder = top;
  for (const name of names) {
    folder = join(folder, name);
    if (!lstatSync(folder, { throwIfNoEntry: false })) mkdirSync(folder);
    folder = below(top, folder, path);
  }
  const file = join(folder, last);
  const target = how === "over" && lstatSync(file, { throwIfNoEntry: false }) ? below(top, file, path) : file;
  writeFileSync(target, text, { flag: how === "new" ? "wx" : "w" });
}

/** Where something that is there really is. @throws CommandFailed when that is not below the folder, or a link that leads to nothing */
function below(top: string, at: string, path: string): string {
  let real: string;
  try {
    real = realpathSync(at);
  } catch {
    throw outside(path);
  }
  if (!real.startsWith(top.endsWith(sep) ? top : top + sep)) throw outside(path);
  return real;
}

const outside = (path: string) =>
  new CommandFailed(`${path} leads out of this folder, so nothing was written there`, "Look at the links of this folder, and at who named the path.");

// Files that survive a power cut and that only their owner reads.
import { chmodSync, closeSync, existsSync, fsyncSync, openSync } from "node:fs";

/** An empty file that only its owner reads and writes, whatever the umask says; an existing one is left alone. */
export function createPrivately(path: string): void {
  if (existsSync(path)) return;
  try {
    closeSync(openSync(path, "wx", 0o600));
    chmodSync(path, 0o600);
  } catch (error) {
    if ((error as { code?: string }).code !== "EEXIST") throw error;
  }
}

/** The content of a file is on the disk when this returns. */
export const syncFile = (path: string): void => sync(path, "r+");

/** A rename or a new name in a folder is on the disk when this returns. */
export const syncFolder = (folder: string): void => sync(folder, "r");

function sync(path: string, flags: "r" | "r+") {
  const file = openSync(path, flags);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

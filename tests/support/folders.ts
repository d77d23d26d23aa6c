// Throw-away folders for tests, and what lies in them.
import { lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "../../src/protocol/canonical.ts";
import { TEST_ROOT } from "./engines.ts";

/** A private folder that is removed at the end of its scope. */
export function temporaryFolder(root: string = TEST_ROOT): Disposable & { path: string } {
  const path = mkdtempSync(join(root, "kxm-test-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** Everything below a folder: kind, rights, owner, inode and content of each name. Two equal lists mean that nothing was made, renamed or changed. */
export function contentsOf(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" }).sort()) {
    const path = join(folder, name);
    const stats = lstatSync(path);
    const kind = stats.isSymbolicLink() ? `link to ${readlinkSync(path)}` : stats.isFile() ? sha256(readFileSync(path)) : "folder";
    found[name] = [kind, stats.mode.toString(8), stats.uid, stats.ino].join(" ");
  }
  return found;
}

// Authored memory of the repository the hub was started in: `.kxm/memory/*.md`, read again when a file has changed.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type MemoryFile, memoryItems } from "../hub/context/memory.ts";
import type { ContextItem } from "../protocol/context.ts";

const FILE_BYTES_MAX = 65_536;
const FILES_MAX = 1_000;
const LOOK_AGAIN_MS = 1_000; // one look at the folder serves every request of this time

/**
 * A reader of the folder's items for any project: the repository's memory belongs to all projects of its hub.
 * @param now milliseconds, monotonic enough to tell when to look again
 */
export function memoryReader(folder: string, now: () => number): (project: string) => readonly ContextItem[] {
  let files: MemoryFile[] = [];
  let shape = "";
  let lookedAt = Number.NEGATIVE_INFINITY;
  const items = new Map<string, readonly ContextItem[]>();
  return (project) => {
    if (now() - lookedAt >= LOOK_AGAIN_MS) {
      lookedAt = now();
      const found = listed(folder);
      const seen = JSON.stringify(found);
      if (seen !== shape) {
        shape = seen;
        files = found.map(({ name }) => ({ path: `.kxm/memory/${name}`, text: readFileSync(join(folder, name), "utf8") }));
        items.clear();
      }
    }
    const known = items.get(project) ?? memoryItems(project, files).items;
    items.set(project, known);
    return known;
  };
}

/** Plain Markdown files of the folder, by name; an absent folder has none. Links are not followed out of it. */
function listed(folder: string): { name: string; size: number; changedAt: number }[] {
  let names: string[];
  try {
    names = readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isFile() && entry.name.endsWith(".md") ? [entry.name] : []));
  } catch {
    return [];
  }
  return names
    .sort()
    .slice(0, FILES_MAX)
    .flatMap((name) => {
      const { size, mtimeMs } = statSync(join(folder, name));
      return size <= FILE_BYTES_MAX ? [{ name, size, changedAt: mtimeMs }] : [];
    });
}

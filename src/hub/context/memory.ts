// Authored memory: Markdown files of a repository with a YAML head, reviewed like code. Each file is one item with Git provenance.
import { parse } from "yaml";
import { AUTHORITIES, CONFIDENCES, type ContextItem, exceedsCeiling, KINDS } from "../../protocol/context.ts";

const SUMMARY_MAX = 4_000;
const FILES_MAX = 1_000;
/** A file as it was read: path below the repository root, and text. */
export type MemoryFile = { path: string; text: string };
export type MemoryProblem = { path: string; message: string };

/** Items of authored files, in path order. What cannot be read is a problem, never a guess. */
export function memoryItems(project: string, files: readonly MemoryFile[]): { items: ContextItem[]; problems: MemoryProblem[] } {
  const items: ContextItem[] = [];
  const problems: MemoryProblem[] = [];
  for (const file of [...files].sort((a, b) => (a.path < b.path ? -1 : 1)).slice(0, FILES_MAX)) {
    const read = memoryItem(project, file);
    if (typeof read === "string") problems.push({ path: file.path, message: read });
    else items.push(read);
  }
  return { items, problems };
}

function memoryItem(project: string, { path, text }: MemoryFile): ContextItem | string {
  const match = /^---\r?\n([\s\S]*?)\r?\n---\r?\n?([\s\S]*)$/.exec(text);
  let head: Record<string, unknown> = {};
  try {
    head = match ? ((parse(match[1]!, { maxAliasCount: 0 }) ?? {}) as Record<string, unknown>) : {};
  } catch {
    return "the YAML head cannot be read";
  }
  const body = (match ? match[2]! : text).trim();
  if (body === "") return "the file has no text";
  const pick = <W extends string>(name: string, words: readonly W[], fallback: W): W | undefined =>
    head[name] === undefined ? fallback : words.find((word) => word === head[name]);
  const kind = pick("kind", KINDS, "knowledge");
  const authority = pick("authority", AUTHORITIES, "instruction");
  const confidence = pick("confidence", CONFIDENCES, "probable");
  if (!kind || !authority || !confidence) return "kind, authority or confidence is not one of the known words";
  if (exceedsCeiling(authority, "git")) return `a file in Git may not claim the authority ${authority}`;
  const observed = head["observedAt"] === undefined ? undefined : new Date(String(head["observedAt"]));
  if (observed && Number.isNaN(observed.getTime())) return "observedAt is not a date";
  const name = path
    .split("/")
    .at(-1)!
    .replace(/\.md$/, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "_")
    .slice(0, 80);
  return {
    id: `memory_${name}`,
    kind,
    project,
    summary: body.slice(0, SUMMARY_MAX),
    provenance: { sourceType: "git", sourceRef: `git:${path}`.slice(0, 200) },
    authority,
    confidence,
    ...(observed && { observedAt: observed.toISOString() }),
    status: "current",
  };
}

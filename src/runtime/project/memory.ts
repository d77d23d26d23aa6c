// Reviewed facts: Markdown with a restricted-YAML head between two lines of three dashes.

import { MemoryFile } from "../../protocol/project-files.ts";
import { checkFile } from "./check.ts";
import type { Problem } from "./problems.ts";
import { readYaml } from "./yaml.ts";

/** One fact with its provenance. */
export type MemoryNote = MemoryFile & { id: string; text: string };

/** Reads one note; findings are added to `problems`. */
export function readMemory(id: string, file: string, bytes: Uint8Array, problems: Problem[]): MemoryNote | undefined {
  const text = new TextDecoder().decode(bytes);
  const head = /^---\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(text);
  if (!head) {
    problems.push({
      file,
      line: 1,
      column: 1,
      code: "memory_head_missing",
      message: "the note starts with --- and the fields schema, title and source",
    });
    return undefined;
  }
  // The head is read with a blank first line, so that the places it reports are those of the file.
  const located = readYaml(file, new TextEncoder().encode(`\n${head[1]}`), problems);
  const fields = located && checkFile(MemoryFile, located, problems);
  const body = text.slice(head[0].length).trim();
  if (fields && body === "") {
    problems.push({ file, line: 1, column: 1, code: "memory_empty", message: "the note says nothing below its head" });
    return undefined;
  }
  return fields && { ...fields, id, text: body };
}

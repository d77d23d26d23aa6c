// Restricted YAML: what two readers could understand differently, or what could grow while it is read, is refused. Values keep their places.
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, type ParsedNode, parseDocument } from "yaml";
import type { Problem } from "./problems.ts";

/** Bytes of one project file. */
export const YAML_BYTES_MAX = 262_144;
/** Nesting of one project file. */
const YAML_DEPTH_MAX = 32;

/** A value read from a file and where each of its parts stands, by JSON pointer. */
export type Located = { file: string; value: unknown; at: (pointer: string) => { line: number; column: number } };

type Reading = { file: string; lines: LineCounter; problems: Problem[]; places: Map<string, number>; keys: Map<string, number> };

const utf8 = new TextDecoder("utf-8", { fatal: true });
/** Escapes one step of a JSON pointer. */
const pointerStep = (key: string | number): string => String(key).replaceAll("~", "~0").replaceAll("/", "~1");

function report(reading: Reading, offset: number, code: string, message: string): void {
  const { line, col } = reading.lines.linePos(offset);
  reading.problems.push({ file: reading.file, line: Math.max(line, 1), column: Math.max(col, 1), code, message });
}

/** Reads one node into a plain value; a part that is refused is reported and left out. */
function read(reading: Reading, node: Node | null | undefined, pointer: string, depth: number): unknown {
  if (!node) return null;
  const offset = node.range?.[0] ?? 0;
  if (!reading.places.has(pointer)) reading.places.set(pointer, offset);
  if (depth > YAML_DEPTH_MAX) return void report(reading, offset, "yaml_too_deep", `more than ${YAML_DEPTH_MAX} levels`);
  if (isAlias(node)) return void report(reading, offset, "yaml_alias", `the alias *${node.source} is not allowed: write the value out`);
  if (node.anchor) report(reading, offset, "yaml_anchor", `the anchor &${node.anchor} is not allowed: write the value out`);
  if (node.tag) report(reading, offset, "yaml_tag", "tags are not allowed: write a plain value");
  if (isSeq(node)) return node.items.map((item, index) => read(reading, item as ParsedNode, `${pointer}/${index}`, depth + 1));
  if (isMap(node)) return readMap(reading, node.items as { key: Node | null; value: Node | null }[], pointer, depth);
  if (isScalar(node)) return node.value;
  return void report(reading, offset, "yaml_syntax", "this kind of value is not allowed");
}

function readMap(reading: Reading, items: { key: Node | null; value: Node | null }[], pointer: string, depth: number): Record<string, unknown> {
  const members: Record<string, unknown> = {};
  for (const { key, value } of items) {
    const offset = key?.range?.[0] ?? reading.places.get(pointer) ?? 0;
    if (!isScalar(key) || typeof key.value !== "string") {
      report(reading, offset, "yaml_key_not_text", "a key must be plain text; put it in quotes if it looks like a number or a list");
      continue;
    }
    if (key.anchor) report(reading, offset, "yaml_anchor", `the anchor &${key.anchor} is not allowed`);
    if (key.tag) report(reading, offset, "yaml_tag", "tags are not allowed on keys");
    if (key.value === "__proto__" || key.value === "constructor" || key.value === "prototype") {
      report(reading, offset, "field_unknown", `${key.value} is not a field`);
      continue;
    }
    const child = `${pointer}/${pointerStep(key.value)}`;
    reading.keys.set(child, offset);
    if (!value?.range) reading.places.set(child, offset);
    members[key.value] = read(reading, value, child, depth + 1);
  }
  return members;
}

function reportSyntax(reading: Reading, document: Document.Parsed): void {
  for (const error of document.errors) {
    const code = error.code === "DUPLICATE_KEY" ? "yaml_duplicate_key" : error.code === "MULTIPLE_DOCS" ? "yaml_multiple_documents" : "yaml_syntax";
    const message = code === "yaml_multiple_documents" ? "a file holds exactly one document" : error.message;
    report(reading, error.pos[0], code, message);
  }
}

/**
 * Reads one file of restricted YAML.
 * @param file the name that problems show
 * @param problems findings are added here; a file with findings still yields what could be read
 * @returns the value with places, or undefined when nothing could be read
 */
export function readYaml(file: string, bytes: Uint8Array, problems: Problem[]): Located | undefined {
  const top = (code: string, message: string) => void problems.push({ file, line: 1, column: 1, code, message });
  if (bytes.length > YAML_BYTES_MAX) return top("yaml_too_large", `${bytes.length} bytes are more than ${YAML_BYTES_MAX}`);
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return top("yaml_not_utf8", "the file is not valid UTF-8");
  }
  const reading: Reading = { file, lines: new LineCounter(), problems, places: new Map(), keys: new Map() };
  let document: Document.Parsed;
  try {
    document = parseDocument(text, { lineCounter: reading.lines, prettyErrors: false, uniqueKeys: true, version: "1.2", schema: "core" });
  } catch (error) {
    return top("yaml_too_deep", `the file cannot be parsed: ${error instanceof Error ? error.name : "unknown error"}`);
  }
  if (/^(?:[ \t]*(?:#.*)?\r?\n)*%/.test(text)) report(reading, 0, "yaml_tag", "directives (lines that start with %) are not allowed");
  reportSyntax(reading, document);
  if (document.contents === null) return top("yaml_empty", "the file is empty");
  const value = read(reading, document.contents, "", 1);
  return { file, value, at: (pointer) => placeOf(reading, pointer) };
}

/** The place of a pointer; a member that is missing has the place of the object it is missing from. */
function placeOf(reading: Reading, pointer: string): { line: number; column: number } {
  for (let path = pointer; ; path = path.slice(0, path.lastIndexOf("/"))) {
    const offset = reading.keys.get(path) ?? reading.places.get(path);
    if (offset !== undefined || path === "") {
      const { line, col } = reading.lines.linePos(offset ?? 0);
      return { line: Math.max(line, 1), column: Math.max(col, 1) };
    }
  }
}

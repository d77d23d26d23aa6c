// Changing one entry of another program's configuration: comments, other entries and layout stay as they are. Text in, text out.
import { applyEdits, modify, type ParseError, parse, printParseErrorCode } from "jsonc-parser";
import { CommandFailed } from "./output.ts";

const FORMAT = { formattingOptions: { insertSpaces: true, tabSize: 2, eol: "\n" } };

/** Sets (or with undefined removes) the member at a path of a JSON text, which may hold comments. @throws CommandFailed when it cannot be read */
export function editJson(text: string, path: readonly string[], value: unknown, where: string): string {
  const source = text.trim() === "" ? "{}\n" : text;
  const errors: ParseError[] = [];
  const parsed = parse(source, errors, { allowTrailingComma: true, disallowComments: false }) as unknown;
  if (errors.length > 0 || typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    const why = errors[0] ? `${printParseErrorCode(errors[0].error)} at character ${errors[0].offset}` : "it is not an object";
    throw new CommandFailed(`${where} cannot be changed: ${why}`, "Correct it, or add the entry by hand: --print shows it.");
  }
  return applyEdits(source, modify(source, [...path], value, FORMAT));
}

/** The value at a path, or undefined. */
export function readJson(text: string, path: readonly string[]): unknown {
  let value = parse(text, [], { allowTrailingComma: true }) as unknown;
  for (const name of path)
    value = typeof value === "object" && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
  return value;
}

/** Whether a JSON text holds nothing but the empty objects that lead to a place. Comments are somebody's. */
export function isEmptyJson(text: string, path: readonly string[]): boolean {
  const skeletons = [{}, path.reduceRight<object>((inner, name) => ({ [name]: inner }), {})].map((empty) => JSON.stringify(empty));
  return skeletons.includes(text.replaceAll(/\s/g, ""));
}

/** Whether two JSON texts differ in nothing but their layout: same values, same comments. */
export const saysTheSame = (one: string, other: string): boolean =>
  JSON.stringify(parse(one, [], { allowTrailingComma: true })) === JSON.stringify(parse(other, [], { allowTrailingComma: true })) &&
  one.replaceAll(/\s/g, "") === other.replaceAll(/\s/g, "");

const quoted = (text: string) => JSON.stringify(text).replaceAll("\u007f", "\\u007f"); // TOML's basic strings escape like JSON's
const tomlValue = (value: unknown): string => {
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(", ")}]`;
  if (typeof value === "object" && value !== null)
    return `{ ${Object.entries(value)
      .map(([name, member]) => `${quoted(name)} = ${tomlValue(member)}`)
      .join(", ")} }`;
  return String(value);
};

/** A TOML table as text. */
export const tomlTable = (path: readonly string[], value: Record<string, unknown>): string =>
  `[${path.join(".")}]\n${Object.entries(value)
    .map(([name, member]) => `${name} = ${tomlValue(member)}\n`)
    .join("")}`;

/** Replaces (or with undefined removes) a table and its sub-tables in a TOML text; everything else stays byte by byte. */
export function editToml(text: string, path: readonly string[], value: Record<string, unknown> | undefined): string {
  const name = path.join(".");
  const lines = text.split("\n");
  const kept: string[] = [];
  let inside = false;
  let at: number | undefined;
  for (const line of lines) {
    const header = /^\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(#.*)?$/.exec(line)?.[1]?.replaceAll(/["'\s]/g, "");
    if (header !== undefined) {
      inside = header === name || header.startsWith(`${name}.`);
      if (inside) at ??= kept.length;
    }
    if (!inside) kept.push(line);
  }
  if (value === undefined) return kept.join("\n");
  const table = tomlTable(path, value).trimEnd().split("\n");
  if (at === undefined) {
    while (kept.length > 0 && kept.at(-1)!.trim() === "") kept.pop();
    return `${[...kept, ...(kept.length > 0 ? [""] : []), ...table].join("\n")}\n`;
  }
  const rest = kept.slice(at);
  while (rest.length > 0 && rest[0]!.trim() === "") rest.shift();
  return [...kept.slice(0, at), ...table, ...(rest.length > 0 ? ["", ...rest] : [""])].join("\n");
}

/** The text of a table, for comparing; undefined when it is not there. */
export function readToml(text: string, path: readonly string[]): string | undefined {
  const name = path.join(".");
  const lines = text.split("\n");
  const start = lines.findIndex((line) => line.replaceAll(/[\s"']/g, "") === `[${name}]`);
  if (start === -1) return undefined;
  const end = lines.findIndex((line, index) => index > start && /^\s*\[/.test(line) && !line.replaceAll(/[\s"']/g, "").startsWith(`[${name}.`));
  return lines
    .slice(start, end === -1 ? undefined : end)
    .join("\n")
    .trimEnd();
}

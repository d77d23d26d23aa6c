// What the house rules are written in: files as text, findings with a line, and the few readings of source text that rules share.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

export type SourceFile = { path: string; text: string };
export type Finding = { path: string; line: number; message: string };
/** One house rule. `offends` must be found and `passes` must not: a rule that cannot fail is not a rule. */
export type Rule = { name: string; check: (files: SourceFile[]) => Finding[]; offends: SourceFile[][]; passes?: SourceFile[][] };

const ROOT = join(import.meta.dir, "..", "..");
const NOT_OURS = new Set(["node_modules", "dist", "coverage", ".git", ".kxm", "artifacts"]);
const TEXT = /\.(tsx?|mjs|js|json|sql|css|md|toml|yml|yaml|html|svg|sh)$|^[^.]+$|^\.[a-z]+$/;

/** Every text file of the repository, paths from its root with forward slashes. */
export function readProject(folder = ""): SourceFile[] {
  const files: SourceFile[] = [];
  for (const name of readdirSync(join(ROOT, folder)).sort()) {
    const path = folder ? `${folder}/${name}` : name;
    if (NOT_OURS.has(name)) continue;
    if (statSync(join(ROOT, path)).isDirectory()) files.push(...readProject(path));
    else if (TEXT.test(name)) files.push({ path, text: readFileSync(join(ROOT, path), "utf8") });
  }
  return files;
}

/** TypeScript of the product: src without declaration files. */
export const product = (files: SourceFile[]) => files.filter(({ path }) => /^src\/.*\.tsx?$/.test(path) && !path.endsWith(".d.ts"));

/** The text with comments blanked out and line numbers kept. Quotes are followed so that "//" in a string stays; a quote ends with its line. */
export function withoutComments(text: string): string {
  let out = "";
  let quote = "";
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!;
    if (quote) {
      if (char === "\\") out += char + (text[++i] ?? "");
      else out += char;
      if (char === quote || (char === "\n" && quote !== "`")) quote = "";
    } else if (char === "/" && text[i + 1] === "/" && text[i - 1] !== ":") {
      while (i + 1 < text.length && text[i + 1] !== "\n") i++;
    } else if (char === "/" && text[i + 1] === "*") {
      const end = text.indexOf("*/", i + 2);
      const comment = text.slice(i, end < 0 ? text.length : end + 2);
      out += comment.replace(/[^\n]/g, "");
      i += comment.length - 1;
    } else {
      if (char === '"' || char === "'" || char === "`") quote = char;
      out += char;
    }
  }
  return out;
}

/** Line (from 1) of an offset in a text. */
export const lineAt = (text: string, offset: number) => text.slice(0, offset).split("\n").length;

/** Findings for every match of a pattern in the code of some files. */
export function matches(files: SourceFile[], pattern: RegExp, message: (match: RegExpExecArray) => string): Finding[] {
  return files.flatMap(({ path, text }) => {
    const code = withoutComments(text);
    return [...code.matchAll(new RegExp(pattern, "gm"))].map((match) => ({ path, line: lineAt(code, match.index), message: message(match) }));
  });
}

export type Import = { target: string; line: number; typeOnly: boolean };

/** What a file imports or re-exports: a path from the root for the project's own files, else the name as written. */
export function importsOf({ path, text }: SourceFile): Import[] {
  const code = withoutComments(text);
  const statement = /(?:^|[;\n])\s*(?:import|export)\s+(type\s)?(?:[^;"'`=]*?\sfrom\s*)?["']([^"'\n]+)["']|\bimport\(\s*["']([^"'\n]+)["']/g;
  return [...code.matchAll(statement)].map((match) => {
    const name = (match[2] ?? match[3])!;
    return { target: resolveName(path, name), line: lineAt(code, match.index + match[0].length), typeOnly: Boolean(match[1]) };
  });
}

function resolveName(from: string, name: string): string {
  if (name.startsWith("#jsx/")) return `src/views/jsx/${name.slice(5)}.ts`;
  return name.startsWith(".") ? join(dirname(from), name) : name;
}

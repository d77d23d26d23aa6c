// How large a file and a function may be, what they are called, and that a file says what it owns.
import { basename } from "node:path";
import { type Finding, matches, product, type Rule, type SourceFile } from "./source.ts";

const FILE_LINES_MAX = 400;
const FUNCTION_LINES_MAX = 70;

const lines = (count: number) => Array.from({ length: count }, (_, index) => `  step(${index});`).join("\n");

function longFiles(files: SourceFile[]): Finding[] {
  return product(files).flatMap(({ path, text }) => {
    const count = text.trimEnd().split("\n").length;
    return count > FILE_LINES_MAX
      ? [{ path, line: count, message: `${count} lines; a file has at most ${FILE_LINES_MAX}: split it by concept` }]
      : [];
  });
}

/** A store is a flat list of prepared queries: as long as its list, and nothing to split. */
const STORE = /^export function \w+Store\(/;
const STARTS = [
  /^(export )?(async )?function\b/, // a declaration
  /=> [{(]$/, // an arrow function with a body of its own
  /^(async |static |get |set |private |override )*(?!if\b|for\b|while\b|switch\b|catch\b|with\b|do\b)[#\w]+\(.*\).* \{$/, // a method
  /^\).* \{$/, // the end of parameters that take several lines
];

/**
 * Lines of a function are its own: those of functions inside it count for them. A factory that returns an object of short functions is short.
 * The formatter gives every block its own indent, so a function ends at the next line with the indent of its first and a closing bracket.
 */
function longFunctions(files: SourceFile[]): Finding[] {
  return product(files).flatMap(({ path, text }) => {
    const rows = text.split("\n");
    const spans = rows.flatMap((row, start) => {
      if (!STARTS.some((pattern) => pattern.test(row.trim()))) return [];
      const indent = row.length - row.trimStart().length;
      const closing = new RegExp(`^ {${indent}}[})]`);
      let end = start + 1;
      while (end < rows.length && !(closing.test(rows[end]!) && !/^\s*\).* \{$/.test(rows[end]!))) end++;
      return end < rows.length ? [{ start, end, row }] : [];
    });
    return spans.flatMap(({ start, end, row }) => {
      const inner = spans.filter((other) => other.start > start && other.end < end);
      const nested = new Set(inner.flatMap((other) => Array.from({ length: other.end - other.start + 1 }, (_, offset) => other.start + offset)));
      const count = end - start + 1 - nested.size;
      return count > FUNCTION_LINES_MAX && !STORE.test(row)
        ? [{ path, line: start + 1, message: `a function of ${count} lines; at most ${FUNCTION_LINES_MAX}: ${row.trim().slice(0, 60)}` }]
        : [];
    });
  });
}

function names(files: SourceFile[]): Finding[] {
  const vague = /^(utils?|helpers?|common|misc|manager|service|index)$/;
  const paths = product(files).flatMap(({ path }) => {
    const name = basename(path).replace(/\.tsx?$/, "");
    if (vague.test(name) && path !== "src/db/migrations/index.ts")
      return [{ path, line: 1, message: `"${name}" says nothing: name the file after its concept` }];
    return /^[a-z0-9]+([-.][a-z0-9]+)*$/.test(name) ? [] : [{ path, line: 1, message: "file names are kebab-case" }];
  });
  const functions = /\bfunction (handle|process)[A-Z]\w*|\bconst (handle|process)[A-Z]\w* = (async )?\(|\bclass \w+(Manager|Service|Helper)\b/;
  return [...paths, ...matches(product(files), functions, ([name]) => `"${name.trim()}": use the field's own verb or noun`)];
}

function opening(files: SourceFile[]): Finding[] {
  return product(files)
    .filter(({ text }) => text.trim() !== "" && !/^(\/\/|\/\*)/.test(text))
    .map(({ path }) => ({ path, line: 1, message: "the first line says what the file owns and what is always true of it" }));
}

export const SIZE_RULES: Rule[] = [
  {
    name: `a file has at most ${FILE_LINES_MAX} lines`,
    check: longFiles,
    offends: [[{ path: "src/hub/all.ts", text: lines(FILE_LINES_MAX + 1) }]],
    passes: [
      [
        { path: "src/hub/all.ts", text: lines(FILE_LINES_MAX) },
        { path: "tests/hub/all.test.ts", text: lines(900) },
      ],
    ],
  },
  {
    name: `a function has at most ${FUNCTION_LINES_MAX} lines`,
    check: longFunctions,
    offends: [
      [{ path: "src/hub/a.ts", text: `export async function acquire(tx: Tx) {\n${lines(69)}\n}\n` }],
      [{ path: "src/hub/a.ts", text: `const acquire = async (\n  tx: Tx,\n) => {\n${lines(69)}\n};\n` }],
      [{ path: "src/hub/a.ts", text: `export function acquire(\n  tx: Tx,\n): Promise<void> {\n${lines(69)}\n}\n` }],
      [{ path: "src/hub/a.ts", text: `class Lane {\n  async write(rule: Rule): Promise<void> {\n${lines(69).replace(/^/gm, "  ")}\n  }\n}\n` }],
      [{ path: "src/views/a.tsx", text: `const Page = () => (\n${lines(69)}\n);\n` }],
    ],
    passes: [
      [
        { path: "src/hub/a.ts", text: `export async function acquire(tx: Tx) {\n${lines(68)}\n}\n\nexport function renew() {\n${lines(60)}\n}\n` },
        { path: "src/hub/b.ts", text: `const A = {\n${lines(200)}\n};\nif (a(b)) {\n${lines(90)}\n}\n` },
      ],
    ],
  },
  {
    name: "files and functions are named after what they are",
    check: names,
    offends: [
      [{ path: "src/hub/utils.ts", text: "" }],
      [{ path: "src/api/index.ts", text: "" }],
      [{ path: "src/hub/leaseRules.ts", text: "" }],
      [{ path: "src/hub/a.ts", text: "export function handleMessage() {}" }],
      [{ path: "src/hub/a.ts", text: "const processQueue = async () => {}" }],
      [{ path: "src/hub/a.ts", text: "class LeaseManager {}" }],
    ],
    passes: [
      [
        { path: "src/db/engine-sqlite.ts", text: "export function handle() {}\nconst processId = process.pid;" },
        { path: "src/db/migrations/index.ts", text: "" },
      ],
    ],
  },
  {
    name: "a file opens with what it owns",
    check: opening,
    offends: [[{ path: "src/hub/a.ts", text: 'import * as b from "./b.ts";\n// late' }]],
    passes: [
      [
        { path: "src/hub/a.ts", text: "// Leases: at most one holder.\n" },
        { path: "src/hub/b.tsx", text: "/** Rows. */\n" },
      ],
    ],
  },
];

// Looks again at everything the Runtime keeps, with today's rules and today's known values: every text column of every store, and the log.
import { Database } from "bun:sqlite";
import { existsSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import type { Redactor } from "./redactor.ts";

/** Something that looks like a secret: where it is and what kind, never what it is. */
export type Finding = { file: string; place: string; kind: string; count: number };
export type ScanReport = { files: number; texts: number; findings: Finding[] };

/** The scan lets others work after this long. Milliseconds. */
const TURN_MS = 20;
const FINDINGS_MAX = 1_000;
/** A longer text is looked at in overlapping stretches. */
const STRETCH_CHARS = 262_144;
const OVERLAP_CHARS = 8_192;

/**
 * Scans databases and logs. Reads only; a file that is missing is left out.
 * @param files databases (`.db`) and logs, by path
 * @param signal ends it early with what it has
 */
export async function scanFiles(files: string[], redactor: Redactor, signal: AbortSignal): Promise<ScanReport> {
  const report: ScanReport = { files: 0, texts: 0, findings: [] };
  const found = new Map<string, Finding>();
  let turn = performance.now();
  for (const path of files.filter((file) => existsSync(file))) {
    report.files++;
    for (const { place, text } of path.endsWith(".db") ? textsOf(path) : linesOf(path)) {
      report.texts++;
      for (const kind of kindsIn(text, redactor)) note(found, { file: basename(path), place, kind, count: 1 });
      if (performance.now() - turn < TURN_MS) continue;
      await new Promise((resume) => setImmediate(resume));
      turn = performance.now();
      if (signal.aborted) break;
    }
  }
  report.findings = [...found.values()];
  return report;
}

function note(found: Map<string, Finding>, finding: Finding) {
  const key = `${finding.file} ${finding.place} ${finding.kind}`;
  const known = found.get(key);
  if (known) known.count++;
  else if (found.size < FINDINGS_MAX) found.set(key, finding);
}

function* kindsIn(text: string, redactor: Redactor): Generator<string> {
  for (let start = 0; start < text.length; start += STRETCH_CHARS - OVERLAP_CHARS)
    for (const { kind } of redactor.find(text.slice(start, start + STRETCH_CHARS))) yield kind;
}

type Place = { place: string; text: string };

/** Every text of every table, a row at a time, named by its table, column and first key column. */
function* textsOf(path: string): Generator<Place> {
  const db = new Database(path, { readonly: true });
  try {
    const tables = db.query<{ name: string }, []>("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'").all();
    for (const { name } of tables) {
      const columns = db.query<{ name: string; type: string; pk: number }, []>(`pragma table_info("${name}")`).all();
      const texts = columns.filter(({ type }) => type.toLowerCase() === "text").map((column) => column.name);
      const key = columns.find(({ pk }) => pk === 1)?.name ?? texts[0];
      if (texts.length === 0) continue;
      const all = [...new Set([key!, ...texts])].map((column) => `"${column}"`).join(", ");
      for (const row of db.prepare<Record<string, unknown>, []>(`select ${all} from "${name}"`).iterate())
        for (const column of texts)
          if (typeof row[column] === "string" && row[column].length >= 8)
            yield { place: `${name}.${column} of ${String(row[key!]).slice(0, 64)}`, text: row[column] };
    }
  } finally {
    db.close();
  }
}

function* linesOf(path: string): Generator<Place> {
  const lines = readFileSync(path, "utf8").split("\n");
  for (const [index, text] of lines.entries()) if (text !== "") yield { place: `line ${index + 1}`, text };
}

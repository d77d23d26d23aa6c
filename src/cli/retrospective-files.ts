// Writes a retrospective when a workflow run has ended, and again after late entries or promotions: `<assets>/retrospectives/<runId>.json` and `.md`.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Hub } from "../hub/hub.ts";
import { entryOf } from "../hub/journal.ts";
import { retrospectiveMarkdown, retrospectiveOf } from "../hub/retrospectives.ts";
import { runOf } from "../hub/workflows/runs.ts";

const RUNS_AT_ONCE = 50;
const ENTRIES_MAX = 1_000;
const PROJECTS_MAX = 1_000;

/** A job for the hub's loop. The first round writes what a crash kept from being written; each later one looks only at what changed. */
export function retrospectiveWriter(assetsDir: string): (hub: Hub) => Promise<number> {
  const folder = join(assetsDir, "retrospectives");
  const revisions = new Map<string, number>(); // journal revision seen, by project
  const written = new Map<string, string>(); // run → the update it was written for

  return async (hub) => {
    const { read } = hub.engine;
    let count = 0;
    const write = async (runId: string, force: boolean) => {
      const row = await read.workflows.find(runId);
      if (!row || row.completedAt === null) return;
      const entries = (await read.journal.ofRun(runId, ENTRIES_MAX)).map(entryOf);
      const version = `${row.updatedAt} ${entries.length}`;
      if (!force && (written.get(runId) === version || (!written.has(runId) && existsSync(join(folder, `${runId}.json`))))) return;
      const report = retrospectiveOf(runOf(row), entries);
      put(folder, `${runId}.json`, `${JSON.stringify(report, null, 2)}\n`);
      put(folder, `${runId}.md`, retrospectiveMarkdown(report));
      written.set(runId, version);
      count++;
    };
    for (const { project } of await read.projects.page("", PROJECTS_MAX)) {
      const isFirst = !revisions.has(project);
      const changed = isFirst ? [] : await read.journal.changedAfter(project, revisions.get(project)!, ENTRIES_MAX);
      revisions.set(project, isFirst ? (await read.context.counters(project)).lastRevision : (changed.at(-1)?.revision ?? revisions.get(project)!));
      for (const runId of new Set(changed.map((entry) => entry.runId))) await write(runId, true);
      for (const row of await read.workflows.ofProject(project, Number.MAX_SAFE_INTEGER, RUNS_AT_ONCE))
        if (row.completedAt !== null) await write(row.id, false);
    }
    return count;
  };
}

/** A file is there whole or not at all. */
function put(folder: string, name: string, text: string) {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, name);
  rmSync(`${path}.new`, { force: true }); // of a crash
  writeFileSync(`${path}.new`, text, { mode: 0o600, flag: "wx" });
  renameSync(`${path}.new`, path);
}

// The retrospective of a run that has ended: what was asked, how each stage went, what the journal holds. As JSON for programs and Markdown for people.
import type { JournalEntry } from "../protocol/journal.ts";
import type { WorkflowRun } from "../protocol/workflows.ts";

export interface Retrospective {
  schema: "kxm.retrospective.v1";
  run: Omit<WorkflowRun, "signalReceipts">;
  durationMs: number | null;
  attempts: number;
  entries: JournalEntry[];
}

/** The retrospective of a run with its journal entries, oldest first. */
export function retrospectiveOf({ signalReceipts: _, ...run }: WorkflowRun, entries: JournalEntry[]): Retrospective {
  const durationMs = run.completedAt ? Date.parse(run.completedAt) - Date.parse(run.createdAt) : null;
  return { schema: "kxm.retrospective.v1", run, durationMs, attempts: run.stages.reduce((sum, { attempts }) => sum + attempts, 0), entries };
}

/** Text of agents stays text in Markdown: one line, nothing that starts a heading, list, link or tag. */
const plain = (text: string) => text.replaceAll(/[\\`*_{}[\]<>#|!]/g, (character) => `\\${character}`).replaceAll(/\s*\r?\n\s*/g, " ");

/** The same for people. */
export function retrospectiveMarkdown({ run, durationMs, attempts, entries }: Retrospective): string {
  const stages = run.stages.map(
    ({ label, status, attempts, summary, degraded }) =>
      `| ${plain(label)} | ${status}${degraded ? " (degraded)" : ""} | ${attempts} | ${plain(summary ?? "")} |`,
  );
  const group = (title: string, categories: string[]) => {
    const own = entries.filter(({ category }) => categories.includes(category));
    const lines = own.map((entry) => {
      const decision = entry.promotion?.at(-1);
      return `- ${plain(entry.summary)}${entry.stageId ? ` (${plain(entry.stageId)}${entry.attempt ? `, attempt ${entry.attempt}` : ""})` : ""}${decision ? ` — ${decision.to}: ${plain(decision.reason)}` : ""}`;
    });
    return own.length === 0 ? [] : [`## ${title}`, "", ...lines, ""];
  };
  return [
    `# ${plain(run.definitionId)}: ${run.status}`,
    "",
    `Run \`${run.id}\` of project ${plain(run.project)}, coordinated by ${plain(run.targetAgentName)}. Started ${run.createdAt}${run.completedAt ? `, ended ${run.completedAt} after ${Math.round((durationMs ?? 0) / 1000)} s` : ""}, ${attempts} attempts, ${run.transitions?.length ?? 0} transitions.`,
    "",
    "| stage | status | attempts | summary |",
    "| --- | --- | --- | --- |",
    ...stages,
    "",
    ...group("Decisions and plans", ["plan", "decision", "state-change"]),
    ...group("Errors and contradictions", ["error", "contradiction"]),
    ...group("Lessons", ["lesson", "skill-candidate"]),
    ...group("Observations and experiments", ["observation", "hypothesis", "experiment"]),
  ].join("\n");
}

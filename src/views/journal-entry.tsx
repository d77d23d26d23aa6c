// One journal entry of a workflow run, and promoting it: what was planned, decided, found and learned, in the agent's words.
/** @jsxImportSource #jsx */
import * as journal from "../hub/journal.ts";
import { HubError } from "../protocol/errors.ts";
import { type JournalEntry, PROMOTABLE } from "../protocol/journal.ts";
import { REASON_MAX } from "../protocol/limits.ts";
import { act, fieldOf } from "./acts.tsx";
import { workflowRunLink } from "./links.ts";
import { Ask, type Question } from "./question.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Check, Choices, TextAreaField, TextField } from "./ui/form.tsx";
import { shortId } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";
import { Card } from "./ui/table.tsx";
import { Ago } from "./ui/time.tsx";
import { Line, Untrusted } from "./ui/untrusted.tsx";

const REF_MAX = 1000;
const REFS_MAX = 32;
const TO = ["approved", "rejected", "quarantined"] as const;
const NOTES: Record<(typeof TO)[number], string> = {
  approved: "it is recalled as knowledge from now on",
  rejected: "it was looked at and is not right",
  quarantined: "it may harm: nobody is given it",
};
const WORDS: Record<(typeof TO)[number], string> = { approved: "Approve it", rejected: "Reject it", quarantined: "Quarantine it" };

const isOpen = ({ category, promotion = [] }: JournalEntry): boolean => PROMOTABLE.includes(category) && promotion.length === 0;

/** Promoting a candidate, once, with evidence. */
export function promoteQuestion({ id }: JournalEntry): Question {
  return {
    name: `promote-${id}`,
    button: "Decide…",
    small: true,
    title: `Decide on ${shortId(id)}?`,
    action: `/journal/${encodeURIComponent(id)}/promotion`,
    confirm: "Decide",
    cancel: "Leave it open",
    confirmKind: "primary",
    fields: (field) => (
      <>
        <p>A candidate is decided once. The entry itself stays as it was written.</p>
        <Choices legend="Decision">
          {TO.map((to) => (
            <Check kind="radio" name="to" value={to} label={WORDS[to]} note={NOTES[to]} required />
          ))}
        </Choices>
        <TextAreaField
          id={`${field}-refs`}
          name="refs"
          label="Evidence"
          hint="links, ids or tickets, one a line; at least one"
          rows={2}
          required
          maxlength={REFS_MAX * REF_MAX}
        />
        <TextField id={`${field}-reason`} name="reason" label="Reason" hint="kept with the entry and in the audit" required maxlength={REASON_MAX} />
      </>
    ),
  };
}

const LOOK: Record<JournalEntry["severity"], "idle" | "warning" | "error"> = { info: "idle", warning: "warning", error: "error" };

/** One entry. `by` is the name of its author, as far as it is known. */
export const EntryCard = ({ entry, by, visit }: { entry: JournalEntry; by: string; visit: Visit }) => {
  const { id, category, area, severity, summary, details, evidence, stageId, attempt, promotion = [], createdAt } = entry;
  const decided = promotion.at(-1);
  return (
    <Card
      id={id}
      title={<Line text={summary} max={300} />}
      when={<Ago at={Date.parse(createdAt)} now={visit.now} />}
      meta={[
        <Status state={LOOK[severity]} word={category} why={area} />,
        ...(stageId ? [`${stageId}${attempt ? `, attempt ${attempt}` : ""}`] : []),
        <>
          by <Line text={by} max={60} />
        </>,
        ...(decided
          ? [
              <Status
                state={decided.to}
                why={
                  <>
                    <Line text={decided.reason} max={160} /> <Ago at={Date.parse(decided.decidedAt)} now={visit.now} plain />
                  </>
                }
              />,
            ]
          : isOpen(entry)
            ? [<Status state="proposed" why="waits for a decision" />]
            : []),
        ...(isOpen(entry) && visit.session.role === "admin" ? [<Ask question={promoteQuestion(entry)} visit={visit} />] : []),
      ]}
    >
      {(details || evidence.length > 0) && (
        <Untrusted
          by={by}
          note={`${category}, area ${area}`}
          text={[details, ...evidence.map((line) => `evidence: ${line}`)].filter(Boolean).join("\n")}
          max={2_000}
        />
      )}
    </Card>
  );
};

const promote = screen({
  method: "POST",
  path: "/journal/:id/promotion",
  role: "admin",
  run: async (visit) => {
    const { hub, params, form, session, by } = visit;
    const id = params["id"]!;
    const row = await hub.engine.read.journal.find(id);
    if (!row || (session.project !== null && session.project !== row.project))
      throw new HubError("journal_not_found", `there is no journal entry ${id}`);
    return act(visit, workflowRunLink(row.runId, { project: visit.project }), async () => {
      const to = TO.find((one) => one === form.get("to"));
      if (!to) throw new HubError("protocol_error", "choose what becomes of it");
      const reason = fieldOf(form, "reason", REASON_MAX);
      const refs = fieldOf(form, "refs", REFS_MAX * REF_MAX);
      const evidenceRefs = refs
        .split("\n")
        .map((line) => line.trim())
        .filter(Boolean)
        .slice(0, REFS_MAX);
      await hub.engine.write(row.project, (tx) => journal.promote(tx, id, { to, evidenceRefs, reason }, by));
      return { tone: "ok", text: `${shortId(id)} is ${to}.` };
    });
  },
});

export const screens: readonly Screen[] = [promote];

// Deciding on a proposed value of a key: the questions that ask for it, wherever a proposal is shown, and what they lead to.
/** @jsxImportSource #jsx */
import * as state from "../hub/context/state.ts";
import { REASON_MAX } from "../protocol/limits.ts";
import { act, fieldOf, personOf } from "./acts.tsx";
import { KEY_MAX, valueOfForm } from "./context-value.tsx";
import type { Question } from "./question.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { TextAreaField, TextField } from "./ui/form.tsx";
import { shortId } from "./ui/reference.tsx";

const EVIDENCE_MAX = 4_000;

/** One value of a key. `key` when the page to come back to is the key's. */
export type Decided = { project: string; key?: string | undefined; id: string };
/** How the question is told apart from others of the page, and what the button that leads to it says. */
type Asks = Pick<Question, "name" | "button">;

/** What every decision on a value sends. */
export const Hidden = ({ of: { project, key, id } }: { of: Decided }) => (
  <>
    <input type="hidden" name="project" value={project} />
    {key !== undefined && <input type="hidden" name="key" value={key} />}
    <input type="hidden" name="proposal" value={id} />
  </>
);

/** A reason that the audit keeps. @param field beginning of the id */
export const ReasonField = ({ field, label }: { field: string; label: string }) => (
  <TextField id={`${field}-reason`} name="reason" label={label} hint="kept in the audit" required maxlength={REASON_MAX} />
);

export const promoteQuestion = (of: Decided, asks: Asks): Question => ({
  ...asks,
  title: `Promote ${shortId(of.id)}?`,
  action: "/context/promote",
  confirm: "Promote",
  cancel: "Leave it",
  confirmKind: "primary",
  fields: (field) => (
    <>
      <Hidden of={of} />
      <p>It becomes what the key says now; what it said before is kept and ends.</p>
      <TextAreaField
        id={`${field}-evidence`}
        name="evidence"
        label="Evidence"
        hint="one line each, at least one"
        required
        maxlength={EVIDENCE_MAX}
        rows={3}
      />
    </>
  ),
});

export const rejectQuestion = (of: Decided, asks: Asks): Question => ({
  ...asks,
  title: `Reject ${shortId(of.id)}?`,
  action: "/context/reject",
  confirm: "Reject",
  cancel: "Leave it",
  confirmKind: "primary",
  fields: (field) => (
    <>
      <Hidden of={of} />
      <ReasonField field={field} label="Reason" />
    </>
  ),
});

const promote = screen({
  method: "POST",
  path: "/context/promote",
  role: "admin",
  run: (visit) => {
    const { project, itemId: proposalId, back } = valueOfForm(visit);
    return act(visit, back, async () => {
      const lines = fieldOf(visit.form, "evidence", EVIDENCE_MAX).split("\n");
      const evidence = lines.map((line) => line.trim()).filter(Boolean);
      await visit.hub.engine.write(project, (tx) => state.promote(tx, { promoter: visit.by.actor, ...visit.by }, { proposalId, project, evidence }));
      return { tone: "ok", text: "The value is promoted.", hint: "Agents of the project are told so from now on." };
    });
  },
});

const reject = screen({
  method: "POST",
  path: "/context/reject",
  role: "admin",
  run: (visit) => {
    const { project, itemId: proposalId, back } = valueOfForm(visit);
    return act(visit, back, async () => {
      fieldOf(visit.form, "reason", REASON_MAX);
      const { id, audit } = personOf(visit);
      await visit.hub.engine.write(project, (tx) => state.reject(tx, { actor: id, ...audit }, { proposalId, project }));
      return { tone: "ok", text: "The proposal is rejected." };
    });
  },
});

const decider = (visit: Visit, reason: string) => ({ promoter: visit.by.actor, ...visit.by, reason });

const keep = screen({
  method: "POST",
  path: "/context/keep",
  role: "admin",
  run: (visit) => {
    const { project, itemId, back } = valueOfForm(visit);
    return act(visit, back, async () => {
      const reason = fieldOf(visit.form, "reason", REASON_MAX);
      await visit.hub.engine.write(project, (tx) => state.keepOnly(tx, decider(visit, reason), { project, itemId }));
      return { tone: "ok", text: "The key says one thing again." };
    });
  },
});

const both = screen({
  method: "POST",
  path: "/context/both",
  role: "admin",
  run: (visit) => {
    const { project, itemId, back } = valueOfForm(visit);
    return act(visit, back, async () => {
      const reason = fieldOf(visit.form, "reason", REASON_MAX);
      const decision = { project, itemId, newKey: fieldOf(visit.form, "newKey", KEY_MAX), evidence: [reason.slice(0, KEY_MAX)] };
      await visit.hub.engine.write(project, (tx) => state.keepBoth(tx, decider(visit, reason), decision));
      return { tone: "ok", text: "Both are kept, each under its own key." };
    });
  },
});

export const screens: readonly Screen[] = [promote, reject, keep, both];

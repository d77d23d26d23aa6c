// What an operator can ask of a run: the questions, and the one address that sends the command. The machine decides and says what came of it.
/** @jsxImportSource #jsx */
import * as commands from "../hub/commands.ts";
import { hasEnded } from "../hub/projection.ts";
import * as runs from "../hub/runs.ts";
import { HubError } from "../protocol/errors.ts";
import type { RunDetail } from "../protocol/runs.ts";
import type { CommandKind } from "../protocol/sync.ts";
import { RESOLUTION_ACTIONS } from "../protocol/sync-event.ts";
import { act, fieldOf, optionalFieldOf } from "./acts.tsx";
import { runLink } from "./links.ts";
import type { Question } from "./question.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Button, Csrf } from "./ui/button.tsx";
import { Check, Choices, SelectField, TextAreaField, TextField } from "./ui/form.tsx";
import { Row } from "./ui/page.tsx";
import { Id, shortId } from "./ui/reference.tsx";
import { visible } from "./ui/untrusted.tsx";

const TEXT_MAX = 1000;
const NAME_MAX = 64;
const REFS_MAX = 64;
const REF_MAX = 500;

type Ask = Extract<CommandKind, "signal" | "cancel" | "retry" | "resolve" | "pause" | "resume" | "sync-retry">;
const ASKS: readonly Ask[] = ["signal", "cancel", "retry", "resolve", "pause", "resume", "sync-retry"];
/** Kinds that are about a project on a machine, not about one run. */
export const OF_PROJECT: readonly Ask[] = ["pause", "resume", "sync-retry"];

/** Where commands on a run are sent. */
const commandsOf = ({ projectId, runId }: Pick<RunDetail, "projectId" | "runId">): string => `${runLink(projectId, runId)}/commands`;

/** The hidden fields of every command: its kind, and a key so that sending twice asks once. */
const CommandFields = ({ kind, visit }: { kind: Ask; visit: Visit }) => (
  <>
    <input type="hidden" name="kind" value={kind} />
    <input type="hidden" name="key" value={visit.hub.newId("req")} />
  </>
);

/** The signal a step waits for, as its Runtime says it. */
const awaited = ({ waiting }: RunDetail): string | undefined => /^waits for the signal ([a-z0-9_-]{1,64})$/.exec(waiting?.reason ?? "")?.[1];

/** The steps that a run came to, as places to begin again; the last one first, which is most often the one that failed. */
const stepsOf = ({ projection }: RunDetail) =>
  projection.steps.items
    .toReversed()
    .map(({ stepId, status }) => ({ value: stepId, text: `step ${visible(stepId)} (${status.replaceAll("_", " ")})` }));

/** What may be asked of a run as it stands. */
export function questionsOf(run: RunDetail, visit: Visit): Question[] {
  if (visit.session.role === "viewer") return [];
  const { runId } = run;
  const action = commandsOf(run);
  const short = shortId(runId);
  const signal: Question = {
    name: "signal",
    button: "Signal…",
    icon: "signal",
    title: `Signal ${short}?`,
    action,
    confirm: "Send the signal",
    cancel: "Leave it",
    confirmKind: "primary",
    fields: (id) => (
      <>
        <p>The step that waits for this signal goes on with the outcome you give.</p>
        <CommandFields kind="signal" visit={visit} />
        <TextField id={`${id}-signal`} name="signal" autofocus label="Signal" value={awaited(run)} required maxlength={NAME_MAX} />
        <TextField id={`${id}-status`} name="status" label="Outcome" value="passed" hint="one the step knows" required maxlength={NAME_MAX} />
        <TextField id={`${id}-summary`} name="summary" label="Summary" hint="a sentence for the record" maxlength={TEXT_MAX} />
      </>
    ),
  };
  const cancel: Question = {
    name: "cancel",
    button: "Cancel…",
    kind: "warn",
    title: `Cancel ${short}?`,
    action,
    confirm: "Cancel the run",
    cancel: "Keep running",
    fields: (id) => (
      <>
        <p>
          <Id value={runId} whole /> is stopped; what runs now is stopped first. What it has done stays done.
        </p>
        <CommandFields kind="cancel" visit={visit} />
        <TextField
          id={`${id}-reason`}
          name="reason"
          autofocus
          label="Reason"
          hint="goes to the machine and into the audit"
          required
          maxlength={TEXT_MAX}
        />
      </>
    ),
  };
  const retry: Question = {
    name: "retry",
    button: "Run again…",
    icon: "retry",
    title: `Run the work of ${short} again?`,
    action,
    confirm: "Run again",
    cancel: "Leave it",
    confirmKind: "primary",
    fields: (id) => (
      <>
        <p>The same prompt becomes a new run of the same workflow, with the project’s files as they are now. This run stays as it is.</p>
        <CommandFields kind="retry" visit={visit} />
        <SelectField
          id={`${id}-step`}
          name="step"
          label="From"
          hint="A step goes on from the commits and results that the steps before it left here"
          options={[{ value: "", text: "the beginning, on the commit that is checked out" }, ...stepsOf(run)]}
        />
        <TextField id={`${id}-reason`} name="reason" autofocus label="Reason" hint="kept in the audit" maxlength={TEXT_MAX} />
      </>
    ),
  };
  const ended = hasEnded(run.status ?? null);
  const waits = run.waiting?.for === "step" || run.waiting?.for === "run";
  return ended ? [retry] : [...(waits ? [signal] : []), cancel];
}

/** Holding new work of a run's project on its machine. */
export const holdOf = (run: RunDetail, paused: boolean, visit: Visit): Question =>
  holdQuestion({ action: commandsOf(run), projectId: run.projectId, paused }, visit);

/** Pausing a project on its machine, or going on: it holds new work; runs that execute go on. */
export function holdQuestion(
  { action, projectId, paused, name = "hold", project }: { action: string; projectId: string; paused: boolean; name?: string; project?: string },
  visit: Visit,
): Question {
  const kind = paused ? "resume" : "pause";
  return {
    name,
    button: paused ? "Resume…" : "Pause…",
    icon: paused ? "run" : "paused",
    small: true,
    title: paused ? `Let ${shortId(projectId)} take work again?` : `Hold new work of ${shortId(projectId)}?`,
    action,
    confirm: paused ? "Take work again" : "Hold new work",
    cancel: "Leave it",
    confirmKind: "primary",
    fields: (id) => (
      <>
        <p>
          {paused ? "What waits begins as places get free." : "No new run begins on this machine. Runs that execute go on; what is handed in waits."}
        </p>
        <CommandFields kind={kind} visit={visit} />
        <input type="hidden" name="projectId" value={projectId} />
        {project !== undefined && <input type="hidden" name="project" value={project} />}
        <TextField id={`${id}-reason`} name="reason" autofocus label="Reason" hint="goes to the machine and into the audit" maxlength={TEXT_MAX} />
      </>
    ),
  };
}

/** Pushing what the hub has refused with a code once more. */
export function pushAgainQuestion(
  { action, projectId, project, code, rows, name }: { action: string; projectId: string; project: string; code: string; rows: number; name: string },
  visit: Visit,
): Question {
  return {
    name,
    button: "Push again…",
    icon: "retry",
    small: true,
    title: `Push ${rows === 1 ? "the row" : `the ${rows.toLocaleString("en")} rows`} of ${shortId(projectId)} again?`,
    action,
    confirm: "Push again",
    cancel: "Leave them",
    confirmKind: "primary",
    fields: (id) => (
      <>
        <p>
          The hub refused {rows === 1 ? "it" : "them"} with <code>{visible(code)}</code>. What is refused once more is parked again; nothing is lost.
        </p>
        <CommandFields kind="sync-retry" visit={visit} />
        <input type="hidden" name="projectId" value={projectId} />
        <input type="hidden" name="project" value={project} />
        <input type="hidden" name="code" value={code} />
        <TextField id={`${id}-reason`} name="reason" autofocus label="Reason" hint="goes to the machine and into the audit" maxlength={TEXT_MAX} />
      </>
    ),
  };
}

const ACTIONS: Record<(typeof RESOLUTION_ACTIONS)[number], readonly [string, string]> = {
  "confirm-absent-and-retry": ["It did not happen: try the step again", "you looked, and there is no trace of it"],
  "mark-completed": ["It happened: go on", "you have seen the result with your own eyes"],
  "compensate-and-retry": ["It happened and was undone: try again", "you have put things back as they were"],
  "mark-failed": ["The step failed", "the workflow decides how it goes on"],
  cancel: ["End the run", "whatever became of it"],
};

/** Saying what became of an effect that nobody can prove: what was found, how one knows, and on what grounds. */
export const ResolveForm = ({ run, effectId, visit }: { run: RunDetail; effectId: string; visit: Visit }) => {
  const id = `resolve-${effectId}`;
  return (
    <form method="post" action={commandsOf(run)} class="form" id={id} hx-post={commandsOf(run)} hx-target={`#${id}`} hx-disable="find button">
      <Csrf token={visit.csrf} />
      <CommandFields kind="resolve" visit={visit} />
      <input type="hidden" name="effectId" value={effectId} />
      <Choices legend="What you found">
        {RESOLUTION_ACTIONS.map((action) => (
          <Check kind="radio" name="action" value={action} label={ACTIONS[action][0]} note={ACTIONS[action][1]} required />
        ))}
      </Choices>
      <TextField id={`${id}-reason`} name="reason" label="How you know" hint="goes to the machine and into the audit" required maxlength={TEXT_MAX} />
      <TextAreaField
        id={`${id}-refs`}
        name="refs"
        label="Evidence"
        hint="links, ids or tickets, one a line"
        rows={2}
        maxlength={REFS_MAX * REF_MAX}
      />
      <Row>
        <Button kind="primary" type="submit">
          Resolve {shortId(effectId)}
        </Button>
      </Row>
    </form>
  );
};

/** What a form says, as the payload of its kind. @throws HubError protocol_error naming the field */
export function payloadOf(kind: Ask, form: URLSearchParams): Record<string, unknown> {
  const reason = optionalFieldOf(form, "reason", TEXT_MAX);
  const because = reason === undefined ? {} : { reason };
  switch (kind) {
    case "signal": {
      const [status, summary] = [optionalFieldOf(form, "status", NAME_MAX), optionalFieldOf(form, "summary", TEXT_MAX)];
      return { signal: fieldOf(form, "signal", NAME_MAX), ...(status && { status }), ...(summary && { summary }) };
    }
    case "cancel":
      return { reason: fieldOf(form, "reason", TEXT_MAX) };
    case "resolve": {
      const refs = (form.get("refs") ?? "")
        .split("\n")
        .map((line) => line.trim())
        .filter(Boolean);
      return {
        effectId: fieldOf(form, "effectId", 144),
        action: fieldOf(form, "action", NAME_MAX),
        reason: fieldOf(form, "reason", TEXT_MAX),
        ...(refs.length > 0 && { refs: refs.slice(0, REFS_MAX).map((ref) => ref.slice(0, REF_MAX)) }),
      };
    }
    case "retry": {
      const stepId = optionalFieldOf(form, "step", NAME_MAX);
      return { ...(stepId && { stepId }), ...because };
    }
    case "sync-retry": {
      const code = optionalFieldOf(form, "code", NAME_MAX);
      return { ...(code && { code }), ...because };
    }
    case "pause":
    case "resume":
      return because;
  }
}

/** The kind a form asks for. @throws HubError protocol_error */
export function askOf(form: URLSearchParams): Ask {
  const kind = ASKS.find((one) => one === form.get("kind"));
  if (!kind) throw new HubError("protocol_error", "the form does not say what to do");
  return kind;
}

const SENT: Record<Ask, string> = {
  signal: "The signal is on its way.",
  cancel: "The machine is asked to stop the run.",
  retry: "The machine is asked to run it again.",
  resolve: "The machine is told what you found.",
  pause: "The machine is asked to hold new work.",
  resume: "The machine is asked to take work again.",
  "sync-retry": "The machine is asked to push them again.",
};
export const sentWords = (kind: Ask): string => SENT[kind];

const send = screen({
  method: "POST",
  path: "/runs/:projectId/:runId/commands",
  role: "operator",
  run: async (visit) => {
    const { hub, form, params, session } = visit;
    const {
      project,
      projectId,
      runId,
      homeRuntimeId: runtimeId,
    } = await runs.findRow(hub.engine.read, session.project, params["projectId"]!, params["runId"]!);
    return act(visit, runLink(projectId, runId), async () => {
      const kind = askOf(form);
      const payload = payloadOf(kind, form);
      const idempotencyKey = optionalFieldOf(form, "key", NAME_MAX);
      const target = OF_PROJECT.includes(kind) ? { runtimeId, projectId } : { projectId, runId };
      await commands.send(hub, visit.by, { project, kind, ...target, payload, idempotencyKey });
      return { tone: "ok", text: SENT[kind], hint: "Below it says when the machine has received and applied it." };
    });
  },
});

export const screens: readonly Screen[] = [send];

// One approval: what exactly is asked, the hash that binds the decision to it, the decision and how far it got. The same in the inbox and on a run's page.
/** @jsxImportSource #jsx */
import type { Approval } from "../protocol/approvals.ts";
import { REASON_MAX } from "../protocol/limits.ts";
import { approvalLink, runLink } from "./links.ts";
import { receiptOf } from "./receipts.tsx";
import type { Visit } from "./screen.ts";
import { Act, Button } from "./ui/button.tsx";
import { ConfirmDialog } from "./ui/dialog.tsx";
import { TextField } from "./ui/form.tsx";
import type { IconName } from "./ui/icon.tsx";
import { InboxItem, Receipt, Shown } from "./ui/inbox.tsx";
import { Chip, Ref, shortId } from "./ui/reference.tsx";
import { Status, type Tone } from "./ui/status.tsx";
import { Ago } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

const TITLE_SHOWN = 160;

/** An approval with what is known of the machine that asks. */
export type AskedApproval = { approval: Approval; where: string; answers: boolean; lastSeenAt: number | undefined };

/** A hash as people compare it: `sha256 9f2c 41ab 77d0 1e05 …`. */
export const shortHash = (hash: string): string => {
  const [, hex = hash] = /^sha256:(.+)$/.exec(hash) ?? [];
  return `sha256 ${hex
    .slice(0, 16)
    .match(/.{1,4}/g)
    ?.join(" ")} …`;
};

/** What a bulk decision sends for one approval: its id and the hash of what was shown. */
export const pickOf = ({ id, contentHash }: Pick<Approval, "id" | "contentHash">): string => `${id} ${contentHash}`;

const LOOK: Record<Approval["status"], readonly [Tone, IconName]> = {
  pending: ["attn", "person"],
  approved: ["ok", "ok"],
  rejected: ["bad", "cancelled"],
  cancelled: ["mute", "cancelled"],
};

type ItemProps = {
  asked: AskedApproval;
  visit: Visit;
  /** The bulk bar it can be picked for. */
  bulk?: string;
  /** Whether the run is named: not on the run's own page. */
  about?: boolean;
  /** Shown in full, on its own ground. */
  open?: boolean;
  /** Stands below the inbox it has just left: an item of its own there, so that the reader's place stays among what waits. */
  left?: boolean;
};

/** One approval, whatever became of it. */
export const ApprovalItem = ({ asked, visit, bulk, about, open, left }: ItemProps) => {
  const { approval, where } = asked;
  const { now, session } = visit;
  const { id, status, content, stepId, projectId, runId, title, requestedAt, decidedAt, decision } = approval;
  const pending = status === "pending";
  const [tone, icon] = decision && !pending && decision.command.state === "sent" ? (["run", "run"] as const) : LOOK[status];
  const acts = pending && session.role !== "viewer";
  const [question = ""] = content.split("\n");
  return (
    <InboxItem
      id={`${left ? "decided" : "approval"}-${id}`}
      tone={tone}
      icon={icon}
      open={open && pending}
      done={!pending}
      title={
        <>
          {pending ? "" : `${decidedWord(approval)}: `}
          {question ? <Line text={question} max={TITLE_SHOWN} /> : `Step ${stepId} asks`}
        </>
      }
      why={
        <>
          <span>
            <Ref href={approvalLink(id, { project: visit.project })}>{shortId(id)}</Ref>
            {about ? (
              <>
                {" "}
                · <Ref href={runLink(projectId, runId, { project: visit.project })}>{<Line text={title} max={80} />}</Ref>, step {stepId}
              </>
            ) : (
              ` · step ${stepId}`
            )}
          </span>
          <span>{where}</span>
          {!(open && pending) && (
            <span>
              <Chip icon="hash">{shortHash(approval.contentHash)}</Chip>
            </span>
          )}
          {pending && <Away asked={asked} now={now} />}
          {decision && <Receipt steps={receiptOf({ ...decision.command }, where, now)} />}
          {pending && decision && <span>asked again: decide over what is asked now</span>}
          {!pending && approval.reason && (
            <span>
              <Line text={approval.reason} max={TITLE_SHOWN} />
            </span>
          )}
        </>
      }
      age={<Ago at={Date.parse((!pending && decidedAt) || requestedAt)} now={now} />}
      acts={acts && !open && <Decide asked={asked} visit={visit} small />}
      more={
        (open || content.includes("\n") || content.length > TITLE_SHOWN) && (
          <Shown
            says={`${where} asks exactly this; the hash also covers what its steps have shown`}
            hash={shortHash(approval.contentHash)}
            code={content || `Step ${stepId} asks without words.`}
            foot={open && acts && <Decide asked={asked} visit={visit} />}
          />
        )
      }
      pick={bulk !== undefined && acts ? { bulk, value: pickOf(approval), label: `approval ${id}` } : undefined}
    />
  );
};

function decidedWord({ status, decidedBy }: Approval): string {
  const by = decidedBy ? ` by ${shortId(decidedBy)}` : "";
  return status === "cancelled" ? "Not asked any more" : `${status === "approved" ? "Approved" : "Rejected"}${by}`;
}

/** A machine that is away keeps a decision waiting. */
const Away = ({ asked: { answers, lastSeenAt }, now }: { asked: AskedApproval; now: number }) =>
  answers ? null : (
    <>
      <span>
        <Status
          state={lastSeenAt === undefined ? "unknown" : "lost contact"}
          why={
            lastSeenAt === undefined ? (
              "the machine never reported"
            ) : (
              <>
                machine last seen <Ago at={lastSeenAt} now={now} plain />
              </>
            )
          }
        />
      </span>
      <span>A decision is kept here and applied when the machine is back, if the hash still matches.</span>
    </>
  );

/** The decision, bound to the hash that is shown beside it. */
const Decide = ({ asked, visit, small }: { asked: AskedApproval; visit: Visit; small?: boolean }) => {
  const { approval } = asked;
  const { id, contentHash } = approval;
  return (
    <>
      <Act action={`${approvalLink(id)}/decision`} csrf={visit.csrf} fields={{ decision: "approve", contentHash }}>
        <Button kind={small ? undefined : "primary"} small={small} type="submit" hotkey="a" silentKey={small}>
          Approve
        </Button>
      </Act>
      <Button small={small} href={approvalLink(id, { act: "reject", project: visit.project })} opens={`reject-${id}`} hotkey="r" silentKey={small}>
        Reject…
      </Button>
      <RejectDialog approval={approval} visit={visit} />
    </>
  );
};

/** Asks why. Without script the approval's own page asks. */
const RejectDialog = ({ approval: { id, contentHash }, visit }: { approval: Approval; visit: Visit }) => (
  <ConfirmDialog
    id={`reject-${id}`}
    title={`Reject ${shortId(id)}?`}
    action={`${approvalLink(id)}/decision`}
    csrf={visit.csrf}
    target={`#reject-${id}`}
    confirm="Reject"
    cancel="Keep waiting"
  >
    <RejectFields id={id} contentHash={contentHash} />
  </ConfirmDialog>
);

/** What is rejected, exactly, and why. */
export const RejectFields = ({ id, contentHash }: { id: string; contentHash: string }) => (
  <>
    <p>
      The run goes on from the step’s outcome <code>rejected</code>, or ends when its workflow has no way for it. Bound to {shortHash(contentHash)}
    </p>
    <input type="hidden" name="decision" value="reject" />
    <input type="hidden" name="contentHash" value={contentHash} />
    <TextField
      id={`reject-${id}-reason`}
      name="reason"
      autofocus
      label="Reason"
      hint="the run and the audit keep it"
      required
      maxlength={REASON_MAX}
    />
  </>
);

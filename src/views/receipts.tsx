// What was asked of a Runtime and how far it got: sent → received → applied, or refused and why. Shown wherever a command was sent from.
/** @jsxImportSource #jsx */
import type { Command } from "../protocol/runtimes.ts";
import type { Child } from "./jsx/jsx-runtime.ts";
import { runLink } from "./links.ts";
import type { IconName } from "./ui/icon.tsx";
import { InboxItem, Receipt, type ReceiptStep } from "./ui/inbox.tsx";
import { Id, Ref, shortId } from "./ui/reference.tsx";
import type { Tone } from "./ui/status.tsx";
import { Ago, Clock, Left, took } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

/** As much of a command as its receipt needs. */
export type Sent = Pick<Command, "state" | "reason"> & { sentAt: string; receivedAt?: string | undefined; finishedAt?: string | undefined };

const REASON_SHOWN = 160;

/** The steps of a receipt. `where` names the machine: it is what the operator waits for. */
export function receiptOf({ state, reason, sentAt, receivedAt, finishedAt }: Sent, where: string, now: number): ReceiptStep[] {
  const sent = Date.parse(sentAt);
  const after = (iso: string | undefined) => (iso === undefined ? "" : ` after ${took(Math.max(0, Date.parse(iso) - sent))}`);
  const steps: ReceiptStep[] = [
    {
      text: (
        <>
          sent <Clock at={sent} />
        </>
      ),
      state: "done",
    },
  ];
  if (receivedAt !== undefined) steps.push({ text: `received by ${where}${after(receivedAt)}`, state: "done" });
  if (state === "sent")
    steps.push({
      text: (
        <>
          waits for {where} to fetch it, sent <Ago at={sent} now={now} plain />
        </>
      ),
      state: "now",
    });
  if (state === "received") steps.push({ text: "being applied", state: "now" });
  if (state === "applied") steps.push({ text: `applied${after(finishedAt)}`, state: "done" });
  if (state === "refused") steps.push({ text: <>refused: {reason ? <Line text={reason} max={REASON_SHOWN} /> : "no reason given"}</>, state: "bad" });
  if (state === "expired") steps.push({ text: `expired: ${where} did not fetch it in time`, state: "bad" });
  return steps;
}

const KINDS: Record<Command["kind"], string> = {
  start: "Start a run",
  approve: "Approve",
  reject: "Reject",
  signal: "Signal",
  retry: "Run again",
  cancel: "Cancel",
  pause: "Pause the project",
  resume: "Resume the project",
  resolve: "Resolve",
  "sync-retry": "Push again",
};

const LOOK: Record<Command["state"], readonly [Tone, IconName]> = {
  sent: ["run", "run"],
  received: ["run", "run"],
  applied: ["ok", "ok"],
  refused: ["bad", "bad"],
  expired: ["bad", "expired"],
};

/** A run that an applied command brought about, if the Runtime named one. */
function runOf({ detail, projectId }: Command): { projectId: string; runId: string } | undefined {
  const runId = typeof detail === "object" && detail !== null ? (detail as Record<string, unknown>)["runId"] : undefined;
  return typeof runId === "string" && projectId !== undefined ? { projectId, runId } : undefined;
}

/** What the payload says in a few words: the signal, the action, the reason. */
function gist({ payload }: Command): Child[] {
  const given = payload as Record<string, unknown>;
  const { stepId } = given;
  const step = typeof stepId === "string" ? [<>step {<Line text={stepId} max={REASON_SHOWN} />}</>] : [];
  const words = ["signal", "action", "code", "workflowId", "displayTitle", "reason", "summary"].map((name) => given[name]);
  return [...step, ...words.filter((word): word is string => typeof word === "string").map((word) => <Line text={word} max={REASON_SHOWN} />)];
}

/** One command with its receipt. `about` links to the run where the page is not the run's own. */
export const CommandItem = ({ command, where, now, about }: { command: Command; where: string; now: number; about?: boolean }) => {
  const [tone, icon] = LOOK[command.state];
  const { kind, projectId, runId } = command;
  const started = kind === "start" || kind === "retry" ? runOf(command) : undefined;
  return (
    <InboxItem
      id={`command-${command.id}`}
      tone={tone}
      icon={icon}
      done
      title={
        <>
          {KINDS[kind]}
          {about && runId !== undefined && projectId !== undefined && (
            <>
              {" "}
              <Ref href={runLink(projectId, runId)}>
                <Id value={runId} />
              </Ref>
            </>
          )}
        </>
      }
      why={
        <>
          {gist(command).map((part) => (
            <span>{part}</span>
          ))}
          <span>by {shortId(command.actor)}</span>
          <Receipt steps={receiptOf({ ...command, sentAt: command.createdAt }, where, now)} />
          {started && (
            <span>
              became <Ref href={runLink(started.projectId, started.runId)}>{shortId(started.runId)}</Ref>
            </span>
          )}
          {command.state === "sent" && (
            <span>
              is given up in <Left until={Date.parse(command.expiresAt)} now={now} />
            </span>
          )}
        </>
      }
      age={<Ago at={Date.parse(command.createdAt)} now={now} />}
    />
  );
};

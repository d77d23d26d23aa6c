// The page of one approval, and the decision on it. A decision names the hash of what was looked at; another content is not decided, and the page says so.
/** @jsxImportSource #jsx */
import * as approvals from "../hub/approvals.ts";
import type { Approval, Decision } from "../protocol/approvals.ts";
import { HubError } from "../protocol/errors.ts";
import { REASON_MAX } from "../protocol/limits.ts";
import { act, fieldOf, optionalFieldOf, refusal } from "./acts.tsx";
import { here } from "./address.ts";
import { ApprovalItem, type AskedApproval, RejectFields, shortHash } from "./approval-item.tsx";
import { withMachine } from "./approvals.tsx";
import { approvalLink, link, runLink, runtimeLink } from "./links.ts";
import { livePage } from "./live-page.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { command } from "./shell.ts";
import { Button, Csrf } from "./ui/button.tsx";
import { Command, Notice } from "./ui/feedback.tsx";
import { Inbox } from "./ui/inbox.tsx";
import { Columns, Facts, PageHead, Row, Section } from "./ui/page.tsx";
import { Id, Ref, shortId } from "./ui/reference.tsx";
import { Status, stateOf } from "./ui/status.tsx";
import { Ago } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

/** As much of a hash as an address carries to say what was looked at. */
const SEEN_CHARACTERS = 23; // sha256: and 16 digits

const load = async (visit: Visit): Promise<AskedApproval> =>
  withMachine(visit, await approvals.find(visit.hub.engine.read, visit.params["id"]!, visit.session.project));

const ApprovalFacts = ({ approval, visit }: { approval: Approval; visit: Visit }) => {
  const { id, project, projectId, runId, runtimeId, stepId, attempt, contentHash } = approval;
  return (
    <Section title="Facts">
      <Facts
        rows={[
          ["Approval", <Id value={id} whole />],
          ["Content hash", <Id value={contentHash} whole />],
          [
            "Run",
            <Ref href={runLink(projectId, runId, { project: visit.project })}>
              <Id value={runId} whole />
            </Ref>,
          ],
          ["Step", `${stepId}, attempt ${attempt}`],
          [
            "Runtime",
            <Ref href={runtimeLink(project, runtimeId)}>
              <Id value={runtimeId} whole />
            </Ref>,
          ],
          ["Project", <Line text={project} />],
        ]}
      />
    </Section>
  );
};

const Terminal = ({ approval: { runId, contentHash } }: { approval: Approval }) => {
  const line = command`kxm runs approve ${runId} --hash ${contentHash} --reason ${"looked at it"}`;
  return line === undefined ? null : (
    <Section title="Same from a terminal" note="on that machine" padded>
      <Command text={line} />
    </Section>
  );
};

const ApprovalView = ({ asked, visit }: { asked: AskedApproval; visit: Visit }) => {
  const { approval, where } = asked;
  const { id, projectId, runId, stepId, title, contentHash, status, requestedAt } = approval;
  const { url, now, session } = visit;
  const seen = url.searchParams.get("seen");
  const changed = seen !== null && status === "pending" && !contentHash.startsWith(seen);
  const rejects = url.searchParams.get("act") === "reject" && status === "pending" && session.role !== "viewer";
  return (
    <>
      <PageHead
        title={`Approval ${shortId(id)}`}
        crumbs={[
          { text: "Approvals", href: link("/approvals", { project: visit.project }) },
          { text: <Line text={title} max={60} />, href: runLink(projectId, runId, { project: visit.project }) },
          { text: stepId },
        ]}
        sub={[
          <Status
            state={status === "pending" ? "needs you" : stateOf(status)}
            why={
              <>
                asked <Ago at={Date.parse(requestedAt)} now={now} plain />
              </>
            }
          />,
          where,
        ]}
      />
      {changed && (
        <Notice tone="attn" title="The content changed after you opened it. Nothing was decided.">
          You decided on {shortHash(seen)} What is asked now is {shortHash(contentHash)} Read it and decide again.
        </Notice>
      )}
      <h2 class="visually-hidden">What is asked</h2>
      <Inbox>
        <ApprovalItem asked={asked} visit={visit} open />
      </Inbox>
      {rejects && (
        <Section title={`Reject ${shortId(id)}?`} padded>
          <form class="form" method="post" action={`${approvalLink(id)}/decision`}>
            <Csrf token={visit.csrf} />
            <RejectFields id={id} contentHash={contentHash} />
            <Row>
              <Button kind="danger" type="submit">
                Reject
              </Button>
              <Button href={here(url, { act: undefined })}>Keep waiting</Button>
            </Row>
          </form>
        </Section>
      )}
      <Columns below main={<ApprovalFacts approval={approval} visit={visit} />} aside={<Terminal approval={approval} />} />
    </>
  );
};

const page = livePage<AskedApproval>({
  path: "/approvals/:id",
  id: "approval",
  place: "approvals",
  topic: ["approvals", "runtimes"],
  load,
  title: ({ approval }) => `Approval ${shortId(approval.id)}`,
  view: (asked, visit) => <ApprovalView asked={asked} visit={visit} />,
});

export const decisionOf = (form: URLSearchParams): Decision => {
  const word = form.get("decision");
  if (word !== "approve" && word !== "reject") throw new HubError("protocol_error", "decision must be approve or reject");
  return word;
};

const decide = screen({
  method: "POST",
  path: "/approvals/:id/decision",
  role: "operator",
  run: async (visit) => {
    const { hub, form, params, session } = visit;
    const id = params["id"]!;
    const seen = (form.get("contentHash") ?? "").slice(0, SEEN_CHARACTERS);
    const to = approvalLink(id, { seen, project: visit.project });
    try {
      return await act(visit, to, async () => {
        const decision = decisionOf(form);
        const reason = decision === "reject" ? fieldOf(form, "reason", REASON_MAX) : optionalFieldOf(form, "reason", REASON_MAX);
        const contentHash = fieldOf(form, "contentHash", 128);
        const { runtimeId, project } = await approvals.decide(hub, visit.by, session.project, id, { decision, reason, contentHash });
        const machine = (await hub.engine.read.runtimes.find(project, runtimeId))?.host ? "The machine" : "Its Runtime";
        return {
          tone: "ok",
          text: `${decision === "approve" ? "Approved" : "Rejected"} ${shortId(id)}.`,
          hint: `${machine} is told; it says when it has applied it.`,
        };
      });
    } catch (error) {
      // What was looked at is gone: the page of the approval shows what is asked instead.
      if (error instanceof HubError && error.code === "approval_content_changed") return visit.redirect(to, refusal(error));
      throw error;
    }
  },
});

export const screens: readonly Screen[] = [...page, decide];

// Deciding several approvals: each is bound to the hash that was shown for it and gets its own outcome, on a page that can be reloaded and passed on.
/** @jsxImportSource #jsx */
import * as approvals from "../hub/approvals.ts";
import type { Approval, Decision } from "../protocol/approvals.ts";
import { HubError } from "../protocol/errors.ts";
import { REASON_MAX, VIEW_ROWS_MAX } from "../protocol/limits.ts";
import { act, fieldOf, optionalFieldOf } from "./acts.tsx";
import { decisionOf } from "./approval.tsx";
import { ApprovalItem, type AskedApproval, pickOf, shortHash } from "./approval-item.tsx";
import { askedApproval } from "./approvals.tsx";
import { approvalLink, link } from "./links.ts";
import { livePage } from "./live-page.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Button, Csrf } from "./ui/button.tsx";
import { Fields, TextField } from "./ui/form.tsx";
import { Inbox, InboxItem } from "./ui/inbox.tsx";
import { PageHead, Row, Section } from "./ui/page.tsx";
import { Ref, shortId } from "./ui/reference.tsx";

/** What was picked: an approval, and the hash of what was shown for it (in addresses its first digits). */
type Picked = { id: string; hash: string };
const HASH_IN_ADDRESS = 23; // sha256: and 16 digits

function pickedIn(values: readonly string[]): Picked[] {
  const picks = values.slice(0, VIEW_ROWS_MAX).map((value) => value.split(" ") as [string, string?]);
  return [...new Map(picks.map(([id, hash = ""]) => [id, { id, hash }])).values()];
}

const addressOf = (path: string, decision: Decision, picks: readonly Picked[]): string =>
  link(
    `${path}?decision=${decision}&${picks.map(({ id, hash }) => `pick=${encodeURIComponent(`${id} ${hash.slice(0, HASH_IN_ADDRESS)}`)}`).join("&")}`,
  );

/** The approvals that are still there, for this session. */
const found = (visit: Visit, picks: readonly Picked[]) =>
  Promise.all(picks.map(async (pick) => ({ pick, asked: await askedApproval(visit, pick.id) })));

type Outcome = { pick: Picked; asked: AskedApproval | undefined; said: "on its way" | "refused" | "changed" | "elsewhere" | "gone" };

/** What a picked approval came to, as it stands now. */
function outcomeOf(pick: Picked, asked: AskedApproval | undefined, decision: Decision): Outcome["said"] {
  if (!asked) return "gone";
  const { contentHash, status, decision: made } = asked.approval;
  if (!contentHash.startsWith(pick.hash)) return "changed";
  if (made?.command.state === "refused" || made?.command.state === "expired") return "refused";
  return made?.decision === decision && status !== "pending" ? "on its way" : "elsewhere";
}

const NOT_DECIDED: Record<"changed" | "elsewhere" | "gone", (approval: Approval | undefined) => string> = {
  changed: () => "the content changed after you opened it",
  elsewhere: (approval) => (approval?.status === "pending" ? "it still waits" : `it was ${approval?.status} before`),
  gone: () => "it is not known here any more",
};

const OutcomeItem = ({ outcome: { pick, asked, said }, visit }: { outcome: Outcome; visit: Visit }) => {
  if (asked && (said === "on its way" || said === "refused")) return <ApprovalItem asked={asked} visit={visit} about />;
  const why = NOT_DECIDED[said as keyof typeof NOT_DECIDED](asked?.approval);
  return (
    <InboxItem
      id={`approval-${pick.id}`}
      tone={said === "changed" ? "bad" : "mute"}
      icon={said === "changed" ? "bad" : "cancelled"}
      title={`Not decided: ${shortId(pick.id)}`}
      why={[why, said === "changed" && `you decided on ${shortHash(pick.hash)}`, "nothing was applied"]}
      acts={
        asked && (
          <Button small href={approvalLink(pick.id, { seen: pick.hash, project: visit.project })}>
            {said === "changed" ? "See the new content" : "See it"}
          </Button>
        )
      }
    />
  );
};

type OutcomeData = { decision: Decision; outcomes: Outcome[] };

const outcome = livePage<OutcomeData>({
  path: "/approvals/outcome",
  id: "outcome",
  place: "approvals",
  topic: ["approvals", "runtimes"],
  load: async (visit) => {
    const decision = decisionOf(visit.url.searchParams);
    const all = await found(visit, pickedIn(visit.url.searchParams.getAll("pick")));
    return { decision, outcomes: all.map(({ pick, asked }) => ({ pick, asked, said: outcomeOf(pick, asked, decision) })) };
  },
  title: () => "What came of it",
  view: ({ decision, outcomes }, visit) => {
    const decided = outcomes.filter(({ said }) => said === "on its way");
    const applied = decided.filter(({ asked }) => asked?.approval.decision?.command.state === "applied").length;
    return (
      <>
        <PageHead
          title={`${decision === "approve" ? "Approved" : "Rejected"} ${decided.length} of ${outcomes.length}`}
          crumbs={[{ text: "Approvals", href: link("/approvals", { project: visit.project }) }, { text: "What came of it" }]}
          sub={[
            `${applied} applied by their machines`,
            outcomes.length > decided.length && `${outcomes.length - decided.length} not decided or refused`,
          ]}
        />
        <Section title="Each one" count={outcomes.length}>
          <Inbox>
            {outcomes.map((one) => (
              <OutcomeItem outcome={one} visit={visit} />
            ))}
          </Inbox>
        </Section>
      </>
    );
  },
});

/** Rejecting several asks once for the reason they share. */
const question = screen({
  method: "GET",
  path: "/approvals/reject",
  role: "operator",
  run: async (visit) => {
    const all = await found(visit, pickedIn(visit.url.searchParams.getAll("pick")));
    const pending = all.flatMap(({ asked, pick }) => (asked?.approval.status === "pending" ? [{ asked, pick }] : []));
    return visit.page({
      title: "Reject approvals",
      place: "approvals",
      children: (
        <>
          <PageHead
            title={`Reject ${pending.length} ${pending.length === 1 ? "approval" : "approvals"}?`}
            crumbs={[{ text: "Approvals", href: link("/approvals", { project: visit.project }) }, { text: "Reject" }]}
            sub={["each run goes on from the outcome rejected, or ends"]}
          />
          <Section title="Chosen" count={pending.length}>
            <Inbox>
              {pending.map(({ asked: { approval, where } }) => (
                <InboxItem
                  id={`chosen-${approval.id}`}
                  tone="attn"
                  icon="person"
                  title={<Ref href={approvalLink(approval.id, { project: visit.project })}>{approval.id}</Ref>}
                  why={[`step ${approval.stepId}`, where, shortHash(approval.contentHash)]}
                />
              ))}
            </Inbox>
          </Section>
          <Section title="Why" padded>
            <form method="post" action="/approvals/decisions">
              <Csrf token={visit.csrf} />
              <input type="hidden" name="decision" value="reject" />
              {pending.map(({ asked: { approval }, pick }) => (
                // What was picked counts, not what is asked by now: a changed content is refused.
                <input type="hidden" name="pick" value={approval.contentHash.startsWith(pick.hash) ? pickOf(approval) : `${pick.id} ${pick.hash}`} />
              ))}
              <Fields>
                <TextField
                  id="reject-reason"
                  name="reason"
                  autofocus
                  label="Reason"
                  hint="each run and the audit keep it"
                  required
                  maxlength={REASON_MAX}
                />
                <Row>
                  <Button kind="danger" type="submit" disabled={pending.length === 0}>
                    Reject {pending.length}
                  </Button>
                  <Button href={link("/approvals", { project: visit.project })}>Keep waiting</Button>
                </Row>
              </Fields>
            </form>
          </Section>
        </>
      ),
    });
  },
});

const decide = screen({
  method: "POST",
  path: "/approvals/decisions",
  role: "operator",
  run: async (visit) => {
    const { hub, form, session, by } = visit;
    const picks = pickedIn(form.getAll("pick"));
    const decision = decisionOf(form);
    const ask = addressOf("/approvals/reject", decision, picks);
    if (picks.length === 0) return visit.redirect(link("/approvals", { project: visit.project }), { tone: "attn", text: "Nothing was picked." });
    if (decision === "reject" && !form.has("reason")) return visit.redirect(ask);
    let [judged, decided] = [false, 0];
    const answer = await act(visit, ask, async () => {
      const reason = decision === "reject" ? fieldOf(form, "reason", REASON_MAX) : optionalFieldOf(form, "reason", REASON_MAX);
      judged = true;
      for (const { id, hash } of picks) {
        const done = await approvals.decide(hub, by, session.project, id, { decision, reason, contentHash: hash }).catch((error) => {
          if (error instanceof HubError && error.status < 500) return undefined; // its outcome says so
          throw error;
        });
        if (done) decided++;
      }
      const word = decision === "approve" ? "Approved" : "Rejected";
      return decided === picks.length
        ? { tone: "ok", text: `${word} ${decided}.` }
        : { tone: "attn", text: `${word} ${decided}, ${picks.length - decided} not.`, hint: "Each says why below." };
    });
    return judged ? visit.redirect(addressOf("/approvals/outcome", decision, picks)) : answer;
  },
});

export const screens: readonly Screen[] = [...outcome, question, decide];

// One held lease as a row: who holds it under which token, for how long still, who waits; and the button that takes it away.
/** @jsxImportSource #jsx */
import type { LeaseRow as Lease, LeaseWaiterRow } from "../db/schema.ts";
import { REASON_MAX } from "../protocol/limits.ts";
import { domId } from "./dom-id.ts";
import { agentLink, leaseLink } from "./links.ts";
import { harnessOf } from "./presence.tsx";
import type { Visit } from "./screen.ts";
import { Button } from "./ui/button.tsx";
import { ConfirmDialog } from "./ui/dialog.tsx";
import { TextField } from "./ui/form.tsx";
import { LeaseRow, type Waiter } from "./ui/lease.tsx";
import { Ref, Who } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";
import { Ago, Lasting } from "./ui/time.tsx";
import { Line, Name } from "./ui/untrusted.tsx";

const WAITERS_SHOWN = 5;

/** A lease with its line, and whether its holder answers. */
export type HeldLease = {
  lease: Lease;
  waiters: LeaseWaiterRow[];
  line: number;
  holder: { online: boolean; lastSeenAt: number; harness: string | undefined } | undefined;
};
/** One held lease with what is shown beside it. */
export async function heldLease({ hub, now }: Pick<Visit, "hub" | "now">, lease: Lease): Promise<HeldLease> {
  const { read } = hub.engine;
  const agent = lease.holderId === null ? undefined : await read.agents.find(lease.holderId);
  return {
    lease,
    waiters: lease.lastWaiter === 0 ? [] : await read.leases.waiters(lease.resource, now, WAITERS_SHOWN),
    line: lease.lastWaiter === 0 ? 0 : await read.leases.countWaiters(lease.resource, now),
    holder: agent && {
      online: agent.online === 1,
      lastSeenAt: hub.presence.lastSeen(agent.id, agent.lastSeenAt),
      harness: harnessOf(agent.model),
    },
  };
}

/** One held lease: the same row in the list and on the page of its resource. */
export const HeldRow = ({ held: { lease, waiters, line, holder }, visit, several }: { held: HeldLease; visit: Visit; several: boolean }) => {
  const { now } = visit;
  const { project, name, holderId, holderName, fence, acquiredAt, renewedAt, expiresAt, ttlMs } = lease;
  const more = line - waiters.length;
  return (
    <LeaseRow
      id={domId("lease", project, name)}
      resource={
        <Ref href={leaseLink(project, name)}>
          <Line text={name} />
        </Ref>
      }
      token={fence}
      note={
        <>
          held for <Lasting since={acquiredAt} now={now} />
          {several && (
            <>
              {" · "}
              <Line text={project} />
            </>
          )}
        </>
      }
      holder={<Who name={holderName!} harness={holder?.harness} href={agentLink(holderId!)} />}
      holderNote={<HolderNote holder={holder} renewedAt={renewedAt} acquiredAt={acquiredAt} now={now} />}
      expiresAt={expiresAt}
      ttl={ttlMs}
      now={now}
      acts={visit.session.role !== "viewer" && <TakeAway lease={lease} visit={visit} />}
      waiters={waiters.map(
        ({ agentId, agentName, askedAt }): Waiter => ({
          name: (
            <Ref href={agentLink(agentId)}>
              <Name text={agentName} />
            </Ref>
          ),
          since: askedAt,
        }),
      )}
      moreWaiting={more > 0 ? more : undefined}
    />
  );
};

type HolderNoteProps = { holder: HeldLease["holder"]; renewedAt: number; acquiredAt: number; now: number };

const HolderNote = ({ holder, renewedAt, acquiredAt, now }: HolderNoteProps) => {
  if (holder && !holder.online)
    return (
      <Status
        state="lost contact"
        word="offline"
        why={
          <>
            last seen <Ago at={holder.lastSeenAt} now={now} plain />
          </>
        }
      />
    );
  return renewedAt === acquiredAt ? (
    <>not renewed yet</>
  ) : (
    <>
      renewed <Ago at={renewedAt} now={now} plain />
    </>
  );
};

/** The button that takes a lease away, and the question it asks. Without script the page of the resource asks. */
const TakeAway = ({ lease, visit }: { lease: Lease; visit: Visit }) => {
  const id = domId("take", lease.project, lease.name);
  const { project, name } = lease;
  return (
    <>
      <Button small href={leaseLink(project, name, { act: "force-release" })} opens={id}>
        Force release…
      </Button>
      <ConfirmDialog
        id={id}
        title={`Force release token ${lease.fence}?`}
        action="/leases/force-release"
        csrf={visit.csrf}
        target={`#${id}`}
        confirm="Force release"
        cancel="Leave it"
      >
        <TakeAwayFields lease={lease} id={id} />
      </ConfirmDialog>
    </>
  );
};

/** What is taken away, exactly, and why. */
export const TakeAwayFields = ({ lease: { project, name, fence, holderName }, id }: { lease: Lease; id: string }) => (
  <>
    <p>
      <code class="id">
        <Line text={name} />
      </code>{" "}
      of <Line text={project} /> is held by <Name text={holderName!} /> under token <code class="id">{fence}</code>.
    </p>
    <p>
      The holder is not asked. Whoever is first in line gets the next token, and what checks tokens refuses <code class="id">{fence}</code> from then
      on.
    </p>
    <input type="hidden" name="project" value={project} />
    <input type="hidden" name="name" value={name} />
    <input type="hidden" name="fence" value={String(fence)} />
    <TextField id={`${id}-reason`} name="reason" autofocus label="Reason" hint="kept in the audit" required maxlength={REASON_MAX} />
  </>
);

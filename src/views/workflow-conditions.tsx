// What the current stage of a hub workflow still needs: each condition, met or missing, by whom, as of when, and what would satisfy it.
/** @jsxImportSource #jsx */
import type { MessageHead } from "../db/message-heads.ts";
import type { Stores } from "../db/tx.ts";
import { conditionsOf } from "../hub/workflows/conditions.ts";
import type { Condition as Held, MessageContext, StageState, WorkflowRun } from "../protocol/workflows.ts";
import { domId } from "./dom-id.ts";
import { agentLink, messageLink } from "./links.ts";
import { stateOfMessage } from "./message-state.tsx";
import type { Visit } from "./screen.ts";
import { type Condition, ConditionMatrix, type Producer, Quorum } from "./ui/matrix.tsx";
import { Ref, shortId } from "./ui/reference.tsx";
import { Ago, Left } from "./ui/time.tsx";
import { Line, Name } from "./ui/untrusted.tsx";

/** Requests to peers that are looked at: more than the most producers a stage can have. */
const REQUESTS_MAX = 200;
const VALUE_SHOWN = 160;

/** A peer that may prove something: whether it answers, and the newest request it got for this attempt. */
type Peer = { id: string; name: string; online: boolean; lastSeenAt: number | undefined; request: MessageHead | undefined };
export type StageNeeds = { stage: StageState | undefined; held: ReturnType<typeof conditionsOf>; peers: ReadonlyMap<string, readonly Peer[]> };

/** Reads what the current stage needs and has. */
export async function needsOf({ hub }: Visit, run: WorkflowRun): Promise<StageNeeds> {
  const { read } = hub.engine;
  const stage = run.stages.find(({ id }) => id === run.currentStage);
  const held = conditionsOf(run);
  const peers = new Map<string, Peer[]>();
  if (stage?.resolvedEvidencePolicies) {
    const thread = await read.messages.heads({ kind: "thread", of: run.project, correlationId: run.id }, "~", REQUESTS_MAX);
    const requests = thread.filter(({ senderId }) => senderId === run.targetAgentId);
    for (const [key, { eligibleProducers }] of Object.entries(stage.resolvedEvidencePolicies)) {
      const all = eligibleProducers.map(async ({ id, name }): Promise<Peer> => {
        const agent = await read.agents.find(id);
        const request = await requestFor(read, requests, { recipientId: id, stage, key });
        return { id, name, online: agent?.online === 1, lastSeenAt: agent && hub.presence.lastSeen(id, agent.lastSeenAt), request };
      });
      peers.set(key, await Promise.all(all));
    }
  }
  return { stage, held, peers };
}

/** The newest request to a peer that is bound to this stage, key and attempt. */
async function requestFor(read: Stores, requests: readonly MessageHead[], of: { recipientId: string; stage: StageState; key: string }) {
  for (const head of requests) {
    if (head.recipientId !== of.recipientId) continue;
    const context = (await read.messages.find(head.id))?.workflowContext as MessageContext | null | undefined;
    if (context?.stageId === of.stage.id && context.requirementKey === of.key && context.attempt === of.stage.attempts + 1) return head;
  }
  return undefined;
}

const Linked = ({ id, name }: { id: string; name: string }) => (
  <Ref href={agentLink(id)}>
    <Name text={name} />
  </Ref>
);

function producerOf(peer: Peer, proof: Held["has"][number] | undefined, now: number): Producer {
  const name = <Linked id={peer.id} name={peer.name} />;
  if (proof?.messageId)
    return {
      state: "ok",
      icon: "ok",
      name,
      note: (
        <>
          replied, <Ref href={messageLink(proof.messageId)}>{shortId(proof.messageId)}</Ref>
        </>
      ),
    };
  if (peer.request) {
    const { state, at } = stateOfMessage(peer.request, now);
    const over = state === "replied";
    const lost = state === "expired" || state === "dead letter" || state === "cancelled";
    return {
      state: lost ? "bad" : over ? "ok" : "run",
      icon: lost ? "expired" : over ? "messages" : "run",
      name,
      note: (
        <>
          {over ? "replied, not yet given as evidence" : state} <Ago at={at} now={now} plain />,{" "}
          <Ref href={messageLink(peer.request.id)}>{shortId(peer.request.id)}</Ref>
        </>
      ),
    };
  }
  return {
    state: "wait",
    icon: peer.online ? "idle" : "lost",
    name,
    note: peer.online ? (
      "eligible, not asked yet"
    ) : peer.lastSeenAt === undefined ? (
      "eligible, never seen"
    ) : (
      <>
        eligible, offline since <Ago at={peer.lastSeenAt} now={now} plain />
      </>
    ),
  };
}

/** A requirement of the stage as a row. */
function rowOf(held: Held, needs: StageNeeds, run: WorkflowRun, now: number): Condition {
  const { requirementKey: key, kind, met, degraded, has, quorum } = held;
  const latest = has
    .map(({ at }) => at)
    .filter((at) => at !== undefined)
    .toSorted()
    .at(-1);
  const common = { id: domId("condition", key), name: <code>{<Line text={key} max={128} />}</code> };
  if (kind === "evidence") {
    return {
      ...common,
      kind: "evidence, one value",
      state: met ? "met" : "missing",
      why: met ? undefined : "no value yet",
      has: has.length === 0 ? "nothing yet" : has.map(({ value }, index) => [index > 0 && ", ", <Line text={value} max={VALUE_SHOWN} />]),
      by: [
        {
          state: met ? "ok" : "wait",
          icon: met ? "ok" : "wait",
          name: <Linked id={run.targetAgentId} name={run.targetAgentName} />,
          note: met ? "gave it" : "gives it at its checkpoint",
        },
      ],
      asOf: met && needs.stage?.updatedAt ? <Ago at={Date.parse(needs.stage.updatedAt)} now={now} /> : undefined,
    };
  }
  const peers = needs.peers.get(key) ?? [];
  const { have, need, normally, of } = quorum!;
  const asked = peers.filter(({ id, request }) => request && !has.some(({ by }) => by === nameOf(peers, id))).length;
  const marks = Array.from({ length: Math.max(need, have) }, (_, index) => (index < have ? "met" : index < have + asked ? "asked" : "open"));
  const missing = need - have;
  return {
    ...common,
    kind: `peer reply, ${need} of ${of.length}, distinct agents${need < normally ? ` (normally ${normally})` : ""}`,
    state: met ? "met" : "missing",
    why: degraded ? "below the normal number" : met ? undefined : `${missing} more ${missing === 1 ? "reply" : "replies"}`,
    has: <Quorum marks={marks as ("met" | "asked" | "open")[]} text={`${have} of ${need}`} />,
    by: peers.map((peer) =>
      producerOf(
        peer,
        has.find(({ by }) => by === peer.name),
        now,
      ),
    ),
    asOf: latest ? <Ago at={Date.parse(latest)} now={now} /> : undefined,
  };
}
const nameOf = (peers: readonly Peer[], id: string): string | undefined => peers.find((peer) => peer.id === id)?.name;

/** What a stage needs beside its evidence: the signal it waits for, an unchanged reproduction, the plan. */
function furtherRows(run: WorkflowRun, stage: StageState, now: number): Condition[] {
  const rows: Condition[] = [];
  if (run.waiting)
    rows.push({
      id: "condition-signal",
      name: <code>{<Line text={run.waiting.signalKey} max={128} />}</code>,
      kind: "signed signal",
      state: "missing",
      why: (
        <>
          due in <Left until={Date.parse(run.waiting.expiresAt)} now={now} />
        </>
      ),
      has: "nothing received yet",
      by: [{ state: "wait", icon: "wait", name: "a sender outside", note: "signs it with the signal secret" }],
      asOf: <Ago at={Date.parse(run.waiting.createdAt)} now={now} />,
    });
  if (run.reproOracle)
    rows.push({
      id: "condition-oracle",
      name: <code>reproduction unchanged</code>,
      kind: `captured in ${run.reproOracle.stageId}`,
      state: run.oracle ? "met" : "missing",
      why: run.oracle ? undefined : "not captured yet",
      has: run.oracle ? `sha256 ${run.oracle.sha256.slice(0, 8)}…` : "nothing yet",
      by: [{ state: run.oracle ? "ok" : "wait", icon: run.oracle ? "ok" : "wait", name: "hub", note: "compares what is given again" }],
      asOf: run.oracle && <Ago at={Date.parse(run.oracle.capturedAt)} now={now} />,
    });
  if (run.requirePlanHash?.includes(stage.id))
    rows.push({
      id: "condition-plan",
      name: <code>plan hash</code>,
      kind: `captured in ${run.planHashConfig?.stageId ?? "the planning stage"}`,
      state: run.planHash ? "met" : "missing",
      why: run.planHash ? undefined : "the planning stage has not passed",
      has: run.planHash ? `sha256 ${run.planHash.sha256.slice(0, 8)}…` : "nothing yet",
      by: [{ state: run.planHash ? "ok" : "wait", icon: run.planHash ? "ok" : "wait", name: "hub", note: "pins it" }],
      asOf: run.planHash && <Ago at={Date.parse(run.planHash.capturedAt)} now={now} />,
    });
  return rows;
}

/** Every condition of the current stage, and how many are met. */
export function matrixOf(run: WorkflowRun, needs: StageNeeds, now: number): { rows: Condition[]; met: number } {
  if (!needs.stage) return { rows: [], met: 0 };
  const rows = [...needs.held.conditions.map((held) => rowOf(held, needs, run, now)), ...furtherRows(run, needs.stage, now)];
  return { rows, met: rows.filter(({ state }) => state === "met").length };
}

/** The matrix, or what to say when a stage needs nothing. */
export const Matrix = ({ rows }: { rows: readonly Condition[] }) =>
  rows.length === 0 ? <p class="section__note">It needs nothing but a checkpoint of its coordinator.</p> : <ConditionMatrix conditions={rows} />;

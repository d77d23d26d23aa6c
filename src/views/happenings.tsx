// The event log as people read it: one sentence a change, the newest first. What says nothing to a person is left out.
/** @jsxImportSource #jsx */
import type { EventRow } from "../db/schema.ts";
import { type Context, type Named, runKey, sentenceOf } from "./happening-words.tsx";
import type { Visit } from "./screen.ts";
import type { FeedItem } from "./ui/feed.tsx";
import { Ago, Clock } from "./ui/time.tsx";

/** Looks up what the sentences of some events name. One look at the store for each thing; bounded by the number of events. */
export async function namesIn({ hub }: Pick<Visit, "hub">, events: readonly EventRow[]): Promise<Named> {
  const { read } = hub.engine;
  const messageIds = events.filter(({ topic }) => topic === "messages").map(({ subjectId }) => subjectId);
  const agentIds = events.map(({ actor }) => actor).filter((id) => id.startsWith("agt_"));
  const ofRuns = events.filter(({ topic }) => topic === "sync" || topic === "approvals");
  const runIds = ofRuns.map(
    ({ topic, subjectId, data }) => [String(data["projectId"] ?? ""), topic === "sync" ? subjectId : String(data["runId"] ?? "")] as const,
  );
  const [heads, agents, runs] = await Promise.all([
    messageIds.length > 0 ? read.messages.headsByIds([...new Set(messageIds)]) : [],
    Promise.all([...new Set(agentIds)].map((id) => read.agents.find(id))),
    Promise.all(runIds.map(([projectId, runId]) => read.sync.findRun(projectId, runId))),
  ]);
  return {
    heads: new Map(heads.map((head) => [head.id, head])),
    agents: new Map(agents.flatMap((agent) => (agent ? [[agent.id, agent.name] as const] : []))),
    runs: new Map(runs.flatMap((run) => (run ? [[runKey(run.projectId, run.runId), run.displayTitle] as const] : []))),
  };
}

/** The feed's line for an event, or undefined when it says nothing to a person. `clock` writes the time of day instead of the age. */
export function happening(event: EventRow, context: Context, { now, clock }: { now: number; clock?: boolean }): FeedItem | undefined {
  const sentence = sentenceOf(event, context);
  if (!sentence) return undefined;
  const when = clock ? <Clock at={event.at} /> : <Ago at={event.at} now={now} />;
  return { ...sentence, id: `event-${event.seq}`, when };
}

/** The newest line of each thing, so that one message that goes its way does not fill the feed. */
export function foldedHappenings(events: readonly EventRow[], context: Context, { now, limit }: { now: number; limit: number }): FeedItem[] {
  const seen = new Set<string>();
  const items: FeedItem[] = [];
  for (const event of events) {
    if (items.length === limit) break;
    const key = `${event.project} ${event.topic} ${event.subjectId}`;
    if (seen.has(key)) continue;
    const item = happening(event, context, { now });
    if (!item) continue;
    seen.add(key);
    items.push({ ...item, id: `happening-${items.length}` });
  }
  return items;
}

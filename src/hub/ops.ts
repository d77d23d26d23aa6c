// One project at a glance, and the signal that it changed. Reads the newest few and capped counts, so it costs the same however much is stored.
import type { WorkflowRunRow } from "../db/schema.ts";
import { formatCursor, parseCursor } from "../protocol/events.ts";
import type { OpsSnapshot, OpsTopic } from "../protocol/ops.ts";
import { iso, isoOrNone } from "../protocol/time.ts";
import * as agents from "./agents.ts";
import type { Hub } from "./hub.ts";
import * as runtimes from "./runtimes.ts";
import { runOf } from "./workflows/runs.ts";

const OPEN_SHOWN = 16;
const RUNS_SHOWN = 8;
const STAGES_SHOWN = 16;
const PLANS_SHOWN = 16;
const PLAN_CHARS_MAX = 120;
const OFFLINE_SHOWN = 500;
const COUNTED_MAX = 10_000;
const CATCH_UP_MAX = 1_000; // events looked at for a client that was away; beyond it everything may have changed

/** The project as it is now. */
export async function snapshot(hub: Hub, project: string): Promise<OpsSnapshot> {
  const { agents: agentRows, ops } = hub.engine.read;
  const now = hub.clock();
  const online = await agentRows.onlineOf(project);
  const offline = await ops.offline(project, OFFLINE_SHOWN);
  const [openMessages, plans, runs] = [
    await ops.openMessages(project, now, OPEN_SHOWN),
    await ops.plans(project, PLANS_SHOWN),
    await ops.runs(project, RUNS_SHOWN),
  ];
  return {
    project,
    fetchedAt: iso(now),
    agents: [...online, ...offline].map((row) => agents.toAgent(hub, row)),
    openMessages: openMessages.map(({ createdAt, correlationId, ...rest }) => ({
      ...rest,
      createdAt: iso(createdAt),
      ...(correlationId !== null && { correlationId }),
    })),
    openMessageTotal: await ops.countOpenMessages(project, COUNTED_MAX),
    runs: runs.map(shownRun),
    runTotal: await ops.countRuns(project, COUNTED_MAX),
    homeRuntimes: await runtimes.homeRuntimes(hub, project),
    plans: plans.map(({ summary, createdAt, stageId, ...rest }) => ({
      ...rest,
      summary: oneLine(summary),
      createdAt: iso(createdAt),
      ...(stageId !== null && { stageId }),
    })),
  };
}

const DONE = new Set(["passed", "failed", "warning"]);

function shownRun(row: WorkflowRunRow): OpsSnapshot["runs"][number] {
  const { stages } = runOf(row);
  return {
    id: row.id,
    status: row.status,
    definitionId: row.definitionId,
    project: row.project,
    ...(row.currentStage !== null && { currentStage: row.currentStage }),
    targetAgentName: row.targetAgentName,
    updatedAt: isoOrNone(row.updatedAt),
    progress: { done: stages.filter(({ status }) => DONE.has(status)).length, total: stages.length },
    stages: stages.slice(0, STAGES_SHOWN).map(({ id, label, status, attempts }) => ({ id, label, status, ...(attempts > 0 && { attempts }) })),
  };
}

function oneLine(text: string): string {
  const flat = text.replaceAll(/\s+/g, " ").trim();
  return flat.length > PLAN_CHARS_MAX ? `${flat.slice(0, PLAN_CHARS_MAX - 1)}…` : flat;
}

/** Which part of the glance a topic of the log changes. Leases, alerts and settings are not in it. */
const TOPICS: Record<string, OpsTopic | undefined> = {
  agents: "agents",
  messages: "messages",
  workflows: "workflows",
  journal: "workflows",
  context: "workflows",
  sync: "workflows",
  approvals: "workflows",
  runtimes: "workflows",
};

/** One change: which topic, at which place of the log, when. */
export type OpsChange = { topic: OpsTopic; id: string; at: string };

export interface OpsWatch {
  /** Frame id of the place where the watch begins. */
  id: string;
  /** Topics that changed since the client's cursor; undefined when that cannot be told and everything must be read again. */
  missed: OpsTopic[] | undefined;
  leave(): void;
}

/**
 * Watches a project from now on.
 * @param lastEventId what the client sent, whatever it is; undefined for a first connection
 * @param listener told of every change after the returned place, and when the log can no longer be followed
 */
export async function watch(
  hub: Hub,
  project: string,
  lastEventId: string | undefined,
  listener: { change(change: OpsChange): void; lost(): void },
): Promise<OpsWatch> {
  const { generation } = hub.engine;
  const joined = await hub.feeds.join(project, {
    event({ topic, seq, at }) {
      const shown = TOPICS[topic];
      if (shown) listener.change({ topic: shown, id: formatCursor(generation, seq), at: iso(at) });
    },
    lost: () => listener.lost(),
  });
  const id = formatCursor(generation, joined.position);
  if (lastEventId === undefined) return { id, missed: [], leave: joined.leave };
  return { id, missed: await missedSince(hub, project, lastEventId, joined.position), leave: joined.leave };
}

async function missedSince(hub: Hub, project: string, lastEventId: string, upTo: number): Promise<OpsTopic[] | undefined> {
  const cursor = parseCursor(lastEventId);
  if (cursor?.generation !== hub.engine.generation || cursor.seq > upTo || upTo - cursor.seq > CATCH_UP_MAX) return undefined;
  const events = (await hub.engine.read.events.after(project, cursor.seq, CATCH_UP_MAX)).filter(({ seq }) => seq <= upTo);
  if (events.length !== upTo - cursor.seq) return undefined; // the oldest of them are gone
  return [...new Set(events.map(({ topic }) => TOPICS[topic]).filter((topic) => topic !== undefined))];
}

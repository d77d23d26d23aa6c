// Everything the page of a run shows, as plain data: the folded projection, one page of events, its approvals, commands and machine.
import type { RuntimeRow, SyncRunRow } from "../db/schema.ts";
import * as approvals from "../hub/approvals.ts";
import * as commands from "../hub/commands.ts";
import * as runs from "../hub/runs.ts";
import type { RunDetail } from "../protocol/runs.ts";
import type { Command } from "../protocol/runtimes.ts";
import type { OutboxReport, RuntimeReport } from "../protocol/sync.ts";
import type { AskedApproval } from "./approval-item.tsx";
import { withMachine } from "./approvals.tsx";
import { machineOf } from "./commands.tsx";
import { type EventsData, loadEvents } from "./run-events.tsx";
import type { Visit } from "./screen.ts";

const COMMANDS_SHOWN = 10;
const RETRIES_SHOWN = 5;

export type RunData = {
  run: RunDetail;
  /** The machine in words, and what it last said of itself. */
  where: string;
  host: string | undefined;
  runtime: RuntimeRow | undefined;
  outbox: OutboxReport | undefined;
  approvals: AskedApproval[];
  commands: Command[];
  /** The runs that do its work again. */
  retries: RunDetail[];
  events: EventsData;
  /** The first sequence that is held behind a gap. */
  heldFrom: number | undefined;
};

/** @throws HubError run_not_found for a run the session may not see, too */
export async function loadRun(visit: Visit): Promise<RunData> {
  const { hub, params, session } = visit;
  const { read } = hub.engine;
  const row = await runs.findRow(read, session.project, params["projectId"]!, params["runId"]!);
  const [summary] = await runs.summaries(hub, [row]);
  const { project, projectId, runId, homeRuntimeId, cursor, held } = row;
  const runtime = await read.runtimes.find(project, homeRuntimeId);
  const report = (runtime?.report ?? undefined) as RuntimeReport | undefined;
  return {
    run: { ...summary!, projection: row.projection },
    where: await machineOf(visit, project, homeRuntimeId),
    host: runtime?.host ?? undefined,
    runtime,
    outbox: report?.outbox?.find((one) => one.projectId === projectId),
    approvals: await Promise.all((await approvals.ofRun(read, row)).map((approval) => withMachine(visit, approval))),
    commands: (await commands.ofRun(read, row, { after: Number.MAX_SAFE_INTEGER, limit: COMMANDS_SHOWN })).commands,
    retries: await retriesOf(visit, row),
    events: await loadEvents(visit, projectId, runId),
    heldFrom: held > 0 ? await read.sync.nextSequence(projectId, runId, cursor) : undefined,
  };
}

async function retriesOf({ hub }: Visit, { projectId, runId }: SyncRunRow): Promise<RunDetail[]> {
  const rows = await hub.engine.read.sync.retriesOf(projectId, runId, RETRIES_SHOWN);
  const summaries = await runs.summaries(hub, rows);
  return rows.map(({ projection }, index) => ({ ...summaries[index]!, projection }));
}

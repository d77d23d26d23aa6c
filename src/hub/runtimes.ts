// Runtimes: their signs of life, what they say of themselves, and the runs that live on them.
import type { RuntimeRow, SyncRunRow } from "../db/schema.ts";
import type { Stores, Tx } from "../db/tx.ts";
import { canonical } from "../protocol/canonical.ts";
import { HubError } from "../protocol/errors.ts";
import { COUNT_EXACT_MAX, RUNTIME_REPORT_BYTES_MAX } from "../protocol/limits.ts";
import type { HomeRun, HomeRuntime, Runtime, RuntimePresence } from "../protocol/runtimes.ts";
import type { PresenceAnswer, RuntimeReport } from "../protocol/sync.ts";
import { iso, isoOrNone } from "../protocol/time.ts";
import type { Hub } from "./hub.ts";

const RUNTIMES_MAX = 500;
const RUNS_SHOWN = 16;
const COMMANDS_COUNTED = 100;

/** What a Runtime sends as its sign of life. */
export type Beat = {
  project: string;
  runtimeId: string;
  host?: string | undefined;
  version?: string | undefined;
  report?: RuntimeReport | undefined;
};

/** Takes down a sign of life. @returns the answer, and whether this Runtime is new to the project @throws HubError protocol_error for a report that is too large */
export async function beat(hub: Hub, sent: Beat): Promise<PresenceAnswer & { isNew: boolean }> {
  if (sent.report && Buffer.byteLength(JSON.stringify(sent.report)) > RUNTIME_REPORT_BYTES_MAX)
    throw new HubError("protocol_error", `report exceeds ${RUNTIME_REPORT_BYTES_MAX} bytes`);
  const { row, isNew } = await hub.engine.write(sent.project, (tx) => recordBeat(tx, sent, hub.settings.staleMs));
  hub.metrics.add("runtime_heartbeats");
  const { runtimeId, host, registeredAt, heartbeatAt } = row;
  const presence = presenceOf(row, hub.clock(), hub.settings.staleMs) === "online" ? "online" : "expired";
  const leaseExpiresAt = iso(heartbeatAt + hub.settings.staleMs);
  return {
    isNew,
    generation: hub.engine.generation,
    presence: { runtimeId, ...(host !== null && { host }), registeredAt: iso(registeredAt), heartbeatAt: iso(heartbeatAt), leaseExpiresAt, presence },
  };
}

/** Only what changed is an event of the log: being new, being back, or saying something else than before. A mere heartbeat is none. */
async function recordBeat(
  tx: Tx,
  { project, runtimeId, host, version, report }: Beat,
  staleMs: number,
): Promise<{ row: RuntimeRow; isNew: boolean }> {
  const known = await tx.runtimes.lock(project, runtimeId);
  const told = { host: host ?? null, version: version ?? null, report: report ?? null };
  const row: RuntimeRow = { project, runtimeId, ...told, registeredAt: known?.registeredAt ?? tx.now, heartbeatAt: tx.now };
  const type = !known ? "registered" : known.heartbeatAt + staleMs <= tx.now ? "returned" : says(known) !== says(row) ? "reported" : undefined;
  if (!known) await tx.runtimes.insert(row);
  else if (type === undefined) await tx.runtimes.beat(project, runtimeId, tx.now);
  else await tx.runtimes.update(row);
  if (type) tx.append({ project, topic: "runtimes", type, subjectId: runtimeId, actor: runtimeId, data: { host: row.host, version: row.version } });
  return { row, isNew: !known };
}

const says = ({ host, version, report }: RuntimeRow) => canonical([host, version, report]);

/** By the hub's clock. @param now milliseconds @param staleMs silence after which a Runtime counts as gone */
export const presenceOf = (row: Pick<RuntimeRow, "heartbeatAt"> | undefined, now: number, staleMs: number): RuntimePresence =>
  row === undefined ? "unknown" : now < row.heartbeatAt + staleMs ? "online" : "expired";

/** Every Runtime of a project: those that reported and those that only have runs here, by id. */
export async function list(hub: Hub, project: string): Promise<Runtime[]> {
  const { read } = hub.engine;
  return Promise.all((await known(read, project)).map(({ runtimeId, row }) => shown(hub, project, runtimeId, row)));
}

/** One Runtime. @throws HubError runtime_not_found */
export async function find(hub: Hub, project: string, runtimeId: string): Promise<Runtime> {
  const { read } = hub.engine;
  const row = await read.runtimes.find(project, runtimeId);
  if (!row && !(await hasRuns(read, project, runtimeId))) throw new HubError("runtime_not_found", `no Runtime ${runtimeId} is known to this project`);
  return shown(hub, project, runtimeId, row);
}

/** Whether a project knows a Runtime: it reported, or has runs here. */
export const isKnown = async (read: Pick<Stores, "runtimes" | "sync">, project: string, runtimeId: string): Promise<boolean> =>
  (await read.runtimes.find(project, runtimeId)) !== undefined || hasRuns(read, project, runtimeId);

const hasRuns = async (read: Pick<Stores, "sync">, project: string, runtimeId: string) =>
  (await read.sync.runsOfRuntime(project, runtimeId, 1)).length > 0;

/** For the ops snapshot: every Runtime with presence or runs in the project, by id, each with its newest runs. */
export async function homeRuntimes(hub: Hub, project: string): Promise<HomeRuntime[]> {
  const { read } = hub.engine;
  const found = await known(read, project);
  return Promise.all(
    found.map(async ({ runtimeId, row }): Promise<HomeRuntime> => {
      const presence = presenceOf(row, hub.clock(), hub.settings.staleMs);
      const orphaned = presence !== "online";
      const runs = await read.sync.runsOfRuntime(project, runtimeId, RUNS_SHOWN);
      return {
        runtimeId,
        ...(row?.host && { host: row.host }),
        ...(row && { heartbeatAt: iso(row.heartbeatAt), leaseExpiresAt: iso(row.heartbeatAt + hub.settings.staleMs) }),
        presence,
        orphaned,
        runs: runs.map((run) => homeRun(run, orphaned)),
        runTotal: await read.sync.countRunsOfRuntime(project, runtimeId, COUNT_EXACT_MAX),
      };
    }),
  );
}

const homeRun = ({ projectId, runId, workflowId, displayTitle, status, cursor, held, updatedAt }: SyncRunRow, orphaned: boolean): HomeRun => ({
  projectId,
  runId,
  ...(workflowId !== null && { workflowId }),
  ...(displayTitle !== null && { displayTitle }),
  ...(status !== null && { status }),
  lastSequence: cursor,
  pendingGap: held > 0,
  ...(updatedAt !== null && { updatedAt: iso(updatedAt) }),
  orphaned,
});

/** Ids of a project's Runtimes with their presence, if any, by id. Costs one look per Runtime, however many runs there are. */
export async function known(read: Stores, project: string): Promise<{ runtimeId: string; row: RuntimeRow | undefined }[]> {
  const rows = new Map((await read.runtimes.ofProject(project, RUNTIMES_MAX)).map((row) => [row.runtimeId, row]));
  const ids = new Set(rows.keys());
  for (let id = await read.sync.nextRuntimeWithRuns(project, ""); id !== undefined && ids.size < 2 * RUNTIMES_MAX; ) {
    ids.add(id);
    id = await read.sync.nextRuntimeWithRuns(project, id);
  }
  return [...ids].sort().map((runtimeId) => ({ runtimeId, row: rows.get(runtimeId) }));
}

async function shown(hub: Hub, project: string, runtimeId: string, row: RuntimeRow | undefined): Promise<Runtime> {
  const { read } = hub.engine;
  const presence = presenceOf(row, hub.clock(), hub.settings.staleMs);
  const open = await read.commands.open(project, runtimeId, 0, COMMANDS_COUNTED);
  return {
    project,
    runtimeId,
    host: row?.host ?? undefined,
    version: row?.version ?? undefined,
    registeredAt: isoOrNone(row?.registeredAt),
    heartbeatAt: isoOrNone(row?.heartbeatAt),
    leaseExpiresAt: row && iso(row.heartbeatAt + hub.settings.staleMs),
    presence,
    orphaned: presence !== "online",
    report: (row?.report as RuntimeReport | null | undefined) ?? undefined,
    commandsInFlight: open.length,
    runTotal: await read.sync.countRunsOfRuntime(project, runtimeId, COUNT_EXACT_MAX),
  };
}

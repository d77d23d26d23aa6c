// The registry: one supervisor per user and machine, and every checkout it knows. A generation that only rises tells the owner from one that lost its place.
import { RuntimeRefusal } from "../protocol/runtime-errors.ts";
import type { Clock } from "./clock.ts";
import { newRuntimeId } from "./ids.ts";
import { isSameProcess } from "./process-identity.ts";
import sql from "./registry-migrations/0001_registry.sql" with { type: "text" };
import { columns } from "./store/context.ts";
import { closeDatabase, immediately, openDatabase, storeRefusal } from "./store/database.ts";

/** A supervisor that was silent for this long may be replaced, even if its process still exists. */
export const SUPERVISOR_STALE_MS = 15_000;
export const HEARTBEAT_MS = 1_000;

const SUPERVISOR = ["runtimeId", "generation", "pid", "pidStarted", "port", "tokenHash", "version", "startedAt", "heartbeatAt", "state"] as const;
export type SupervisorRow = {
  runtimeId: string;
  generation: number;
  pid: number | null;
  pidStarted: string | null;
  port: number | null;
  tokenHash: string | null;
  version: string | null;
  startedAt: number | null;
  heartbeatAt: number | null;
  state: "running" | "stopped";
};
const PROJECT = [
  "projectKey",
  "projectId",
  "name",
  "projectRoot",
  "homeRuntimeId",
  "configRevision",
  "hubProject",
  "registeredAt",
  "usedAt",
] as const;
export type RegisteredProject = {
  projectKey: string;
  projectId: string;
  name: string;
  projectRoot: string;
  homeRuntimeId: string;
  configRevision: string | null;
  /** The project of the hub it reports to; null is that of the machine's binding. */
  hubProject: string | null;
  registeredAt: number;
  usedAt: number;
};
export type RefusedCommand = { commandId: string; hub: string; hubSeq: number; code: string; reason: string; reportedAt: number | null };
export type Registry = ReturnType<typeof openRegistry>;

/** Who wants to be the supervisor. */
export type Candidate = { pid: number; pidStarted: string | undefined; tokenHash: string; version: string };
export type RegistryOptions = { clock: Clock; staleMs?: number; isSame?: (pid: number, started: string | null) => boolean };

/** @throws RuntimeRefusal as openDatabase does */
export function openRegistry(path: string, { clock, staleMs = SUPERVISOR_STALE_MS, isSame = isSameProcess }: RegistryOptions) {
  const db = openDatabase(path, [{ name: "0001_registry", sql }]);
  const ours = <T>(work: () => T): T => {
    try {
      return immediately(db, work);
    } catch (error) {
      throw storeRefusal(error, path);
    }
  };
  ours(() =>
    db
      .query("insert into supervisor (id, runtime_id, generation, state) values (1, ?, 0, 'stopped') on conflict (id) do nothing")
      .run(newRuntimeId()),
  );
  const supervisor = (): SupervisorRow => db.query<SupervisorRow, []>(`select ${columns(SUPERVISOR)} from supervisor where id = 1`).get()!;
  const holds = (generation: number) => supervisor().generation === generation;

  return {
    /** This machine's Runtime; the same for ever. */
    runtimeId: supervisor().runtimeId,
    supervisor,
    /** Whether a supervisor runs: its record says so and its process is there. `silent` when it has not been heard for too long. */
    liveness: (): "none" | "live" | "silent" => livenessOf(supervisor(), clock.now(), staleMs, isSame),
    /**
     * Takes the record. A silent supervisor is replaced only if it was silent the whole time since the caller looked: pass what it saw.
     * @throws RuntimeRefusal runtime_supervisor_conflict when one runs
     */
    acquire: (candidate: Candidate, silent?: { generation: number; heartbeatAt: number | null }): number =>
      ours(() => {
        const held = supervisor();
        const state = livenessOf(held, clock.now(), staleMs, isSame);
        const stillSilent = state === "silent" && silent?.generation === held.generation && silent.heartbeatAt === held.heartbeatAt;
        if (state !== "none" && !stillSilent) throw conflict(held);
        const { pid, pidStarted = null, tokenHash, version } = candidate;
        db.query(
          `update supervisor set generation = generation + 1, pid = $pid, pid_started = $pidStarted, port = null, token_hash = $tokenHash,
             version = $version, started_at = $now, heartbeat_at = $now, state = 'running' where id = 1`,
        ).run({ pid, pidStarted, tokenHash, version, now: clock.now() });
        return held.generation + 1;
      }),
    /** Tells where the local API listens. @throws RuntimeRefusal runtime_superseded */
    listening: (generation: number, port: number) =>
      ours(() => {
        if (!holds(generation)) throw superseded(supervisor());
        db.query("update supervisor set port = ? where id = 1").run(port);
      }),
    /** Says that the owner lives. @throws RuntimeRefusal runtime_superseded when somebody else took over */
    beat: (generation: number) =>
      ours(() => {
        if (!holds(generation)) throw superseded(supervisor());
        db.query("update supervisor set heartbeat_at = ? where id = 1").run(clock.now());
      }),
    /** Gives the record back. Does nothing when somebody else holds it. */
    release: (generation: number) =>
      ours(() => {
        if (holds(generation)) db.query("update supervisor set state = 'stopped', port = null where id = 1").run();
      }),
    ...projectRows(db, ours, clock),
    ...refusedRows(db, ours, clock),
    close: () => closeDatabase(db),
  };
}

function livenessOf(row: SupervisorRow, now: number, staleMs: number, isSame: (pid: number, started: string | null) => boolean) {
  if (row.state !== "running" || row.pid === null || !isSame(row.pid, row.pidStarted)) return "none";
  return now - (row.heartbeatAt ?? 0) < staleMs ? "live" : "silent"; // a heartbeat from the future is a clock that went back: live
}

const conflict = ({ pid, port }: SupervisorRow) =>
  new RuntimeRefusal("runtime_supervisor_conflict", `a Runtime already runs here as process ${pid}`, { detail: { pid, port } });
const superseded = ({ pid }: SupervisorRow) => new RuntimeRefusal("runtime_superseded", `process ${pid} took over as the Runtime of this machine`);

type Db = ReturnType<typeof openDatabase>;
type Ours = <T>(work: () => T) => T;

function projectRows(db: Db, ours: Ours, clock: Clock) {
  const SELECT = `select ${columns(PROJECT)} from projects`;
  return {
    /**
     * Registers a checkout, or notes its use. Its home Runtime never changes.
     * @throws RuntimeRefusal project_conflict when the folder is registered under another project id
     */
    register: (project: Omit<RegisteredProject, "registeredAt" | "usedAt">): RegisteredProject =>
      ours(() => {
        const known = db.query<RegisteredProject, [string]>(`${SELECT} where project_key = ?`).get(project.projectKey);
        if (known && known.projectId !== project.projectId)
          throw new RuntimeRefusal("project_conflict", `${project.projectRoot} is registered as ${known.projectId}, not ${project.projectId}`);
        db.query(
          `insert into projects (project_key, project_id, name, project_root, home_runtime_id, config_revision, hub_project, registered_at, used_at)
           values ($projectKey, $projectId, $name, $projectRoot, $homeRuntimeId, $configRevision, $hubProject, $now, $now)
           on conflict (project_key) do update set name = $name, config_revision = $configRevision, used_at = $now,
             hub_project = coalesce($hubProject, hub_project)`,
        ).run({ ...project, now: clock.now() });
        return db.query<RegisteredProject, [string]>(`${SELECT} where project_key = ?`).get(project.projectKey)!;
      }),
    /** Every checkout of a Runtime, in the order of their registration. */
    projectsForRuntime: (runtimeId: string): RegisteredProject[] =>
      db.query<RegisteredProject, [string]>(`${SELECT} where home_runtime_id = ? order by registered_at, project_key`).all(runtimeId),
    /** Checkouts whose home is another Runtime: a registry that was copied. They are shown, never used. */
    projectsOfOthers: (runtimeId: string): RegisteredProject[] =>
      db.query<RegisteredProject, [string]>(`${SELECT} where home_runtime_id <> ? order by registered_at, project_key`).all(runtimeId),
  };
}

function refusedRows(db: Db, ours: Ours, clock: Clock) {
  const NAMES = ["commandId", "hub", "hubSeq", "code", "reason", "reportedAt"] as const;
  return {
    /** Remembers that a command found no store. The first refusal of a command stays. */
    refuseCommand: (row: Omit<RefusedCommand, "reportedAt">) =>
      ours(() =>
        db
          .query(
            `insert into refused_commands (command_id, hub, hub_seq, code, reason, recorded_at)
             values ($commandId, $hub, $hubSeq, $code, $reason, $now) on conflict (command_id) do nothing`,
          )
          .run({ ...row, now: clock.now() }),
      ),
    refusedCommand: (commandId: string): RefusedCommand | undefined =>
      db.query<RefusedCommand, [string]>(`select ${columns(NAMES)} from refused_commands where command_id = ?`).get(commandId) ?? undefined,
    unreportedRefusals: (hub: string): RefusedCommand[] =>
      db
        .query<RefusedCommand, [string]>(
          `select ${columns(NAMES)} from refused_commands where hub = ? and reported_at is null order by hub_seq limit 100`,
        )
        .all(hub),
    refusalReported: (commandId: string) =>
      ours(() => db.query("update refused_commands set reported_at = ? where command_id = ?").run(clock.now(), commandId)),
    refusedCursor: (hub: string): number =>
      db.query<{ seq: number | null }, [string]>("select max(hub_seq) as seq from refused_commands where hub = ?").get(hub)?.seq ?? 0,
  };
}

// Runs, their pinned plans and the projection of each: one row per run in `runs`, never changed; one in `run_state`, rebuilt from events at will.
import { isTerminal } from "../../protocol/workflow-file.ts";
import { all, bind, columns, insertInto, one, type StoreContext, write } from "./context.ts";
import type { RunState } from "./projection.ts";

const RUN = [
  ...["runId", "arrival", "projectId", "homeRuntimeId", "workflowId", "displayTitle", "promptHash", "source", "createdBy"],
  ...["configRevision", "memoryRevision", "executorPolicyRevision", "toolPolicyRevision", "syncPolicyRevision", "createdAt", "detail"],
] as const;

/** What a run is made from and pinned to. */
export type NewRun = {
  /** Given by the caller when a command must find its run again; otherwise made. */
  runId?: string;
  workflowId: string;
  displayTitle?: string;
  /** Hash of the prompt in prompts.db. */
  promptHash?: string;
  /** Where it came from, such as `cli`, `hub`, `intake`, `webhook`. */
  source: string;
  /** Who asked, for the record. */
  createdBy: string;
  /** `sha256:` revisions, pinned for the whole run. */
  configRevision: string;
  executorPolicyRevision: string;
  toolPolicyRevision: string;
  syncPolicyRevision: string;
  /** Opaque id, such as `mem_…`. */
  memoryRevision: string;
  /** Anything else to keep with the run. Stays on this machine. */
  detail?: Record<string, unknown>;
};
/** A run as stored. `arrival` counts from 1 in the order of admission. */
export type RunRow = Required<Pick<NewRun, "runId">> &
  Omit<NewRun, "runId" | "detail"> & {
    arrival: number;
    projectId: string;
    homeRuntimeId: string;
    createdAt: number;
    detail: Record<string, unknown>;
  };
/** A run with what it looks like now. */
export type RunView = RunRow & { state: RunState };
type RawRun = { [K in (typeof RUN)[number]]: any };
type RawView = RawRun & { state: string };

const readRun = (raw: RawRun): RunRow => {
  const row = { ...raw, detail: JSON.parse(raw.detail) };
  if (row.displayTitle === null) delete row.displayTitle;
  if (row.promptHash === null) delete row.promptHash;
  return row as unknown as RunRow;
};
const readView = ({ state, ...raw }: RawView): RunView => ({ ...readRun(raw), state: JSON.parse(state) });

/** The runs of a store. `identity` gives what every run of it shares. */
export function runTable(context: StoreContext, identity: { projectId: string; homeRuntimeId: string }) {
  const insert = write(context, insertInto("runs", RUN));
  const lastArrival = one<{ arrival: number | null }>(context, "select max(arrival) as arrival from runs");
  const find = one<RawRun>(context, `select ${columns(RUN)} from runs where run_id = $runId`);
  const ofRun = RUN.map((name) => `runs.${columns([name])}`).join(", ");
  const VIEW = `select ${ofRun}, run_state.state as state from runs join run_state using (run_id)`;
  const view = one<RawView>(context, `${VIEW} where runs.run_id = $runId`);
  const latest = all<RawView>(context, `${VIEW} where runs.arrival < $before order by runs.arrival desc limit $limit`);
  const open = all<RawView>(context, `${VIEW} where run_state.ended_at is null order by runs.arrival`);
  const withStatus = all<RawView>(
    context,
    `${VIEW} where run_state.status = $status and runs.arrival < $before order by runs.arrival desc limit $limit`,
  );
  return {
    read: {
      /** A run by its id. */
      find: (runId: string): RunRow | undefined => {
        const raw = find({ runId });
        return raw && readRun(raw);
      },
      /** A run and what it looks like now. */
      view: (runId: string): RunView | undefined => {
        const raw = view({ runId });
        return raw && readView(raw);
      },
      /** Runs, newest first. @param page.limit 1..1000, default 50; `before` is the `arrival` of the last run of the page before */
      list: (page: { status?: string; before?: number; limit?: number } = {}): RunView[] => {
        const { status, before = Number.MAX_SAFE_INTEGER, limit = 50 } = page;
        return (status === undefined ? latest({ before, limit }) : withStatus({ status, before, limit })).map(readView);
      },
      /** Runs that have not ended, in order of arrival. */
      open: (): RunView[] => open().map(readView),
    },
    write: {
      /** Inserts the run; its first event is the caller's to append, in the same transaction. */
      insert: (run: NewRun): RunRow => {
        const arrival = (lastArrival()?.arrival ?? 0) + 1;
        const { detail = {}, runId = context.newId("run") } = run;
        const row: RunRow = { ...run, ...identity, runId, arrival, createdAt: context.now, detail };
        insert(bind(RUN, { ...row, detail: JSON.stringify(detail) }));
        return row;
      },
    },
  };
}

/** The plans and projections of a store's runs. */
export function stateTable(context: StoreContext) {
  const insertPlan = write(context, insertInto("run_plans", ["runId", "planHash", "plan", "compiledAt"]));
  const findPlan = one<{ plan: string; planHash: string; compiledAt: number }>(
    context,
    "select plan, plan_hash as planHash, compiled_at as compiledAt from run_plans where run_id = $runId",
  );
  const findState = one<{ state: string }>(context, "select state from run_state where run_id = $runId");
  const putState = write(
    context,
    `insert into run_state (run_id, status, step_id, last_sequence, updated_at, ended_at, state)
     values ($runId, $status, $stepId, $lastSequence, $updatedAt, $endedAt, $state)
     on conflict (run_id) do update set status = $status, step_id = $stepId, last_sequence = $lastSequence, updated_at = $updatedAt,
       ended_at = $endedAt, state = $state`,
  );
  const dropStates = write(context, "delete from run_state");
  return {
    read: {
      /** The pinned plan of a run. */
      planOf: (runId: string): { plan: unknown; planHash: string; compiledAt: number } | undefined => {
        const row = findPlan({ runId });
        return row && { ...row, plan: JSON.parse(row.plan) };
      },
      /** What the run looks like now. */
      state: (runId: string): RunState | undefined => {
        const row = findState({ runId });
        return row && JSON.parse(row.state);
      },
    },
    write: {
      /** Pins the compiled plan. Once per run. */
      savePlan: (runId: string, plan: unknown, planHash: string) =>
        insertPlan({ runId, planHash, plan: JSON.stringify(plan), compiledAt: context.now }),
      putState: (runId: string, state: RunState) =>
        putState({
          runId,
          status: state.status,
          stepId: state.stepId ?? null,
          lastSequence: state.lastSequence,
          updatedAt: state.updatedAt,
          endedAt: isTerminal(state.status) ? (state.endedAt ?? state.updatedAt) : null,
          state: JSON.stringify(state),
        }),
      dropStates: () => dropStates(),
    },
  };
}

/** Runs with their plans and projections. */
export type RunTables = {
  read: ReturnType<typeof runTable>["read"] & ReturnType<typeof stateTable>["read"];
  write: ReturnType<typeof runTable>["write"] & ReturnType<typeof stateTable>["write"];
};

// Workflow runs as their coordinator sees and moves them.
import type { Improvements, JournalEntry, JournalRequest } from "../protocol/journal.ts";
import type { CheckpointRequest, Conditions, WaitRequest, WorkflowRun } from "../protocol/workflows.ts";
import type { Calls } from "./calls.ts";

/** How an attempt at a stage ended. */
export type Checkpoint = CheckpointRequest;
/** What a run waits for. */
export type Waiting = Omit<WaitRequest, "timeoutMs"> & { timeoutMs?: number };
/** A finding of a run. */
export type Finding = Pick<JournalRequest, "category" | "summary"> & Partial<Omit<JournalRequest, "category" | "summary">>;

/** The calls about workflow runs. @throws (each) HubRefusal, HubUnreachable, HubTimeout */
export function workflowCalls(calls: Calls) {
  const at = (runId: string) => `/v1/workflows/${encodeURIComponent(runId)}`;
  return {
    /** Runs that this agent coordinates. */
    list: async (): Promise<WorkflowRun[]> => (await calls.call<{ runs: WorkflowRun[] }>("GET", "/v1/workflows")).runs,
    /** A run with its journal and what its current stage still needs. */
    get: (runId: string): Promise<{ run: WorkflowRun; journal: JournalEntry[]; conditions: Conditions }> => calls.call("GET", at(runId)),
    /** Ends an attempt at the current stage. */
    checkpoint: (runId: string, body: Checkpoint): Promise<{ run: WorkflowRun; retry: boolean; completed: boolean; instruction: string }> =>
      calls.call("POST", `${at(runId)}/checkpoints`, { body }),
    /** Puts the run to sleep until a signed signal arrives. */
    wait: (runId: string, body: Waiting): Promise<{ run: WorkflowRun; instruction: string }> => calls.call("POST", `${at(runId)}/waits`, { body }),
    /** Records a plan, decision, finding or lesson. */
    record: async (runId: string, body: Finding): Promise<JournalEntry> =>
      (await calls.call<{ entry: JournalEntry }>("POST", `${at(runId)}/journal`, { body })).entry,
    /** What the project's journal teaches, ranked. */
    improvements: (): Promise<Improvements> => calls.call("GET", "/v1/improvements"),
  };
}

// What the project knows, as an agent asks for it. The project is the agent's own.
import type { ContextItem, Lineage, Packet, PacketAudit, PacketRequest, ProposeRequest, Recalled, RecallRequest } from "../protocol/context.ts";
import type { Calls } from "./calls.ts";

type Own<T> = Omit<T, "project">;

/** The calls about context. @throws (each) HubRefusal, HubUnreachable, HubTimeout */
export function contextCalls(calls: Calls) {
  const post = async <T>(name: string, fields: object): Promise<T> =>
    calls.call<T>("POST", `/v1/context/${name}`, { body: { project: await calls.project(), ...fields } });
  return {
    /** What a role should know for a task, within a token budget. */
    get: (request: Own<PacketRequest>): Promise<{ packet: Packet; audit: PacketAudit }> => post("get", request),
    /** Finds items by words; answers where they come from, not the texts. */
    recall: (request: Partial<Own<RecallRequest>> = {}): Promise<{ items: Recalled[]; unresolvedGaps: string[] }> => post("recall", request),
    /** The value of a key now, or at a time. */
    state: async (key: string, { asOf }: { asOf?: string } = {}): Promise<ContextItem | undefined> =>
      (await post<{ state: ContextItem | null }>("state", { key, asOf })).state ?? undefined,
    /** Errors, lessons, observations and experiments, oldest first. */
    episodes: async ({ workflowRunId }: { workflowRunId?: string } = {}): Promise<ContextItem[]> =>
      (await post<{ episodes: ContextItem[] }>("episode", { workflowRunId })).episodes,
    /** Where an item comes from. */
    explain: (id: string): Promise<Lineage> => post("explain", { id }),
    /** Proposes a value for a key, with evidence; a person promotes it. Answers the proposal's id. */
    propose: async (request: Own<ProposeRequest>): Promise<string> => (await post<{ proposalId: string }>("state/propose", request)).proposalId,
  };
}

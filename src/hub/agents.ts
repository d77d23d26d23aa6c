// Who is calling, and who exists: agents register by name, resume their identity, rotate keys and sign off.
// Codes: invalid_agent_identity, duplicate_agent_name, agent_not_found.
import type { AgentRow } from "../db/schema.ts";
import type { Stores, Tx } from "../db/tx.ts";
import { sha256 } from "../protocol/canonical.ts";
import { HubError } from "../protocol/errors.ts";

/** The agent on whose behalf a rule runs. */
export type Caller = Pick<AgentRow, "id" | "project" | "name">;

/**
 * Before any write, on committed state: names the agent and with it the project whose lane a write takes.
 * @throws HubError invalid_agent_identity when the id is unknown or the key is not its current one
 */
export async function authenticate(read: Stores, id: string, key: string): Promise<AgentRow> {
  const agent = id && key ? await read.agents.find(id) : undefined;
  // Hashes of random 256-bit keys: comparing them in plain tells nothing that helps to guess a key.
  if (!agent || agent.keyHash !== sha256(key)) {
    throw new HubError("invalid_agent_identity", "the agent id and key do not name a known agent", {
      operation: "other",
      nextAction: "reconnect_with_current_agent_key",
    });
  }
  return agent;
}

/** An agent that was offline gave a sign of life: it is online again, once. */
export async function comeOnline(tx: Tx, id: string): Promise<void> {
  const agent = await tx.agents.lock(id);
  if (!agent || agent.online === 1) return;
  await tx.agents.setOnline(id, 1, tx.now);
  tx.append({ project: agent.project, topic: "agents", type: "online", subjectId: id, actor: id, data: { name: agent.name } });
}

// Who is calling, and who exists: agents register by name, resume their identity, rotate keys and sign off. A key is never stored, only its hash.
// Codes: invalid_agent_identity, duplicate_agent_name.
import type { AgentRow } from "../db/schema.ts";
import type { Tx } from "../db/tx.ts";
import type { Agent, PresenceWord, RegisterBody } from "../protocol/agents.ts";
import { PURPOSE_DEFAULT } from "../protocol/agents.ts";
import { sha256 } from "../protocol/canonical.ts";
import { HubError } from "../protocol/errors.ts";
import { iso } from "../protocol/time.ts";
import type { Hub } from "./hub.ts";
import type { Known } from "./known.ts";
import { leave } from "./presence.ts";

/** The agent on whose behalf a rule runs. */
export type Caller = Pick<AgentRow, "id" | "project" | "name">;
/** What of the hub tells how an agent is doing. */
type Watch = Pick<Hub, "presence" | "settings">;

/**
 * Before any write, on committed state: names the agent and with it the project whose lane a write takes.
 * @throws HubError invalid_agent_identity when the id is unknown or the key is not its current one
 */
export async function authenticate(known: Known, id: string, key: string): Promise<AgentRow> {
  const agent = id && key ? await known.agent(id) : undefined;
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

/**
 * Registers a new agent, or resumes the offline one of this name with a new key: the key before it is dead once this is committed.
 * An agent whose lease has lapsed counts as offline even if no sweep has run yet, so a crashed one may come back at once.
 * @param keyHash SHA-256 of the new key, which the caller made outside the write and shows once
 * @throws HubError duplicate_agent_name when an agent of this name is online
 */
export async function register(tx: Tx, watch: Watch, request: RegisterBody, keyHash: string): Promise<{ agent: AgentRow; resumed: boolean }> {
  const { name, project, purpose = PURPOSE_DEFAULT, model = null, host = null } = request;
  const earlier = await tx.agents.findByName(project, name);
  if (earlier && presenceOf(watch, earlier, tx.now) === "online") {
    throw new HubError("duplicate_agent_name", `an agent named ${earlier.name} is online in ${project}`);
  }
  const now = { connectedAt: tx.now, lastSeenAt: tx.now, online: 1, retiredAt: null };
  const said = { project, name, nameFolded: name.toLowerCase(), purpose, model, host, keyHash };
  const agent = { ...(earlier ?? { id: tx.newId("agt"), registeredAt: tx.now }), ...said, ...now };
  await (earlier ? tx.agents.resume(agent) : tx.agents.insert(agent));
  const resumed = earlier !== undefined;
  tx.append({ project, topic: "agents", type: "registered", subjectId: agent.id, actor: agent.id, data: { name, resumed } });
  return { agent, resumed };
}

/** An agent says what it works on. Nothing happens when it says the same again. */
export async function describe(tx: Tx, id: string, said: { purpose?: string | undefined; model?: string | undefined }): Promise<AgentRow> {
  const agent = (await tx.agents.lock(id))!; // it called, and agents are never deleted
  const { purpose = agent.purpose, model = agent.model } = said;
  if (purpose === agent.purpose && model === agent.model) return agent;
  const described = { ...agent, purpose, model };
  await tx.agents.resume(described);
  tx.append({ project: agent.project, topic: "agents", type: "described", subjectId: id, actor: id, data: { name: agent.name } });
  return described;
}

/** An agent signs off: it is offline and its streams end. Its key stays valid: its next request brings it back. */
export async function signOff(tx: Tx, id: string): Promise<void> {
  const agent = await tx.agents.lock(id);
  if (agent?.online === 1) await leave(tx, agent, "signed_off", tx.now);
}

/** What an agent's row and this hub's memory say at a time. @param now milliseconds by the hub's clock */
export function presenceOf({ presence, settings }: Watch, agent: AgentRow, now: number): PresenceWord {
  if (agent.online === 0) return "offline";
  return now < presence.lastSeen(agent.id, agent.lastSeenAt) + settings.staleMs ? "online" : "stale";
}

/** The record others see. */
export function toAgent(hub: Watch & Pick<Hub, "clock">, agent: AgentRow): Agent {
  const { id, name, purpose, project, model, host, connectedAt, lastSeenAt, online } = agent;
  const lastSeen = online === 1 ? hub.presence.lastSeen(id, lastSeenAt) : lastSeenAt;
  return {
    id,
    name,
    purpose,
    project,
    ...(model !== null && { model }),
    ...(host !== null && { host }),
    connectedAt: iso(connectedAt),
    lastSeenAt: iso(lastSeen),
    online: online === 1,
    leaseExpiresAt: iso(lastSeen + hub.settings.staleMs),
    presence: presenceOf(hub, agent, hub.clock()),
  };
}

/** The agents of a project by name. */
export async function list(hub: Hub, project: string, { includeOffline }: { includeOffline: boolean }): Promise<Agent[]> {
  const { agents } = hub.engine.read;
  const rows = await (includeOffline ? agents.ofProject(project) : agents.onlineOf(project));
  return rows.map((row) => toAgent(hub, row));
}

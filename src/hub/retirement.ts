// Taking an agent out of the house: its key dies at once, its leases go to whoever waits, its open messages are cancelled. Every step may be repeated.
// Codes: agent_not_found.
import type { AgentRow } from "../db/schema.ts";
import type { AuditNote, Tx } from "../db/tx.ts";
import { HubError } from "../protocol/errors.ts";
import type { Hub } from "./hub.ts";
import * as leaseRules from "./lease-rules.ts";
import * as messages from "./messages.ts";

/** A person who acts, for the log and the audit. */
export type Person = { id: string; audit: AuditNote };
/** How many leases were given up and messages ended with the agent. */
export type Retired = { leases: number; messages: number };

/** Leases and messages that one write ends. */
const STEP = 100;

/**
 * Ends an agent's key: its streams end, and it is offline until it registers again. What it holds stays.
 * @param deadKeyHash the hash of a key that nobody has, made outside the write
 * @throws HubError agent_not_found
 */
export async function endKey(tx: Tx, by: Person, id: string, deadKeyHash: string): Promise<AgentRow> {
  return end(tx, by, id, { deadKeyHash, type: "key_ended", retiredAt: null });
}

/**
 * Retires an agent: ends its key, then frees its leases and cancels its open messages, step by step.
 * Registering under its name again is how it comes back.
 * @throws HubError agent_not_found
 */
export async function retire(hub: Hub, by: Person, agent: Pick<AgentRow, "id" | "project">, deadKeyHash: string): Promise<Retired> {
  const { id, project } = agent;
  await hub.engine.write(project, (tx) => end(tx, by, id, { deadKeyHash, type: "retired", retiredAt: tx.now }));
  hub.presence.forget(id);
  const done: Retired = { leases: 0, messages: 0 };
  for (;;) {
    const freed = await hub.engine.write(project, (tx) => freeLeases(tx, by, agent));
    done.leases += freed;
    if (freed < STEP) break;
  }
  for (const of of ["received", "sent"] as const) {
    for (;;) {
      const ids = await openIds(hub, of, agent);
      if (ids.length === 0) break;
      done.messages += await hub.engine.write(project, (tx) => cancelAll(tx, by, project, ids));
    }
  }
  hub.metrics.add("messages_cancelled", done.messages);
  hub.metrics.add("leases_released", done.leases);
  return done;
}

async function end(tx: Tx, by: Person, id: string, what: { deadKeyHash: string; type: string; retiredAt: number | null }): Promise<AgentRow> {
  const agent = await tx.agents.lock(id);
  if (!agent) throw new HubError("agent_not_found", `there is no agent ${id.slice(0, 80)}`);
  const { project, name } = agent;
  await tx.agents.endKey(id, what.deadKeyHash, what.retiredAt ?? agent.retiredAt);
  tx.append({ project, topic: "agents", type: what.type, subjectId: id, actor: by.id, data: { name }, audit: by.audit });
  return agent;
}

async function freeLeases(tx: Tx, by: Person, { id, project }: Pick<AgentRow, "id" | "project">): Promise<number> {
  const held = await tx.leases.heldBy(project, id, STEP);
  const { role, origin } = by.audit;
  const actor = { actor: by.id, role, ...(origin !== undefined && { origin }) };
  for (const { name } of held) await leaseRules.forceRelease(tx, actor, { project, name, reason: "the agent was retired" });
  return held.length;
}

/** Open messages to or from the agent, at most STEP. */
async function openIds({ engine }: Hub, of: "received" | "sent", { id, project }: Pick<AgentRow, "id" | "project">): Promise<string[]> {
  const { messages: store } = engine.read;
  if (of === "received") return (await store.inbox(id, 0, STEP)).map((message) => message.id);
  // Open messages by sender have no index of their own; those of the project are few, and this is rare.
  const found: string[] = [];
  for (let cursor = "~"; found.length < STEP; ) {
    const heads = await store.heads({ kind: "open", of: project }, cursor, 5 * STEP);
    for (const head of heads) if (head.senderId === id && found.length < STEP) found.push(head.id);
    if (heads.length < 5 * STEP) break;
    cursor = heads.at(-1)!.id;
  }
  return found;
}

async function cancelAll(tx: Tx, { id, audit }: Person, project: string, ids: readonly string[]): Promise<number> {
  let count = 0;
  for (const messageId of ids) {
    const message = await tx.messages.lock(messageId);
    if (!message || (message.status !== "queued" && message.status !== "delivered")) continue;
    if (messages.isDue(message, tx.now)) await messages.expireDue(tx, [messageId]);
    else await messages.cancel(tx, { id, project, name: "operator", audit }, messageId);
    count++;
  }
  return count;
}

// Tokens beside those of the environment: made by an admin, shown once, revocable. Only their SHA-256 is kept.
// Codes: token_not_found, tokens_in_force.
import type { EventRow, TokenRow } from "../db/schema.ts";
import type { Stores, Tx } from "../db/tx.ts";
import { sha256 } from "../protocol/canonical.ts";
import { HubError } from "../protocol/errors.ts";
import type { Hub } from "./hub.ts";
import * as sessions from "./sessions.ts";

/** What a caller may do: read metadata, act, or administer. `project` is an agent's or Runtime's place in one project. */
export type Scope = TokenRow["scope"];
const PREFIX_SHOWN = 10; // characters of the secret that lists show

/** Whether a token counts at this time: neither revoked nor expired. */
export const isLive = ({ revokedAt, expiresAt }: TokenRow, now: number): boolean => revokedAt === null && (expiresAt === null || expiresAt > now);

/** The live token behind a secret, or undefined when it is unknown, revoked or expired. */
export async function identify(read: Stores, secret: string, now: number): Promise<TokenRow | undefined> {
  const token = await read.tokens.findByHash(sha256(secret));
  return token && isLive(token, now) ? token : undefined;
}

/**
 * Calls `end` once a token does not count any more: when it is revoked, in whichever project's log that is written, or when its time is over.
 * @param project the token's own; null for one of every project
 * @returns call it when nobody waits any more
 */
export async function watchEnd(
  hub: Pick<Hub, "feeds" | "engine" | "sweepers">,
  { id, project }: { id: string; project: string | null },
  end: () => void,
): Promise<() => void> {
  const listener = { event: ({ type }: EventRow) => (type === "token.revoked" ? end() : undefined), lost: end };
  const { leave } = await hub.feeds.join(project ?? "", listener, id);
  const row = await hub.engine.read.tokens.find(id); // revoked before we listened
  if (!row || row.revokedAt !== null) end();
  const sweep = (now: number) => void (row && !isLive(row, now) && end());
  hub.sweepers.add(sweep);
  return () => {
    hub.sweepers.delete(sweep);
    leave();
  };
}

/** Creates a token. The caller made the secret outside the write and shows it once. */
export async function create(
  tx: Tx,
  by: { actor: string; role: string; origin?: string },
  token: { secret: string; name: string; scope: Scope; project: string | null; agentName?: string | null; expiresAt: number | null },
) {
  const { secret, name, scope, project, agentName = null, expiresAt } = token;
  const row: TokenRow = {
    id: tx.newId("tok"),
    name,
    scope,
    project,
    agentName,
    expiresAt,
    tokenHash: sha256(secret),
    prefix: secret.slice(0, PREFIX_SHOWN),
    createdAt: tx.now,
    createdBy: by.actor,
    lastUsedAt: null,
    revokedAt: null,
    revokedBy: null,
  };
  await tx.tokens.insert(row);
  tx.append({
    project: project ?? "",
    topic: "settings",
    type: "token.created",
    subjectId: row.id,
    actor: by.actor,
    data: { name, scope, ...(agentName !== null && { agentName }) },
    audit: { role: by.role, origin: by.origin },
  });
  return row;
}

/** Revokes a token; doing it twice changes nothing. @throws HubError token_not_found */
export async function revoke(tx: Tx, by: { actor: string; role: string; origin?: string }, id: string) {
  const token = await tx.tokens.find(id);
  if (!token) throw new HubError("token_not_found", `there is no token ${id}`);
  if (token.revokedAt !== null) return token;
  await tx.tokens.revoke(id, tx.now, by.actor);
  await sessions.endOfToken(tx, id);
  tx.append({
    project: token.project ?? "",
    topic: "settings",
    type: "token.revoked",
    subjectId: id,
    actor: by.actor,
    data: { name: token.name },
    audit: { role: by.role, origin: by.origin },
  });
  return { ...token, revokedAt: tx.now, revokedBy: by.actor };
}

/**
 * Whether a project's agents are shut out: it had tokens of its own, none of them counts any more, and no other token of the environment opens it.
 * @param ended a token to take for ended already: what would be so without it
 */
export async function isClosed({ engine, settings, clock }: Pick<Hub, "engine" | "settings" | "clock">, project: string, ended?: string) {
  if (settings.adminTokenHash !== undefined || settings.projectTokenHashes.has(project)) return false;
  const own = await engine.read.tokens.ofProject(project);
  return own.length > 0 && own.every((token) => token.id === ended || !isLive(token, clock()));
}

/** Lets a project's agents in without a token again, once none of its own counts. @throws HubError tokens_in_force */
export async function openProject(tx: Tx, by: { actor: string; role: string; origin?: string }, project: string): Promise<void> {
  const own = await tx.tokens.ofProject(project);
  if (own.some((token) => isLive(token, tx.now))) throw new HubError("tokens_in_force", "the project has a token that counts");
  if (own.length === 0) return;
  await tx.tokens.removeOfProject(project);
  tx.append({
    project,
    topic: "settings",
    type: "project.opened",
    subjectId: project,
    actor: by.actor,
    data: { tokens: own.length },
    audit: { role: by.role, origin: by.origin },
  });
}

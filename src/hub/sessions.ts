// Dashboard sessions: a one-time link becomes a session; a session ends by sign-out, silence, age, or the revocation of the token it began with.
// Codes: signin_link_invalid, invalid_auth, session_required, csrf_failed, role_forbidden.
import type { SessionRow } from "../db/schema.ts";
import type { Stores, Tx } from "../db/tx.ts";
import { sha256 } from "../protocol/canonical.ts";
import { HubError } from "../protocol/errors.ts";
import { SESSION_AGE_MS, SESSION_IDLE_MS, SIGNIN_LINK_MS } from "../protocol/limits.ts";
import type { Presence } from "./presence.ts";

/** What a person signed in as. */
export type Role = SessionRow["role"];
/** Who did it, for the audit. */
export type By = { actor: string; role: string; origin?: string };

/**
 * Stores a sign-in link. The caller made the secret outside the write and shows it once, inside a URL.
 * @param link.tokenId the token it was made with, so that nothing that comes of it outlives that token; null for the admin token
 * @throws HubError invalid_auth when that token was revoked meanwhile
 */
export async function createLink(tx: Tx, by: By, link: { secret: string; role: Role; project: string | null; tokenId: string | null }) {
  const { secret, role, project, tokenId } = link;
  const expiresAt = Math.min(tx.now + SIGNIN_LINK_MS, await endOf(tx, tokenId));
  const row = { tokenHash: sha256(secret), role, project, tokenId, createdAt: tx.now, expiresAt };
  await tx.signinLinks.insert(row);
  append(tx, { project, type: "signin_link.created", subjectId: tokenId ?? "admin", by, data: { role } });
  return row;
}

/**
 * Turns a link into a session, once. The caller made both secrets outside the write: one goes into the cookie, one into the pages' forms.
 * @throws HubError signin_link_invalid when it is unknown, used, or older than SIGNIN_LINK_MS
 */
export async function redeem(tx: Tx, secret: string, fresh: { session: string; csrf: string; origin?: string }): Promise<SessionRow> {
  const link = await tx.signinLinks.take(sha256(secret));
  if (!link || link.expiresAt <= tx.now) throw new HubError("signin_link_invalid", "this sign-in link was used or is too old");
  return begin(tx, { role: link.role, project: link.project, tokenId: link.tokenId }, fresh);
}

/**
 * Starts a session for somebody whose credential was checked: by link, or by a token typed into the sign-in page. It lasts no longer than that token.
 * @throws HubError invalid_auth when the token was revoked meanwhile
 */
export async function begin(
  tx: Tx,
  who: { role: Role; project: string | null; tokenId: string | null },
  fresh: { session: string; csrf: string; origin?: string },
): Promise<SessionRow> {
  const row: SessionRow = {
    id: tx.newId("ses"),
    tokenHash: sha256(fresh.session),
    csrfHash: sha256(fresh.csrf),
    ...who,
    createdAt: tx.now,
    lastSeenAt: tx.now,
    expiresAt: Math.min(tx.now + SESSION_AGE_MS, await endOf(tx, who.tokenId)),
    endedAt: null,
  };
  await tx.sessions.insert(row);
  const by = { actor: row.id, role: row.role, ...(fresh.origin !== undefined && { origin: fresh.origin }) };
  append(tx, { project: row.project, type: "session.started", subjectId: row.id, by, data: { role: row.role } });
  return row;
}

/** When a token ends by itself. @throws HubError invalid_auth when it has ended already: it was checked before this write, and somebody was faster */
async function endOf(tx: Tx, tokenId: string | null): Promise<number> {
  if (tokenId === null) return Number.POSITIVE_INFINITY;
  const token = await tx.tokens.find(tokenId);
  if (!token || token.revokedAt !== null || (token.expiresAt !== null && token.expiresAt <= tx.now))
    throw new HubError("invalid_auth", "the token this was asked with does not count any more");
  return token.expiresAt ?? Number.POSITIVE_INFINITY;
}

/** Whether a session still counts at this time. @param lastSeenAt the newer of what is stored and what this process saw */
export const isLive = (session: SessionRow, lastSeenAt: number, now: number): boolean =>
  session.endedAt === null && now < session.expiresAt && now < lastSeenAt + SESSION_IDLE_MS;

/**
 * The session behind a cookie; notes that it was used. Reads committed state only.
 * @param seen hub.seenSessions: when this process saw which session
 * @throws HubError session_required when it is unknown, ended, idle too long or too old
 */
export async function authenticate(read: Stores, seen: Presence, secret: string, now: number): Promise<SessionRow> {
  const session = secret === "" ? undefined : await read.sessions.findByHash(sha256(secret));
  if (!session || !isLive(session, seen.lastSeen(session.id, session.lastSeenAt), now))
    throw new HubError("session_required", session ? "this session has ended" : "nobody is signed in here");
  seen.saw(session.id, now);
  return session;
}

/** Checks the secret a form sent along. @throws HubError csrf_failed */
export function requireCsrf(session: SessionRow, secret: string): void {
  if (sha256(secret) !== session.csrfHash) throw new HubError("csrf_failed", "this form does not belong to this session");
}

/** Ends a session; doing it twice changes nothing. */
export async function end(tx: Tx, by: By, id: string): Promise<void> {
  const session = await tx.sessions.find(id);
  if (!session || session.endedAt !== null) return;
  await tx.sessions.end(id, tx.now);
  append(tx, { project: session.project, type: "session.ended", subjectId: id, by, data: { role: session.role } });
}

/** Ends everything that came of a token, in the write that revokes it. The revocation is the event. @returns how many sessions ended */
export async function endOfToken(tx: Tx, tokenId: string): Promise<number> {
  await tx.signinLinks.dropOfToken(tokenId);
  await tx.savedViews.dropOfToken(tokenId);
  return (await tx.sessions.endOfToken(tokenId, tx.now)).length;
}

/** The meta row that says which admin token the store was last served with. */
const ADMIN_TOKEN_KEY = "admin_token";

/**
 * At the start of a hub: another admin token than before ends everything that began with that one, as revoking a token does.
 * @param adminTokenHash undefined when there is none, or none that all hubs of the store share: then nothing is compared
 */
export async function followAdminToken(tx: Tx, adminTokenHash: string | undefined): Promise<void> {
  if (adminTokenHash === undefined) return;
  const mark = sha256(`which admin token: ${adminTokenHash}`);
  const before = await tx.meta.find(ADMIN_TOKEN_KEY);
  if (before === mark) return;
  await tx.meta.put(ADMIN_TOKEN_KEY, mark);
  if (before === undefined) return;
  await tx.signinLinks.dropOfAdmin();
  const ended = (await tx.sessions.endOfAdmin(tx.now)).length;
  append(tx, { project: null, type: "admin_token.changed", subjectId: "admin", by: { actor: "hub", role: "admin" }, data: { sessions: ended } });
}

/** Writes when sessions were last used: part of the presence batch. */
export async function writeSeen(tx: Tx, seen: ReadonlyMap<string, number>): Promise<void> {
  for (const [id, at] of seen) await tx.sessions.seen(id, at);
}

function append(tx: Tx, change: { project: string | null; type: string; subjectId: string; by: By; data: Record<string, unknown> }) {
  const { project, type, subjectId, by, data } = change;
  tx.append({ project: project ?? "", topic: "settings", type, subjectId, actor: by.actor, data, audit: { role: by.role, origin: by.origin } });
}

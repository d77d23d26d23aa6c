// Lists that somebody keeps under a name, each with its filters. Invariant: an owner is a credential with its role and project, and sees its own only.
// Codes: protocol_error.
import type { SavedViewRow, SessionRow } from "../db/schema.ts";
import type { Stores, Tx } from "../db/tx.ts";
import { HubError } from "../protocol/errors.ts";
import { SAVED_VIEW_NAME_MAX, SAVED_VIEW_QUERY_MAX, SAVED_VIEWS_MAX } from "../protocol/limits.ts";
import type { By } from "./sessions.ts";

type Who = Pick<SessionRow, "role" | "project" | "tokenId">;
/** A list by its name: the place it is of, and the parameters of its address. */
export type SavedView = Pick<SavedViewRow, "id" | "place" | "query" | "name">;

/** Somebody who signs in again with the same credential and the same rights is the same person. A link without a token is this hub's own operator. */
const ownerOf = ({ role, project, tokenId }: Who): string => `${tokenId ?? "hub"} ${role} ${project === null ? "*" : `=${project}`}`;

/** What somebody keeps, by name; at most SAVED_VIEWS_MAX. */
export const list = (read: Stores, who: Who): Promise<SavedView[]> => read.savedViews.ofOwner(ownerOf(who), SAVED_VIEWS_MAX);

/**
 * Keeps a list under a name; a view of that name (whatever its case) is replaced.
 * @param view.query parameters of the list's address, without `?`
 * @returns the view, and whether it replaced one
 * @throws HubError protocol_error for a name or filters that are too long, and for one view too many
 */
export async function save(tx: Tx, by: By, who: Who, view: Omit<SavedView, "id">): Promise<{ view: SavedView; replaced: boolean }> {
  const name = nameOf(view.name);
  if (view.query.length > SAVED_VIEW_QUERY_MAX) throw new HubError("protocol_error", `the filters have more than ${SAVED_VIEW_QUERY_MAX} characters`);
  const owner = ownerOf(who);
  const same = await tx.savedViews.findByName(owner, name);
  if (!same && (await tx.savedViews.count(owner)) >= SAVED_VIEWS_MAX)
    throw new HubError("protocol_error", `there are ${SAVED_VIEWS_MAX} saved views already`, {
      hint: "Delete one first, or save under one of their names.",
    });
  const row: SavedViewRow = {
    id: same?.id ?? tx.newId("view"),
    owner,
    tokenId: who.tokenId,
    place: view.place,
    query: view.query,
    name,
    nameFolded: name.toLowerCase(),
    createdAt: same?.createdAt ?? tx.now,
  };
  await (same ? tx.savedViews.update(row) : tx.savedViews.insert(row));
  append(tx, by, who, { type: "view.saved", id: row.id, place: row.place });
  return { view: row, replaced: same !== undefined };
}

/** Gives a view another name. @returns undefined when there is none of this id @throws HubError protocol_error when another view has the name */
export async function rename(tx: Tx, by: By, who: Who, { id, name: typed }: Pick<SavedView, "id" | "name">): Promise<SavedView | undefined> {
  const name = nameOf(typed);
  const row = await own(tx, who, id);
  if (!row) return undefined;
  const same = await tx.savedViews.findByName(row.owner, name);
  if (same && same.id !== id) throw new HubError("protocol_error", "another saved view has this name", { hint: "Choose another name." });
  const renamed = { ...row, name, nameFolded: name.toLowerCase() };
  await tx.savedViews.update(renamed);
  append(tx, by, who, { type: "view.renamed", id, place: row.place });
  return renamed;
}

/** Deletes a view. @returns undefined when there was none of this id */
export async function remove(tx: Tx, by: By, who: Who, id: string): Promise<SavedView | undefined> {
  const row = await own(tx, who, id);
  if (!row) return undefined;
  await tx.savedViews.remove(id);
  append(tx, by, who, { type: "view.removed", id, place: row.place });
  return row;
}

async function own(tx: Tx, who: Who, id: string): Promise<SavedViewRow | undefined> {
  const row = await tx.savedViews.find(id);
  return row?.owner === ownerOf(who) ? row : undefined;
}

function nameOf(typed: string): string {
  const name = typed.trim();
  if (name === "") throw new HubError("protocol_error", "the name is missing");
  if (name.length > SAVED_VIEW_NAME_MAX) throw new HubError("protocol_error", `the name has more than ${SAVED_VIEW_NAME_MAX} characters`);
  return name;
}

function append(tx: Tx, by: By, who: Who, { type, id, place }: { type: string; id: string; place: string }) {
  const audit = { role: by.role, origin: by.origin };
  tx.append({ project: who.project ?? "", topic: "settings", type, subjectId: id, actor: by.actor, data: { place }, audit });
}

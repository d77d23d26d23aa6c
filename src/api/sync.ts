// Sync over HTTP: Runtimes push events; operators look at what was refused.
import * as conflicts from "../hub/conflicts.ts";
import * as sync from "../hub/sync.ts";
import { AcknowledgeBody, ConflictAnswer, ConflictsAnswer, IdParams, OpenQuery } from "../protocol/alerts.ts";
import { SyncAnswer, SyncBody } from "../protocol/sync.ts";
import { byOf, projectOf } from "./credentials.ts";
import { type Route, route } from "./route.ts";

const push = route({
  method: "POST",
  path: "/v1/sync/events",
  operationId: "pushSyncEvents",
  tag: "sync",
  summary: "Stores a Runtime's events, each with its own outcome; refused ones never stop the others.",
  credential: "project",
  body: SyncBody,
  answers: { 200: SyncAnswer },
  errors: ["invalid_runtime_id", "invalid_sync_batch", "sync_batch_too_large"],
  run: async ({ hub, body }) => ({ status: 200, body: await sync.ingest(hub, body) }),
});

const list = route({
  method: "GET",
  path: "/v1/sync/conflicts",
  operationId: "listSyncConflicts",
  tag: "sync",
  summary: "Lists events that sync refused as conflicts, newest first.",
  credential: "viewer",
  query: OpenQuery,
  answers: { 200: ConflictsAnswer },
  errors: [],
  run: async ({ hub, caller, query }) => ({
    status: 200,
    body: await conflicts.list(hub.engine.read, projectOf(caller, query.project), query),
  }),
});

const find = route({
  method: "GET",
  path: "/v1/sync/conflicts/:id",
  operationId: "getSyncConflict",
  tag: "sync",
  summary: "Shows a conflict with both payloads.",
  credential: "viewer",
  params: IdParams,
  answers: { 200: ConflictAnswer },
  errors: ["conflict_not_found"],
  run: async ({ hub, caller, params }) => ({ status: 200, body: { conflict: await conflicts.find(hub.engine.read, params.id, caller.project) } }),
});

const acknowledge = route({
  method: "POST",
  path: "/v1/sync/conflicts/:id/acknowledge",
  operationId: "acknowledgeSyncConflict",
  tag: "sync",
  summary: "Notes what was found about a conflict. A repeat changes nothing.",
  credential: "operator",
  params: IdParams,
  body: AcknowledgeBody,
  answers: { 200: ConflictAnswer },
  errors: ["conflict_not_found"],
  run: async ({ hub, caller, params, body, request }) => {
    const { read, write } = hub.engine;
    const { project } = await conflicts.find(read, params.id, caller.project);
    await write(project, (tx) => conflicts.acknowledge(tx, byOf(caller, request), params.id, body.reason));
    return { status: 200, body: { conflict: await conflicts.find(read, params.id, project) } };
  },
});

export const syncRoutes: readonly Route[] = [push, list, find, acknowledge];

// Promotion of journal entries and the improvements drawn from them.
import { Type } from "@sinclair/typebox";
import { improvements } from "../hub/improvements.ts";
import * as journal from "../hub/journal.ts";
import { HubError } from "../protocol/errors.ts";
import { PromotionRequest } from "../protocol/journal.ts";
import { requireProject } from "./credentials.ts";
import { route } from "./route.ts";

const promoteJournal = route({
  method: "POST",
  path: "/v1/journal/:entryId/promotion",
  operationId: "promoteJournal",
  tag: "journal",
  summary: "Approves, rejects or quarantines a candidate, once.",
  credential: "admin",
  params: Type.Object({ entryId: Type.String() }),
  body: PromotionRequest,
  answers: { 200: Type.Object({ entry: Type.Unknown() }) },
  errors: ["journal_not_found", "invalid_journal_promotion", "journal_promotion_invalid"],
  run: async ({ hub, caller, params, body }) => {
    const row = await hub.engine.read.journal.find(params.entryId);
    if (!row) throw new HubError("journal_not_found", `there is no journal entry ${params.entryId}`);
    requireProject(caller, row.project);
    const entry = await hub.engine.write(row.project, (tx) =>
      journal.promote(tx, params.entryId, body, { actor: caller.actor, role: caller.role, origin: "api" }),
    );
    return { status: 200, body: { entry } };
  },
});

const getImprovements = route({
  method: "GET",
  path: "/v1/improvements",
  operationId: "getImprovements",
  tag: "journal",
  summary: "What the journal of the caller's project teaches, ranked.",
  credential: "agent",
  answers: { 200: Type.Object({ reports: Type.Array(Type.Unknown()), signals: Type.Array(Type.Unknown()), entries: Type.Integer() }) },
  errors: [],
  run: async ({ hub, caller }) => ({ status: 200, body: await improvements(hub.engine.read, caller.project) }),
});

export const journalRoutes = [promoteJournal, getImprovements];

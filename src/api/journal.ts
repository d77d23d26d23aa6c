// Promotion of journal entries and the improvements drawn from them.
import { Type } from "@sinclair/typebox";
import { improvements } from "../hub/improvements.ts";
import * as journal from "../hub/journal.ts";
import { HubError } from "../protocol/errors.ts";
import { integer, oneOf, optionalText } from "../protocol/fields.ts";
import { CATEGORIES, PromotionRequest } from "../protocol/journal.ts";
import { projectOf, requireProject } from "./credentials.ts";
import { route } from "./route.ts";

const END = "journal_~"; // sorts after every id

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

const listJournal = route({
  method: "GET",
  path: "/v1/journal",
  operationId: "listJournal",
  tag: "journal",
  summary: "Journal entries of a project, newest first.",
  credential: "agent-or-viewer",
  query: Type.Object({
    project: optionalText(128),
    category: Type.Optional(oneOf(CATEGORIES, { code: "invalid_journal_category" })),
    after: optionalText(64, { description: "next of the page before" }),
    limit: integer({ default: 50, min: 1, max: 200 }),
  }),
  answers: { 200: Type.Object({ entries: Type.Array(Type.Unknown()), next: Type.Optional(Type.String()) }) },
  errors: ["invalid_journal_category"],
  run: async ({ hub, caller, query }) => {
    const { category, after = END, limit } = query;
    const project = projectOf(caller, query.project);
    const { journal: entries } = hub.engine.read;
    const rows = await (category ? entries.ofCategory(project, category, after, limit + 1) : entries.ofProject(project, after, limit + 1));
    const page = rows.slice(0, limit);
    return { status: 200, body: { entries: page.map(journal.entryOf), ...(rows.length > page.length && { next: page.at(-1)!.id }) } };
  },
});

const getImprovements = route({
  method: "GET",
  path: "/v1/improvements",
  operationId: "getImprovements",
  tag: "journal",
  summary: "What the journal of a project teaches, ranked.",
  credential: "agent-or-viewer",
  query: Type.Object({ project: optionalText(128, { description: "For tokens; an agent asks for its own" }) }),
  answers: { 200: Type.Object({ reports: Type.Array(Type.Unknown()), signals: Type.Array(Type.Unknown()), entries: Type.Integer() }) },
  errors: [],
  run: async ({ hub, caller, query }) => ({ status: 200, body: await improvements(hub.engine.read, projectOf(caller, query.project)) }),
});

export const journalRoutes = [promoteJournal, listJournal, getImprovements];

// Context routes: packets, recall, temporal state, episodes, lineage and the wiki. Agents ask for their own project only.
import { type TObject, Type } from "@sinclair/typebox";
import { packetOf } from "../hub/context/packets.ts";
import { episodes, explain, recall } from "../hub/context/recall.ts";
import * as state from "../hub/context/state.ts";
import { compileWiki } from "../hub/context/wiki.ts";
import type { Hub } from "../hub/hub.ts";
import {
  EpisodeRequest,
  ExplainRequest,
  PacketRequest,
  PromoteRequest,
  ProposeRequest,
  RecallRequest,
  StateRequest,
  WikiRequest,
} from "../protocol/context.ts";
import { HubError } from "../protocol/errors.ts";
import { integer, optionalText, text } from "../protocol/fields.ts";
import type { AgentCaller, TokenCaller } from "./credentials.ts";
import { byOf, projectOf, requireProject } from "./credentials.ts";
import { route } from "./route.ts";

type Caller = AgentCaller | TokenCaller;
const ENTRIES_MAX = 1_000;

/** An agent's project must be the one it asks for; a token's project likewise. */
function requireOwn(caller: Caller, project: string) {
  if (caller.kind === "token") return requireProject(caller, project);
  if (caller.project !== project) throw new HubError("context_isolation_violation", "an agent may ask only for its own project");
}

const poolOf = (hub: Hub, project: string) => hub.pools.get(hub.engine.read, project);

/** The routes that read: they differ in name, fields and the one call into the rules. */
const reading = <B extends TObject>(
  name: string,
  operationId: string,
  summary: string,
  body: B,
  answer: (hub: Hub, fields: any) => Promise<unknown>,
  errors: readonly any[] = [],
) =>
  route({
    method: "POST",
    path: `/v1/context/${name}`,
    operationId,
    tag: "context",
    summary,
    credential: "agent-or-admin",
    body,
    answers: { 200: Type.Unknown() },
    errors: ["context_isolation_violation", ...errors],
    run: async ({ hub, caller, body: fields }) => {
      requireOwn(caller as Caller, (fields as unknown as { project: string }).project);
      const found = await answer(hub, fields);
      hub.metrics.add("context_requests");
      return { status: 200, body: found };
    },
  });

const getContext = reading(
  "get",
  "getContext",
  "A packet of context for a role and task, within a token budget.",
  PacketRequest,
  async (hub, fields: PacketRequest) => packetOf(await poolOf(hub, fields.project), fields),
  ["invalid_context_request", "invalid_context_field"],
);
const recallContext = reading(
  "recall",
  "recallContext",
  "Finds items by words; metadata only.",
  RecallRequest,
  async (hub, fields: RecallRequest) => recall(await poolOf(hub, fields.project), fields),
  ["invalid_context_request", "invalid_context_field"],
);
const getState = reading(
  "state",
  "getState",
  "The value of a state key, now or at a time.",
  StateRequest,
  async (hub, fields: StateRequest) => ({ state: await state.stateAt(hub.engine.read, fields, hub.clock()), key: fields.key }),
  ["invalid_state_request", "state_contradiction"],
);
const getEpisodes = reading(
  "episode",
  "getEpisodes",
  "What happened: errors, lessons, observations and experiments.",
  EpisodeRequest,
  async (hub, fields: { project: string; workflowRunId?: string }) => {
    const ofRun =
      fields.workflowRunId === undefined
        ? undefined
        : new Set((await hub.engine.read.journal.ofRun(fields.workflowRunId, ENTRIES_MAX)).map(({ id }) => `journal_${id}`));
    return { episodes: episodes(await poolOf(hub, fields.project), ofRun) };
  },
);
const explainContext = reading(
  "explain",
  "explainContext",
  "Where an item comes from.",
  ExplainRequest,
  async (hub, fields: { project: string; id: string }) => explain(await poolOf(hub, fields.project), fields.id),
);
const compileContextWiki = reading(
  "wiki/compile",
  "compileWiki",
  "The project's wiki pages and what is wrong with them.",
  WikiRequest,
  async (hub, fields: { project: string }) => compileWiki(await poolOf(hub, fields.project), fields.project, hub.clock()),
);

const proposeState = route({
  method: "POST",
  path: "/v1/context/state/propose",
  operationId: "proposeState",
  tag: "context",
  summary: "Proposes a value for a state key, with evidence.",
  credential: "agent-or-admin-configured",
  body: ProposeRequest,
  answers: { 201: Type.Object({ proposalId: Type.String() }) },
  errors: [
    "context_isolation_violation",
    "invalid_context_request",
    "state_promotion_invalid",
    "invalid_context_field",
    "state_proposer_mismatch",
    "context_authority_violation",
  ],
  run: async ({ hub, caller, body, request }) => {
    const speaker = caller as Caller;
    requireOwn(speaker, body.project);
    const name = speaker.kind === "agent" ? speaker.agent.id : request.headers.get("x-kxm-caller-id")?.trim() || "kxm-admin";
    const origin = { caller: name, actor: speaker.actor, sourceType: speaker.kind === "agent" ? ("peer" as const) : ("human" as const) };
    const proposalId = await hub.engine.write(body.project, (tx) => state.propose(tx, origin, body));
    hub.metrics.add("context_requests");
    return { status: 201, body: { proposalId } };
  },
});

const promoteState = route({
  method: "POST",
  path: "/v1/context/state/promote",
  operationId: "promoteState",
  tag: "context",
  summary: "Makes a proposal the key's current value.",
  credential: "admin-configured",
  body: PromoteRequest,
  answers: { 200: Type.Object({ state: Type.Unknown() }) },
  errors: ["state_proposal_not_found", "state_proposal_not_promotable", "state_promotion_invalid"],
  run: async ({ hub, caller, body, request }) => {
    requireProject(caller, body.project);
    const promoter = body.promotedBy ?? body.caller ?? (request.headers.get("x-kxm-caller-id")?.trim() || "kxm-admin");
    const promoted = await hub.engine.write(body.project, (tx) =>
      state.promote(tx, { promoter, actor: caller.actor, role: caller.role, origin: "api" }, body),
    );
    hub.metrics.add("context_requests");
    return { status: 200, body: { state: promoted } };
  },
});

const listState = route({
  method: "GET",
  path: "/v1/context/state",
  operationId: "listState",
  tag: "context",
  summary: "Current values by key with open proposals; with key, its whole history.",
  credential: "agent-or-viewer",
  query: Type.Object({
    project: optionalText(200),
    key: optionalText(200),
    after: optionalText(200, { description: "A key: those after it" }),
    limit: integer({ default: 50, min: 1, max: 200 }),
  }),
  answers: {
    200: Type.Object({
      current: Type.Array(Type.Unknown()),
      proposals: Type.Array(Type.Unknown()),
      history: Type.Optional(Type.Array(Type.Unknown())),
    }),
  },
  errors: [],
  run: async ({ hub, caller, query }) => {
    const project = projectOf(caller as Caller, query.project);
    const { context } = hub.engine.read;
    const proposals = (await context.proposals(project, query.limit)).map(state.itemOf);
    if (query.key !== undefined) {
      const history = await state.history(hub.engine.read, project, query.key, query.limit);
      return {
        status: 200,
        body: {
          current: history.filter(({ status }) => status === "current"),
          proposals: proposals.filter(({ stateKey }) => stateKey === query.key),
          history,
        },
      };
    }
    return { status: 200, body: { current: (await context.currentAfter(project, query.after ?? "", query.limit)).map(state.itemOf), proposals } };
  },
});

const rejectState = route({
  method: "POST",
  path: "/v1/context/state/reject",
  operationId: "rejectState",
  tag: "context",
  summary: "Refuses a proposal, with a reason.",
  credential: "admin-configured",
  body: Type.Object({ proposalId: text(128), project: text(200), reason: text(1000) }),
  answers: { 200: Type.Object({ state: Type.Unknown() }) },
  errors: ["state_proposal_not_found", "state_proposal_not_promotable"],
  run: async ({ hub, caller, body, request }) => {
    requireProject(caller, body.project);
    const rejected = await hub.engine.write(body.project, (tx) => state.reject(tx, { ...byOf(caller, request), reason: body.reason }, body));
    return { status: 200, body: { state: rejected } };
  },
});

export const contextRoutes = [
  getContext,
  recallContext,
  getState,
  getEpisodes,
  explainContext,
  compileContextWiki,
  proposeState,
  promoteState,
  listState,
  rejectState,
];

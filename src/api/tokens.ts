// Tokens: make, list, revoke.
import type { TokenRow } from "../db/schema.ts";
import * as tokens from "../hub/tokens.ts";
import { HubError } from "../protocol/errors.ts";
import { newSecret } from "../protocol/ids.ts";
import { iso, isoOrNone } from "../protocol/time.ts";
import { CreateTokenAnswer, CreateTokenBody, type Token, TokenAnswer, TokenParams, TokensAnswer } from "../protocol/tokens.ts";
import { byOf } from "./credentials.ts";
import { route } from "./route.ts";

const LIST_MAX = 1_000;

const shown = (row: TokenRow): Token => ({
  id: row.id,
  name: row.name,
  scope: row.scope,
  project: row.project ?? undefined,
  agent: row.agentName ?? undefined,
  prefix: row.prefix,
  createdAt: iso(row.createdAt),
  createdBy: row.createdBy,
  lastUsedAt: isoOrNone(row.lastUsedAt),
  expiresAt: isoOrNone(row.expiresAt),
  revokedAt: isoOrNone(row.revokedAt),
  revokedBy: row.revokedBy ?? undefined,
});

const createToken = route({
  method: "POST",
  path: "/v1/tokens",
  operationId: "createToken",
  tag: "tokens",
  summary: "Makes a token and shows its secret, this once.",
  credential: "admin-configured",
  body: CreateTokenBody,
  answers: { 201: CreateTokenAnswer },
  errors: [],
  run: async (call) => {
    const { hub, body, caller } = call;
    if (body.scope === "project" && body.project === undefined) throw new HubError("protocol_error", "a token of scope project needs a project");
    if (body.agent !== undefined && body.scope !== "project")
      throw new HubError("protocol_error", "only a token of scope project speaks for one agent");
    if (caller.project !== null && caller.project !== body.project) throw new HubError("role_forbidden", "this token belongs to another project");
    const secret = newSecret(body.scope === "project" ? "kxp" : "kxm");
    const { name, scope, project = null, agent = null, expiresInMs } = body;
    const row = await hub.engine.write(project ?? "", (tx) =>
      tokens.create(tx, byOf(call.caller, call.request), {
        secret,
        name,
        scope,
        project,
        agentName: agent,
        expiresAt: expiresInMs === undefined ? null : tx.now + expiresInMs,
      }),
    );
    return { status: 201, body: { token: shown(row), secret } };
  },
});

const listTokens = route({
  method: "GET",
  path: "/v1/tokens",
  operationId: "listTokens",
  tag: "tokens",
  summary: "Lists the tokens, also those that have ended. Secrets are never shown again.",
  credential: "admin-configured",
  answers: { 200: TokensAnswer },
  errors: [],
  run: async ({ hub, caller }) => {
    const rows = await hub.engine.read.tokens.list(LIST_MAX);
    return { status: 200, body: { tokens: rows.filter(({ project }) => caller.project === null || project === caller.project).map(shown) } };
  },
});

const revokeToken = route({
  method: "DELETE",
  path: "/v1/tokens/:id",
  operationId: "revokeToken",
  tag: "tokens",
  summary: "Ends a token and every dashboard session that began with it.",
  credential: "admin-configured",
  params: TokenParams,
  answers: { 200: TokenAnswer },
  errors: ["token_not_found"],
  run: async (call) => {
    const { hub, params, caller } = call;
    const known = await hub.engine.read.tokens.find(params.id);
    if (!known || (caller.project !== null && known.project !== caller.project))
      throw new HubError("token_not_found", `there is no token ${params.id}`);
    const row = await hub.engine.write(known.project ?? "", (tx) => tokens.revoke(tx, byOf(call.caller, call.request), params.id));
    return { status: 200, body: { token: shown(row) } };
  },
});

export const tokenRoutes = [createToken, listTokens, revokeToken];

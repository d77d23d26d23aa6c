// Who is calling: bearer tokens and agent keys, checked on committed state before any write. Secrets are compared as SHA-256.
import type { AgentRow } from "../db/schema.ts";
import { createRefusals, type Refusals } from "../http/refusals.ts";
import * as agents from "../hub/agents.ts";
import type { Hub } from "../hub/hub.ts";
import { describeError } from "../hub/log.ts";
import * as tokens from "../hub/tokens.ts";
import { VISIT_HEADER } from "../protocol/agents.ts";
import { sha256 } from "../protocol/canonical.ts";
import { HubError } from "../protocol/errors.ts";

/** An agent, by its key; `token` is what opened its project. */
export type AgentCaller = { kind: "agent"; agent: AgentRow; project: string; actor: string; token: TokenCaller };
/** Somebody with a token, or on an open loopback hub nobody in particular. `project` null = every project. */
export type TokenCaller = {
  kind: "token";
  role: "admin" | "operator" | "viewer" | "project";
  project: string | null;
  actor: string;
  /** The one agent the token speaks for, when it was made for one. */
  agentName?: string | null;
};

/** Rules of one route; see the wire contract's table of credentials. */
export type Credential =
  | "none" // no check at all
  | "project" // the token of the project in the body, or in the query of a GET
  | "agent" // agent id and key in headers, then the project's token
  | "agent-or-admin" // agent when x-kxm-agent-id is sent, else admin
  | "agent-or-admin-configured" // agent when x-kxm-agent-id is sent, else admin-configured
  | "agent-or-operator" // agent when x-kxm-agent-id is sent, else operator
  | "agent-or-viewer" // agent when x-kxm-agent-id is sent, else viewer
  | "admin" // open on a loopback hub without an admin token
  | "admin-configured" // admin; 503 while the hub has no admin token
  | "operator" // may act: operator or admin token
  | "viewer"; // may read: viewer, operator or admin token

const invalidAuth = () =>
  new HubError("invalid_auth", "the bearer token is missing or not valid here", { operation: "other", nextAction: "check_project_token" });

export interface Credentials {
  agent(request: Request, id?: string): Promise<AgentCaller>;
  project(request: Request, project: string): Promise<TokenCaller>;
  role(request: Request, needed: "admin" | "admin-configured" | "operator" | "viewer"): Promise<TokenCaller>;
}

const RANK = { project: 0, viewer: 1, operator: 2, admin: 3 } as const;

/** Counts what one hub refuses; its API and its sign-in page share it. */
export function refusalsOf(hub: Hub): Refusals {
  const refusals = createRefusals(hub.clock, () => hub.metrics.add("credentials_refused"));
  hub.sweepers.add(refusals.sweep);
  return refusals;
}

/** The checks over one hub. */
export function createCredentials(hub: Hub, refusals = refusalsOf(hub)): Credentials {
  const { settings, engine } = hub;
  const bearer = (request: Request) => /^Bearer ([^\s,]+)$/.exec(request.headers.get("authorization") ?? "")?.[1];
  const fail = (claimed: string, error: HubError): never => {
    refusals.count(claimed);
    throw error;
  };

  /** The token behind a secret; notes that it was used. */
  async function identifyToken(secret: string) {
    const token = await tokens.identify(engine.read, secret, hub.clock());
    if (token) hub.seenTokens.saw(token.id, hub.clock());
    return token;
  }

  async function checkProject(request: Request, project: string): Promise<TokenCaller> {
    const own = settings.projectTokenHashes.get(project);
    const expected = own ?? settings.adminTokenHash;
    const secret = bearer(request);
    if (secret !== undefined && expected !== undefined && sha256(secret) === expected) {
      return { kind: "token", role: own ? "project" : "admin", project: own ? project : null, actor: own ? `project:${project}` : "admin" };
    }
    const stored = secret === undefined ? undefined : await identifyToken(secret);
    if (stored && (stored.scope === "project" || (!own && stored.scope !== "viewer")) && (stored.project ?? project) === project) {
      return { kind: "token", role: stored.scope, project: stored.project, actor: stored.id, agentName: stored.agentName };
    }
    if (expected === undefined && request.headers.get("authorization") === null && !(await hub.known.hasProjectToken(project))) {
      return { kind: "token", role: "project", project, actor: `project:${project}` };
    }
    return fail(`project:${project}`, invalidAuth());
  }

  return {
    async agent(request, id) {
      const claimed = id ?? request.headers.get("x-kxm-agent-id") ?? "";
      const agent = await agents
        .authenticate(hub.known, claimed, request.headers.get("x-kxm-agent-key") ?? "")
        .catch((error) => fail(`agent:${claimed}`, error));
      hub.presence.saw(agent.id, hub.clock(), agent.project, request.headers.get(VISIT_HEADER) === "1");
      if (agent.online === 0) {
        await engine // before the route, so that an agent finds itself among those online; a store in trouble does not stop it from reading
          .write(agent.project, (tx) => agents.comeOnline(tx, agent.id))
          .catch((error) => hub.log({ event: "presence_write_failed", level: "warn", agentId: agent.id, error: describeError(error) }));
      }
      const token = await checkProject(request, agent.project);
      requireAgent(token, agent.name);
      return { kind: "agent", agent: { ...agent, online: 1 }, project: agent.project, actor: agent.id, token };
    },
    project: checkProject,
    async role(request, needed) {
      const { adminTokenHash, localAdminTokenHash, loopback } = settings;
      const secret = bearer(request);
      const hash = secret === undefined ? undefined : sha256(secret);
      if (hash !== undefined && (hash === adminTokenHash || hash === localAdminTokenHash))
        return { kind: "token", role: "admin", project: null, actor: "admin" };
      const stored = secret === undefined ? undefined : await identifyToken(secret);
      const least = needed === "admin-configured" ? "admin" : needed;
      if (stored && RANK[stored.scope] >= RANK[least]) return { kind: "token", role: stored.scope, project: stored.project, actor: stored.id };
      if (stored && stored.scope !== "project") throw new HubError("role_forbidden", `this needs the role ${least}`);
      if (needed === "admin" && adminTokenHash === undefined && loopback && request.headers.get("authorization") === null) {
        return { kind: "token", role: "admin", project: null, actor: "admin" };
      }
      if (adminTokenHash === undefined && localAdminTokenHash === undefined && needed !== "admin") {
        throw new HubError("admin_auth_not_configured", "this hub has no admin token");
      }
      return fail("admin", invalidAuth());
    },
  };
}

const ORIGIN = /^[a-z][a-z0-9-]{0,31}$/;

/** Who acts, as audit notes name them. A client may name itself (x-kxm-client: cli); what it says proves nothing and decides nothing. */
export function byOf({ actor, role }: TokenCaller, request: Request): { actor: string; role: string; origin: string } {
  const named = request.headers.get("x-kxm-client") ?? "";
  return { actor, role, origin: ORIGIN.test(named) ? named : "api" };
}

/**
 * The project a read is about: an agent's own, or the one a token asks for (a project-scoped token may leave it out).
 * @throws HubError protocol_error when no project is named, role_forbidden for another project's
 */
export function projectOf(caller: AgentCaller | TokenCaller, asked: string | undefined): string {
  const project = caller.kind === "agent" ? caller.project : (asked ?? caller.project);
  if (project === null) throw new HubError("protocol_error", "project is required");
  if (caller.kind === "token") requireProject(caller, project);
  return project;
}

/** Refuses a token that was made for one agent to anybody else. @throws HubError role_forbidden */
export function requireAgent({ agentName }: TokenCaller, name: string | undefined): void {
  if (agentName && agentName !== name) throw new HubError("role_forbidden", `this token speaks for the agent ${agentName} alone`);
}

/** Refuses a project-scoped token another project. @throws HubError role_forbidden */
export function requireProject(caller: TokenCaller, project: string): void {
  if (caller.project !== null && caller.project !== project) throw new HubError("role_forbidden", "this token belongs to another project");
}

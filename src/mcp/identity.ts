// Which agent calls: by its own id and key, or by a name that the project's token may use. A named agent exists while it calls; when it falls
// silent it goes offline by itself, so nothing stays behind.
import type { AgentRow } from "../db/schema.ts";
import * as agents from "../hub/agents.ts";
import type { Hub } from "../hub/hub.ts";
import { sha256 } from "../protocol/canonical.ts";
import { HubError } from "../protocol/errors.ts";
import { newSecret } from "../protocol/ids.ts";

/** The checks of the API, given by the composition root. */
export interface Credentials {
  agent(request: Request): Promise<{ agent: AgentRow }>;
  project(request: Request, project: string): Promise<{ agentName?: string | null }>;
}

/** The label of agents that are named by header or token and hold no key of their own. */
const MCP_HOST = "mcp";
const DEFAULT_PROJECT = "default";
const NAME_MAX = 64;

/**
 * @param newcomer called before an agent is registered that nobody knows yet; throws when there are too many
 * @throws HubError invalid_agent_identity, invalid_auth, duplicate_agent_name, protocol_error
 */
export async function identify(hub: Hub, credentials: Credentials, request: Request, newcomer: () => void): Promise<AgentRow> {
  if (request.headers.get("x-kxm-agent-id")) return (await credentials.agent(request)).agent;
  const project = request.headers.get("x-kxm-project")?.trim() || DEFAULT_PROJECT;
  if (project.length > 128) throw new HubError("protocol_error", "x-kxm-project exceeds 128 characters");
  const bound = await credentials.project(request, project);
  const name = bound.agentName ?? decoded(request.headers.get("x-kxm-agent-name"));
  if (name === undefined || name === "" || name.length > NAME_MAX) {
    throw new HubError("invalid_agent_identity", "the request names no agent", {
      hint: "Send x-kxm-agent-name, or use a token made with kxm token create --agent NAME; kxm connect sets this up.",
    });
  }
  return present(hub, { project, name, program: request.headers.get("user-agent") ?? undefined, newcomer });
}

/** Headers carry Latin-1; names with other letters come percent-encoded. */
function decoded(value: string | null): string | undefined {
  if (value === null) return undefined;
  let name: string;
  try {
    name = decodeURIComponent(value).trim();
  } catch {
    throw new HubError("protocol_error", "x-kxm-agent-name has a malformed percent escape");
  }
  if (name.includes("\0")) throw new HubError("protocol_error", "x-kxm-agent-name holds a NUL character");
  return name;
}

/** The named agent, online. Somebody who holds a key of this name is never impersonated. */
async function present(
  hub: Hub,
  { project, name, program, newcomer }: { project: string; name: string; program: string | undefined; newcomer: () => void },
): Promise<AgentRow> {
  const known = await hub.engine.read.agents.findByName(project, name);
  if (!known) newcomer();
  const now = hub.clock();
  if (known?.host === MCP_HOST && agents.presenceOf(hub, known, now) === "online") {
    hub.presence.saw(known.id, now, project);
    return known;
  }
  const keyHash = sha256(newSecret("kxa")); // nobody ever holds this key
  const request = { project, name, purpose: known?.purpose ?? "Connected over MCP", host: MCP_HOST, model: program?.slice(0, 128) };
  const agent = await hub.engine.write(project, async (tx) => {
    const meanwhile = await tx.agents.findByName(project, name); // a request at the same time may have brought it online
    if (meanwhile?.host === MCP_HOST && agents.presenceOf(hub, meanwhile, tx.now) === "online") return meanwhile;
    return (await agents.register(tx, hub, request, keyHash)).agent;
  });
  hub.metrics.add("registrations");
  hub.presence.saw(agent.id, now, project);
  return agent;
}

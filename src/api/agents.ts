// Agents: register or resume, see each other, give signs of life, sign off.
import * as agents from "../hub/agents.ts";
import { AgentAnswer, AgentParams, AgentsAnswer, AgentsQuery, RegisterAnswer, RegisterBody } from "../protocol/agents.ts";
import { sha256 } from "../protocol/canonical.ts";
import { newSecret } from "../protocol/ids.ts";
import { type Route, route } from "./route.ts";

const register = route({
  method: "POST",
  path: "/v1/agents/register",
  operationId: "registerAgent",
  tag: "agents",
  summary: "Registers an agent, or resumes the offline one of this name with a new key.",
  credential: "project",
  namesAgent: true,
  body: RegisterBody,
  answers: { 200: RegisterAnswer, 201: RegisterAnswer },
  errors: ["duplicate_agent_name"],
  run: async ({ hub, body }) => {
    const agentKey = newSecret("kxa");
    const keyHash = sha256(agentKey);
    const { agent, resumed } = await hub.engine.write(body.project, (tx) => agents.register(tx, hub, body, keyHash));
    hub.metrics.add("registrations");
    return { status: resumed ? 200 : 201, body: { agent: agents.toAgent(hub, agent), agentKey, resumed } };
  },
});

const list = route({
  method: "GET",
  path: "/v1/agents",
  operationId: "listAgents",
  tag: "agents",
  summary: "Lists the agents of the caller's project, itself included.",
  credential: "agent",
  query: AgentsQuery,
  answers: { 200: AgentsAnswer },
  errors: [],
  run: async ({ hub, caller, query }) => ({ status: 200, body: { agents: await agents.list(hub, caller.project, query) } }),
});

const heartbeat = route({
  method: "POST",
  path: "/v1/agents/:id/heartbeat",
  operationId: "sendHeartbeat",
  tag: "agents",
  summary: "Gives a sign of life and renews the lease. Every other request of the agent does the same.",
  credential: "agent",
  agentIdFrom: { path: "id" },
  params: AgentParams,
  answers: { 200: AgentAnswer },
  errors: [],
  run: ({ hub, caller }) => ({ status: 200, body: { agent: agents.toAgent(hub, caller.agent) } }),
});

const signOff = route({
  method: "DELETE",
  path: "/v1/agents/:id",
  operationId: "signOffAgent",
  tag: "agents",
  summary: "Signs the agent off and ends its streams. The key stays valid: its next request brings it back.",
  credential: "agent",
  agentIdFrom: { path: "id" },
  params: AgentParams,
  answers: { 204: null },
  errors: [],
  run: async ({ hub, caller }) => {
    await hub.engine.write(caller.project, (tx) => agents.signOff(tx, caller.agent.id));
    hub.presence.forget(caller.agent.id);
    return { status: 204 };
  },
});

export const agentRoutes: readonly Route[] = [register, list, heartbeat, signOff];

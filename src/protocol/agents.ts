// Agents on the wire: who is there, what registering takes, and the presence the hub derives by its own clock. The key is never part of a record.
import { type Static, Type } from "@sinclair/typebox";
import { flag, oneOf, optionalText, text } from "./fields.ts";

/** The purpose of an agent that names none. */
export const PURPOSE_DEFAULT = "General-purpose Pi agent";
/** `1` in this header: the caller makes this call and goes, so that its silence afterwards is no loss. */
export const VISIT_HEADER = "x-kxm-visit";
/** What `presence` says: `stale` is silent beyond its lease and not yet swept. */
export const PRESENCES = ["online", "stale", "offline"] as const;
export type PresenceWord = (typeof PRESENCES)[number];

const time = (description: string) => Type.String({ description });

/** One agent as others see it. */
export const Agent = Type.Object({
  id: Type.String(),
  name: Type.String({ description: "Unique in its project, ignoring case." }),
  purpose: Type.String(),
  project: Type.String(),
  model: Type.Optional(Type.String()),
  host: Type.Optional(Type.String({ description: "A label for the machine, nothing more." })),
  connectedAt: time("When it registered last."),
  lastSeenAt: time("Its last sign of life, by the hub's clock."),
  online: Type.Boolean({ description: "False once it signed off or was silent for longer than its lease." }),
  leaseExpiresAt: time("When it counts as stale without another sign of life."),
  presence: oneOf(PRESENCES),
});
export type Agent = Static<typeof Agent>;

/** Body of POST /v1/agents/register. */
export const RegisterBody = Type.Object({
  name: text(64, { description: "Unique in the project, ignoring case. An offline agent of this name is resumed with its id." }),
  purpose: Type.Optional(Type.String({ minLength: 1, maxLength: 256, default: PURPOSE_DEFAULT, description: "What others may ask of this agent." })),
  project: text(128, { description: "The project whose agents can see each other." }),
  model: optionalText(128, { description: "The model behind the agent." }),
  host: optionalText(64, { description: "A label for the machine." }),
});
export type RegisterBody = Static<typeof RegisterBody>;

/** Its answer. `agentKey` is shown this once; every registration replaces the key before it. */
export const RegisterAnswer = Type.Object({
  agent: Agent,
  agentKey: Type.String({ description: "Send it as x-kxm-agent-key with every request. Shown once, stored as a hash." }),
  resumed: Type.Boolean({ description: "True when the agent existed and kept its id." }),
});
export type RegisterAnswer = Static<typeof RegisterAnswer>;

/** Query of GET /v1/agents. */
export const AgentsQuery = Type.Object({ includeOffline: flag({ description: "Also agents that signed off or fell silent." }) });
export const AgentsAnswer = Type.Object({ agents: Type.Array(Agent) });
export const AgentAnswer = Type.Object({ agent: Agent });
export const AgentParams = Type.Object({ id: Type.String({ description: "Agent id." }) });

// A hub with one workflow definition, its agents registered, and signed deliveries.

import type { HubSettings } from "../../src/hub/settings.ts";
import { parseDefinitions } from "../../src/hub/workflows/definitions.ts";
import { signBody, signEnvelope } from "../../src/protocol/webhook-signature.ts";
import type { OpenWorld } from "./engines.ts";
import { openFleet } from "./fleet.ts";
import { type HubWorld, openHubWorld } from "./hub.ts";

export const SECRET = "0123456789abcdef-start";
export const SIGNAL_SECRET = "0123456789abcdef-signal";

/** Two stages: one with plain evidence, one that two of three peers must prove; a failed review leads back. */
export const DEFINITION = {
  id: "release",
  project: "shop",
  target: "lead",
  secret: SECRET,
  signalSecret: SIGNAL_SECRET,
  promptTemplate: "Release {{ issue.key }} {{ issue }}",
  maxTransitions: 3,
  stages: [
    { id: "build", label: "Build", instructions: "Build it", requiredEvidence: ["Test  Log"], maxAttempts: 2, area: "gates" },
    {
      id: "review",
      instructions: "Have it reviewed",
      requiredEvidence: ["review"],
      on: { rework: "build" },
      evidencePolicies: { review: { kind: "peer-reply", minProducers: 2, eligibleAgents: ["ann", "bob", "cid"], degradation: { minProducers: 1 } } },
    },
  ],
};

export type Agent = { id: string; name: string; headers: Record<string, string> };
export type WorkflowWorld = HubWorld & Workflows;
/** What a world with workflows can do beside the rest. */
export interface Workflows {
  agents: Record<"lead" | "ann" | "bob" | "cid" | "eve", Agent>;
  /** A signed start. `form` body = the providers' signature. */
  start(
    payload: unknown,
    options?: { deliveryId?: string; form?: "envelope" | "body"; definitionId?: string; headers?: Record<string, string> },
  ): ReturnType<HubWorld["call"]>;
  signal(
    runId: string,
    key: string,
    payload: unknown,
    options?: { deliveryId?: string; secret?: string; definitionId?: string },
  ): ReturnType<HubWorld["call"]>;
  as(name: keyof Workflows["agents"], method: string, path: string, body?: unknown): ReturnType<HubWorld["call"]>;
}

let deliveries = 0;

/** The same over either engine. */
async function overEngine(open: OpenWorld, settings: Partial<HubSettings>): Promise<HubWorld> {
  const fleet = await openFleet(open, settings);
  return {
    hub: fleet.hub,
    clock: fleet.clock,
    location: fleet.world.location,
    fetch: fleet.fetch,
    async call(method, path, { body, headers = {} } = {}) {
      const sent = body === undefined ? {} : { body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body) };
      const typed = method === "POST" ? { "content-type": "application/json" } : {};
      const response = await fleet.fetch(
        new Request(`http://127.0.0.1:7331${path}`, { method, headers: { ...typed, ...headers }, ...sent } as RequestInit),
      );
      const text = await response.text();
      const isJson = response.headers.get("content-type")?.startsWith("application/json");
      return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers };
    },
    [Symbol.asyncDispose]: () => fleet[Symbol.asyncDispose](),
  };
}

/** @param change replaces members of DEFINITION */
export async function openWorkflowWorld(change: object = {}, settings: Partial<HubSettings> = {}, open?: OpenWorld): Promise<WorkflowWorld> {
  return withWorkflows(open ? await overEngine(open, settings) : await openHubWorld(settings), change);
}

/** Gives a world the definitions, their agents and signed deliveries. @param change replaces members of DEFINITION */
export async function withWorkflows<W extends HubWorld>(world: W, change: object = {}): Promise<W & Workflows> {
  const { definitions, problems } = parseDefinitions(
    JSON.stringify([
      { ...DEFINITION, ...change },
      { ...DEFINITION, id: "other", source: "github" },
    ]),
    {},
  );
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
  world.hub.definitions = definitions;
  const agents = {} as Workflows["agents"];
  for (const name of ["lead", "ann", "bob", "cid", "eve"] as const) {
    const { body } = await world.call("POST", "/v1/agents/register", {
      body: { name, purpose: "test", project: name === "eve" ? "elsewhere" : "shop" },
    });
    agents[name] = { id: body.agent.id, name, headers: { "x-kxm-agent-id": body.agent.id, "x-kxm-agent-key": body.agentKey } };
  }
  const post = (path: string, body: Uint8Array, headers: Record<string, string>) => world.call("POST", path, { body, headers });
  const bytes = (payload: unknown) => new TextEncoder().encode(typeof payload === "string" ? payload : JSON.stringify(payload));
  return Object.assign(world, {
    agents,
    start: (
      payload: unknown,
      { deliveryId = `d-${++deliveries}`, form = "envelope", definitionId = "release", headers = {} }: Parameters<Workflows["start"]>[1] = {},
    ) => {
      const body = bytes(payload);
      const timestamp = String(Math.floor(world.clock.now / 1000));
      const envelope = { kind: "start" as const, timestamp, deliveryId, definitionId, runId: "", signalKey: "" };
      const signed =
        form === "body"
          ? { "x-hub-signature-256": signBody(SECRET, body), "x-github-delivery": deliveryId }
          : { "x-kxm-signature": signEnvelope(SECRET, envelope, body), "x-kxm-timestamp": timestamp, "x-kxm-delivery-id": deliveryId };
      return post(`/v1/webhooks/${definitionId}`, body, { ...(signed as unknown as Record<string, string>), ...headers });
    },
    signal: (
      runId: string,
      signalKey: string,
      payload: unknown,
      { deliveryId = `s-${++deliveries}`, secret = SIGNAL_SECRET, definitionId = "release" }: Parameters<Workflows["signal"]>[3] = {},
    ) => {
      const body = bytes(payload);
      const timestamp = String(Math.floor(world.clock.now / 1000));
      const signature = signEnvelope(secret, { kind: "signal", timestamp, deliveryId, definitionId, runId, signalKey }, body);
      return post(`/v1/webhooks/${definitionId}/runs/${runId}/signals/${signalKey}`, body, {
        "x-kxm-signature": signature,
        "x-kxm-timestamp": timestamp,
        "x-kxm-delivery-id": deliveryId,
      });
    },
    as: (name: keyof Workflows["agents"], method: string, path: string, body?: unknown) =>
      world.call(method, path, { body, headers: agents[name].headers }),
  });
}

/** The same, for suites that run on every engine. */
export const openOn =
  (world: OpenWorld) =>
  (change: object = {}, settings: Partial<HubSettings> = {}): Promise<WorkflowWorld> =>
    openWorkflowWorld(change, settings, world);

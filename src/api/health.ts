// Whether the hub lives and can write.
import { Type } from "@sinclair/typebox";
import { isoOrNone } from "../protocol/time.ts";
import { type Route, route } from "./route.ts";

const Ready = Type.Object({
  ok: Type.Boolean(),
  storage: Type.String({ description: "sqlite: durable; memory: gone with the process." }),
  reason: Type.Optional(Type.String()),
  message: Type.Optional(Type.String({ description: "What an operator should do." })),
  degradedSince: Type.Optional(Type.String()),
});

const health = route({
  method: "GET",
  path: "/health",
  operationId: "getHealth",
  tag: "operations",
  summary: "Says that the process answers and how many agents are online.",
  credential: "none",
  answers: { 200: Type.Object({ ok: Type.Boolean(), agents: Type.Integer() }) },
  errors: [],
  run: async ({ hub }) => ({ status: 200, body: { ok: true, agents: await hub.engine.read.agents.countOnline() } }),
});

const ready = route({
  method: "GET",
  path: "/ready",
  operationId: "getReady",
  tag: "operations",
  summary: "Says whether a write would be durable now, proven by a write of its own, and why not.",
  credential: "none",
  answers: { 200: Ready, 503: Ready },
  errors: [],
  run: async ({ hub }) => {
    const { ok, reason, message, degradedSince } = await hub.engine.health();
    const storage = hub.settings.durable ? "sqlite" : "memory"; // monitors know these two words; a PostgreSQL store is as durable as the first
    const why = ok ? {} : { reason, message, degradedSince: isoOrNone(degradedSince) };
    return { status: ok ? 200 : 503, body: { ok, storage, ...why } };
  },
});

export const healthRoutes: readonly Route[] = [health, ready];

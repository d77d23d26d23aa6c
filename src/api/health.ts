// Whether the hub lives and can write.
import { Type } from "@sinclair/typebox";
import { route } from "./route.ts";

export const health = route({
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

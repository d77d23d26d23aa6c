// Leases: who may touch what only one may touch.
import { Type } from "@sinclair/typebox";
import * as leases from "../../hub/leases.ts";
import { integer, text } from "../../protocol/fields.ts";
import { LEASE_TTL_MS_DEFAULT, LEASE_TTL_MS_MAX, LEASE_TTL_MS_MIN, LEASE_WAIT_MS_MAX } from "../../protocol/limits.ts";
import { tool } from "../tool.ts";

const name = text(200, { description: "What is leased, such as branch:main or file:src/app.ts" });
const fencingToken = integer({ min: 1, max: Number.MAX_SAFE_INTEGER }, { description: "The token acquire returned" });
const ttlMs = integer(
  { default: LEASE_TTL_MS_DEFAULT, min: LEASE_TTL_MS_MIN, max: LEASE_TTL_MS_MAX },
  { description: "How long it holds without renewal" },
);

export const acquire = tool({
  name: "kxm_lease_acquire",
  title: "Acquire a lease",
  description: "Takes the exclusive lease of a resource before you change it. Refused while another agent holds it; waitMs stands in line.",
  input: Type.Object({
    name,
    ttlMs,
    waitMs: integer({ default: 0, min: 0, max: LEASE_WAIT_MS_MAX }, { description: "Wait in line at most this long" }),
  }),
  effect: "write",
  idempotent: true,
  run: async ({ hub, agent, input, signal }) => {
    const wait = input.waitMs > 0 ? { until: AbortSignal.any([hub.stopping, AbortSignal.timeout(input.waitMs)]), gone: signal } : undefined;
    const { lease, renewed } = await leases.acquire(hub, agent, input, wait);
    return {
      result: { ...lease, renewed },
      next: `It is yours until ${lease.expiresAt}. Renew it with kxm_lease_renew while you work and release it with kxm_lease_release.`,
    };
  },
});

export const renew = tool({
  name: "kxm_lease_renew",
  title: "Renew a lease",
  description: "Extends a lease you hold. If it is refused, stop the guarded work.",
  input: Type.Object({ name, fencingToken, ttlMs }),
  effect: "write",
  idempotent: true,
  run: async ({ hub, agent, input }) => {
    const { lease } = await leases.renew(hub, agent, input.name, input.fencingToken, input.ttlMs);
    return { result: lease, next: `It is yours until ${lease.expiresAt}.` };
  },
});

export const release = tool({
  name: "kxm_lease_release",
  title: "Release a lease",
  description: "Gives a lease back as soon as you are done.",
  input: Type.Object({ name, fencingToken }),
  effect: "write",
  idempotent: true,
  run: async ({ hub, agent, input }) => {
    await leases.release(hub, agent, input.name, input.fencingToken);
    return { result: { name: input.name, released: true }, next: "The next in line has it; do not touch the resource any more." };
  },
});

export const check = tool({
  name: "kxm_lease_check",
  title: "Check a lease",
  description: "Says whether a fencing token is still the current one.",
  input: Type.Object({ name, fencingToken }),
  effect: "read",
  idempotent: true,
  run: async ({ hub, agent, input }) => ({
    result: await leases.check(hub, agent.project, input.name, input.fencingToken),
    next: "It is valid: go on.",
  }),
});

// Leases on the wire: one holder per resource by the hub's clock, with a fencing token that rises for ever.
import { type Static, Type } from "@sinclair/typebox";
import { integer, oneOf, optionalInteger, optionalText, text } from "./fields.ts";
import {
  LEASE_TTL_MS_DEFAULT,
  LEASE_TTL_MS_MAX,
  LEASE_TTL_MS_MIN,
  LEASE_WAIT_MS_MAX,
  PAGE_ROWS_DEFAULT,
  PAGE_ROWS_MAX,
  REASON_MAX,
} from "./limits.ts";

const ttlMs = integer(
  { default: LEASE_TTL_MS_DEFAULT, min: LEASE_TTL_MS_MIN, max: LEASE_TTL_MS_MAX },
  { description: "How long the lease lasts without renewal, in milliseconds." },
);
// Absent has a code of its own (lease_token_required), so the rule checks it.
const fencingToken = optionalInteger({ min: 1, max: Number.MAX_SAFE_INTEGER }, { description: "The token that acquire returned. Required." });
const time = Type.String({ description: "UTC time, ISO-8601 with Z." });
const project = optionalText(128, { description: "The project; for callers with a token. An agent's own project otherwise." });

/** Path of every route about one lease. The name is decoded after the path was split, so %2F is part of a name. */
export const LeaseParams = Type.Object({ name: text(200, { description: "Name of the resource within the project." }) });
export const AcquireBody = Type.Object({
  ttlMs,
  waitMs: integer(
    { default: 0, min: 0, max: LEASE_WAIT_MS_MAX },
    { description: "How long to stand in line when somebody else holds it, in milliseconds." },
  ),
});
export const RenewBody = Type.Object({ fencingToken, ttlMs });
export const ReleaseBody = Type.Object({ fencingToken });
export const CheckBody = Type.Object({ fencingToken, project });
export const ForceReleaseBody = Type.Object({
  project: text(128, { description: "The project of the resource." }),
  reason: text(REASON_MAX, { description: "Why it is taken away; kept in the audit log." }),
});
export const LeaseQuery = Type.Object({ project });
export const LEASE_STATES = ["held", "lapsed"] as const;
export const LeasesQuery = Type.Object({
  project,
  state: oneOf(LEASE_STATES, { default: "held", description: "lapsed: ended by time and not taken over yet." }),
  after: optionalText(200, { description: "Name of the last lease of the page before." }),
  limit: integer({ default: PAGE_ROWS_DEFAULT, min: 1, max: PAGE_ROWS_MAX }),
});

/** A lease as existing clients know it. */
export const Lease = Type.Object({
  resource: Type.String({ description: "<project>/<name>" }),
  project: Type.String(),
  name: Type.String(),
  holderAgentId: Type.String(),
  holderAgentName: Type.String(),
  fencingToken: Type.Integer({ minimum: 1 }),
  acquiredAt: time,
  expiresAt: time,
});
export type Lease = Static<typeof Lease>;

/** A lease with its age and line, as refusals, reads and lists show it. */
export const LeaseState = Type.Object({
  ...Lease.properties,
  state: Type.Union([Type.Literal("held"), Type.Literal("lapsed")]),
  renewedAt: time,
  ttlMs: Type.Integer(),
  heldForMs: Type.Integer({ minimum: 0 }),
  waiters: Type.Integer({ minimum: 0, description: "Agents standing in line." }),
});
export type LeaseState = Static<typeof LeaseState>;

/** Somebody in line, first to be granted first. */
export const LeaseWaiter = Type.Object({
  agentId: Type.String(),
  agentName: Type.String(),
  waitingSince: time,
  deadlineAt: time,
});
export type LeaseWaiter = Static<typeof LeaseWaiter>;

export const LeaseGranted = Type.Object({ lease: Lease, renewed: Type.Boolean() });
export type LeaseGranted = Static<typeof LeaseGranted>;
export const LeaseReleased = Type.Object({ released: Type.Literal(true), lease: Lease });
export type LeaseReleased = Static<typeof LeaseReleased>;
export const LeaseValid = Type.Object({ valid: Type.Literal(true), lease: LeaseState });
export type LeaseValid = Static<typeof LeaseValid>;
export const LeaseDetail = Type.Object({ lease: LeaseState, waiting: Type.Array(LeaseWaiter) });
export type LeaseDetail = Static<typeof LeaseDetail>;
export const LeaseList = Type.Object({
  leases: Type.Array(LeaseState),
  next: Type.Optional(Type.String({ description: "Send it as after for the next page; absent on the last." })),
});
export type LeaseList = Static<typeof LeaseList>;

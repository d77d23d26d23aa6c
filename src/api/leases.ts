// Leases over HTTP: agents acquire, renew and release; agents and operators look and check; operators take away.
import { waitFor } from "../http/long-poll.ts";
import * as leases from "../hub/leases.ts";
import {
  AcquireBody,
  CheckBody,
  ForceReleaseBody,
  LeaseDetail,
  LeaseGranted,
  LeaseList,
  LeaseParams,
  LeaseQuery,
  LeaseReleased,
  LeasesQuery,
  LeaseValid,
  ReleaseBody,
  RenewBody,
} from "../protocol/leases.ts";
import { byOf, projectOf, requireProject } from "./credentials.ts";
import { type Route, route } from "./route.ts";

const acquire = route({
  method: "POST",
  path: "/v1/leases/:name/acquire",
  operationId: "acquireLease",
  tag: "leases",
  summary: "Takes a lease, extends one's own, or with waitMs stands in line for it.",
  credential: "agent",
  params: LeaseParams,
  body: AcquireBody,
  answers: { 200: LeaseGranted },
  errors: ["lease_held", "shutting_down"],
  run: async ({ hub, caller, params, body, request, server }) => {
    const wait = body.waitMs > 0 ? waitFor({ request, server }, hub.stopping, body.waitMs) : undefined;
    return { status: 200, body: await leases.acquire(hub, caller.agent, { ...body, name: params.name }, wait) };
  },
});

const renew = route({
  method: "POST",
  path: "/v1/leases/:name/renew",
  operationId: "renewLease",
  tag: "leases",
  summary: "Extends a live lease; its token stays.",
  credential: "agent",
  params: LeaseParams,
  body: RenewBody,
  answers: { 200: LeaseGranted },
  errors: ["lease_token_required", "lease_not_found", "lease_superseded", "lease_expired"],
  run: async ({ hub, caller, params, body }) => ({
    status: 200,
    body: await leases.renew(hub, caller.agent, params.name, body.fencingToken, body.ttlMs),
  }),
});

const release = route({
  method: "POST",
  path: "/v1/leases/:name/release",
  operationId: "releaseLease",
  tag: "leases",
  summary: "Gives a lease back; the first in line gets it.",
  credential: "agent",
  params: LeaseParams,
  body: ReleaseBody,
  answers: { 200: LeaseReleased },
  errors: ["lease_token_required", "lease_not_found", "lease_superseded"],
  run: async ({ hub, caller, params, body }) => ({
    status: 200,
    body: await leases.release(hub, caller.agent, params.name, body.fencingToken),
  }),
});

const check = route({
  method: "POST",
  path: "/v1/leases/:name/check",
  operationId: "checkLease",
  tag: "leases",
  summary: "Says whether a token is the current one of a live lease: what a guarded resource asks before it lets a writer in.",
  credential: "agent-or-viewer",
  params: LeaseParams,
  body: CheckBody,
  answers: { 200: LeaseValid },
  errors: ["lease_token_required", "lease_not_found", "lease_superseded", "lease_expired"],
  run: async ({ hub, caller, params, body }) => ({
    status: 200,
    body: await leases.check(hub, projectOf(caller, body.project), params.name, body.fencingToken),
  }),
});

const forceRelease = route({
  method: "POST",
  path: "/v1/leases/:name/force-release",
  operationId: "forceReleaseLease",
  tag: "leases",
  summary: "Takes a lease away from its holder, with a reason for the audit log.",
  credential: "operator",
  params: LeaseParams,
  body: ForceReleaseBody,
  answers: { 200: LeaseReleased },
  errors: ["lease_not_found"],
  run: async ({ hub, caller, params, body, request }) => {
    requireProject(caller, body.project);
    return { status: 200, body: await leases.forceRelease(hub, byOf(caller, request), { ...body, name: params.name }) };
  },
});

const list = route({
  method: "GET",
  path: "/v1/leases",
  operationId: "listLeases",
  tag: "leases",
  summary: "Lists the leases of a project that are held, or those that lapsed and were not taken over.",
  credential: "agent-or-viewer",
  query: LeasesQuery,
  answers: { 200: LeaseList },
  errors: [],
  run: async ({ hub, caller, query }) => ({ status: 200, body: await leases.list(hub, projectOf(caller, query.project), query) }),
});

const find = route({
  method: "GET",
  path: "/v1/leases/:name",
  operationId: "getLease",
  tag: "leases",
  summary: "Shows the holder of a lease, its age and who stands in line.",
  credential: "agent-or-viewer",
  params: LeaseParams,
  query: LeaseQuery,
  answers: { 200: LeaseDetail },
  errors: ["lease_not_found"],
  run: async ({ hub, caller, params, query }) => ({ status: 200, body: await leases.find(hub, projectOf(caller, query.project), params.name) }),
});

export const leaseRoutes: readonly Route[] = [acquire, renew, release, check, forceRelease, list, find];

// Approvals over HTTP: what waits for a person, and deciding it.
import * as approvals from "../hub/approvals.ts";
import { ApprovalAnswer, ApprovalParams, ApprovalsAnswer, ApprovalsQuery, DecisionBody } from "../protocol/approvals.ts";
import { byOf, projectOf } from "./credentials.ts";
import { type Route, route } from "./route.ts";

const list = route({
  method: "GET",
  path: "/v1/approvals",
  operationId: "listApprovals",
  tag: "approvals",
  summary: "Lists approvals of a project: what is pending, longest first, or what was decided, newest first.",
  credential: "viewer",
  query: ApprovalsQuery,
  answers: { 200: ApprovalsAnswer },
  errors: [],
  run: async ({ hub, caller, query }) => ({ status: 200, body: await approvals.list(hub.engine.read, projectOf(caller, query.project), query) }),
});

const find = route({
  method: "GET",
  path: "/v1/approvals/:id",
  operationId: "getApproval",
  tag: "approvals",
  summary: "Shows what exactly is approved, with its hash, and how far a decision got at its Runtime.",
  credential: "viewer",
  params: ApprovalParams,
  answers: { 200: ApprovalAnswer },
  errors: ["approval_not_found"],
  run: async ({ hub, caller, params }) => ({ status: 200, body: { approval: await approvals.find(hub.engine.read, params.id, caller.project) } }),
});

const decide = route({
  method: "POST",
  path: "/v1/approvals/:id/decision",
  operationId: "decideApproval",
  tag: "approvals",
  summary: "Approves or rejects what is pending and sends the decision to the Runtime, which refuses it if the content has changed.",
  credential: "operator",
  params: ApprovalParams,
  body: DecisionBody,
  answers: { 200: ApprovalAnswer },
  errors: ["approval_not_found", "approval_content_changed", "approval_decided", "run_not_accepting"],
  run: async ({ hub, caller, params, body, request }) => ({
    status: 200,
    body: { approval: await approvals.decide(hub, byOf(caller, request), caller.project, params.id, body) },
  }),
});

export const approvalRoutes: readonly Route[] = [list, find, decide];

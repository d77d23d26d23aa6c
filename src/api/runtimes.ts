// Runtimes over HTTP: their presence, the commands they fetch and answer, and what operators send and see.
import { Type } from "@sinclair/typebox";
import { waitFor } from "../http/long-poll.ts";
import * as approvals from "../hub/approvals.ts";
import * as commands from "../hub/commands.ts";
import * as runtimes from "../hub/runtimes.ts";
import { HubError } from "../protocol/errors.ts";
import { CommandAnswer, CommandBody, RuntimesAnswer, RuntimesQuery } from "../protocol/runtimes.ts";
import {
  type CommandPayload,
  CommandResultAnswer,
  CommandResultBody,
  CommandsAnswer,
  CommandsQuery,
  commandPayloadProblem,
  PresenceAnswer,
  PresenceBody,
} from "../protocol/sync.ts";
import { byOf, projectOf, requireProject } from "./credentials.ts";
import { type Route, route } from "./route.ts";

const reportPresence = route({
  method: "POST",
  path: "/v1/runtime/presence",
  operationId: "reportRuntimePresence",
  tag: "runtimes",
  summary: "A Runtime's sign of life, and what it says of itself.",
  credential: "project",
  body: PresenceBody,
  answers: { 200: PresenceAnswer, 201: PresenceAnswer },
  errors: ["invalid_runtime_id"],
  run: async ({ hub, body }) => {
    const { isNew, ...answer } = await runtimes.beat(hub, body);
    return { status: isNew ? 201 : 200, body: answer };
  },
});

const listRuntimes = route({
  method: "GET",
  path: "/v1/runtimes",
  operationId: "listRuntimes",
  tag: "runtimes",
  summary: "Lists the Runtimes of a project: those that reported, and those that only have runs here.",
  credential: "viewer",
  query: RuntimesQuery,
  answers: { 200: RuntimesAnswer },
  errors: [],
  run: async ({ hub, caller, query }) => ({ status: 200, body: { runtimes: await runtimes.list(hub, projectOf(caller, query.project)) } }),
});

const pollCommands = route({
  method: "GET",
  path: "/v1/runtime/commands",
  operationId: "pollRuntimeCommands",
  tag: "runtimes",
  summary: "A Runtime's unfinished commands; with waitMs it waits for the first. Reading marks nothing.",
  credential: "project",
  query: CommandsQuery,
  answers: { 200: CommandsAnswer },
  errors: ["invalid_runtime_id"],
  run: async ({ hub, query, request, server }) => {
    const wait = query.waitMs > 0 ? waitFor({ request, server }, hub.stopping, query.waitMs) : undefined;
    return { status: 200, body: { commands: await commands.poll(hub, query, wait) } };
  },
});

const reportCommand = route({
  method: "POST",
  path: "/v1/runtime/commands/:id/result",
  operationId: "reportRuntimeCommand",
  tag: "runtimes",
  summary: "A Runtime says that it has a command, applied it or refused it. A repeat changes nothing.",
  credential: "project",
  params: Type.Object({ id: Type.String({ minLength: 1, maxLength: 64 }) }),
  body: CommandResultBody,
  answers: { 200: CommandResultAnswer },
  errors: ["invalid_runtime_id", "command_not_found", "command_finished"],
  run: async ({ hub, params, body }) => {
    const { id, state } = await commands.report(hub, body, params.id, body);
    return { status: 200, body: { command: { id, state } } };
  },
});

const sendCommand = route({
  method: "POST",
  path: "/v1/runtime/commands",
  operationId: "sendRuntimeCommand",
  tag: "runtimes",
  summary: "Asks the Runtime of a run, or a named Runtime, to do something. It fetches the command itself.",
  credential: "operator",
  body: CommandBody,
  answers: { 200: CommandAnswer, 201: CommandAnswer },
  errors: ["run_not_found", "runtime_not_found", "run_not_accepting", "idempotency_conflict", "approval_decided", "approval_content_changed"],
  run: async ({ hub, caller, body, request }) => {
    requireProject(caller, body.project);
    const by = byOf(caller, request);
    if (body.kind === "approve" || body.kind === "reject") {
      // A decision is made once and over its content's hash, by whichever route it comes.
      const problem = commandPayloadProblem(body.kind, body.payload ?? {});
      if (problem !== undefined) throw new HubError("protocol_error", `payload${problem} does not fit the kind ${body.kind}`);
      const { approvalId, contentHash, reason } = body.payload as CommandPayload<"approve">;
      const approval = await approvals.decide(hub, by, body.project, approvalId, { decision: body.kind, contentHash, reason });
      return { status: 201, body: { command: await commands.find(hub.engine.read, approval.decision!.command.id) } };
    }
    const { command, created } = await commands.send(hub, by, body);
    return { status: created ? 201 : 200, body: { command } };
  },
});

export const runtimeRoutes: readonly Route[] = [reportPresence, listRuntimes, pollCommands, reportCommand, sendCommand];

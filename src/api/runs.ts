// Runs over HTTP: lists, one run with all that its events come to, its events and its commands.
import * as commands from "../hub/commands.ts";
import * as runs from "../hub/runs.ts";
import { RunAnswer, RunEventsAnswer, RunEventsQuery, RunParams, RunsAnswer, RunsQuery } from "../protocol/runs.ts";
import { RunCommandsAnswer, RunCommandsQuery } from "../protocol/runtimes.ts";
import { projectOf } from "./credentials.ts";
import { type Route, route } from "./route.ts";

const list = route({
  method: "GET",
  path: "/v1/runs",
  operationId: "listRuns",
  tag: "runs",
  summary: "Lists the runs of a project that its Runtimes synced, newest change first.",
  credential: "viewer",
  query: RunsQuery,
  answers: { 200: RunsAnswer },
  errors: [],
  run: async ({ hub, caller, query }) => ({ status: 200, body: await runs.list(hub, projectOf(caller, query.project), query) }),
});

const find = route({
  method: "GET",
  path: "/v1/runs/:projectId/:runId",
  operationId: "getRun",
  tag: "runs",
  summary: "Shows a run: steps with attempts, assignments, use and cost, evidence, what it waits for.",
  credential: "viewer",
  params: RunParams,
  answers: { 200: RunAnswer },
  errors: ["run_not_found"],
  run: async ({ hub, caller, params }) => ({
    status: 200,
    body: { run: await runs.find(hub, caller.project, params.projectId, params.runId) },
  }),
});

const events = route({
  method: "GET",
  path: "/v1/runs/:projectId/:runId/events",
  operationId: "listRunEvents",
  tag: "runs",
  summary: "Reads the events of a run in order; a page is bounded in number and bytes.",
  credential: "viewer",
  params: RunParams,
  query: RunEventsQuery,
  answers: { 200: RunEventsAnswer },
  errors: ["run_not_found"],
  run: async ({ hub, caller, params, query }) => {
    const { read } = hub.engine;
    const run = await runs.findRow(read, caller.project, params.projectId, params.runId);
    return { status: 200, body: await runs.events(read, run, query) };
  },
});

const ofRun = route({
  method: "GET",
  path: "/v1/runs/:projectId/:runId/commands",
  operationId: "listRunCommands",
  tag: "runs",
  summary: "Lists what operators asked of a run and how far each command got, newest first.",
  credential: "viewer",
  params: RunParams,
  query: RunCommandsQuery,
  answers: { 200: RunCommandsAnswer },
  errors: ["run_not_found"],
  run: async ({ hub, caller, params, query }) => {
    const { read } = hub.engine;
    const run = await runs.findRow(read, caller.project, params.projectId, params.runId);
    return { status: 200, body: await commands.ofRun(read, run, query) };
  },
});

export const runRoutes: readonly Route[] = [list, find, events, ofRun];

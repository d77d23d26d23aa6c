// Search over HTTP.
import * as search from "../hub/search.ts";
import { SearchAnswer, SearchRequest } from "../protocol/search.ts";
import { requireProject } from "./credentials.ts";
import { type Route, route } from "./route.ts";

const find = route({
  method: "GET",
  path: "/v1/search",
  operationId: "search",
  tag: "search",
  summary: "Finds messages, agents, leases, runs, events, workflows, journal entries and context by words and qualifiers, newest first.",
  credential: "agent-or-viewer",
  query: SearchRequest,
  answers: { 200: SearchAnswer },
  errors: ["invalid_search_query"],
  run: async ({ hub, caller, query }) => {
    if (caller.kind === "agent") {
      return { status: 200, body: await search.find(hub, { project: caller.project, agentName: caller.agent.name, mayRead: true }, query) };
    }
    const project = query.project ?? caller.project ?? undefined;
    if (project !== undefined) requireProject(caller, project);
    return { status: 200, body: await search.find(hub, { project, agentName: undefined, mayRead: caller.role !== "viewer" }, query) };
  },
});

export const searchRoutes: readonly Route[] = [find];

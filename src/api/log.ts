// The event log, page by page, and the projects that have one.
import type { EventRow } from "../db/schema.ts";
import { LogAnswer, type LogEntry, LogQuery, ProjectsAnswer, ProjectsQuery } from "../protocol/log.ts";
import { iso } from "../protocol/time.ts";
import { requireProject } from "./credentials.ts";
import { route } from "./route.ts";

const shown = ({ seq, at, topic, type, subjectId, actor, data }: EventRow): LogEntry => ({ seq, at: iso(at), topic, type, subjectId, actor, data });

const readLog = route({
  method: "GET",
  path: "/v1/log",
  operationId: "readLog",
  tag: "operations",
  summary: "Reads a project's event log: every committed change in order, without message bodies.",
  credential: "viewer",
  query: LogQuery,
  answers: { 200: LogAnswer },
  errors: [],
  run: async ({ hub, caller, query }) => {
    const { project, after, limit } = query;
    requireProject(caller, project);
    const { events, projects } = hub.engine.read;
    const rows = await events.after(project, after, limit);
    const lastSeq = (await projects.find(project))?.lastSeq ?? 0;
    const first = rows[0]?.seq ?? lastSeq + 1;
    return { status: 200, body: { entries: rows.map(shown), lastSeq, truncated: after < lastSeq && first > after + 1 } };
  },
});

const listProjects = route({
  method: "GET",
  path: "/v1/projects",
  operationId: "listProjects",
  tag: "operations",
  summary: "Lists the projects this hub knows, by name.",
  credential: "viewer",
  query: ProjectsQuery,
  answers: { 200: ProjectsAnswer },
  errors: [],
  run: async ({ hub, caller, query: { after = "", limit } }) => {
    const { projects } = hub.engine.read;
    const found = caller.project === null ? await projects.page(after, limit + 1) : [await projects.find(caller.project)];
    const rows = found.filter((row) => row !== undefined);
    const page = rows.slice(0, limit);
    const body = [];
    for (const { project, lastSeq } of page) body.push({ name: project, lastSeq, agentsOnline: await projects.countOnline(project) });
    return { status: 200, body: { projects: body, next: rows.length > limit ? page.at(-1)!.project : undefined } };
  },
});

export const logRoutes = [readLog, listProjects];

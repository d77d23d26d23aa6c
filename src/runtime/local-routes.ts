// The supervisor's own routes: what is running, the checkouts, their runs as stored, commands, sync, the hub's binding, and the end.
import { RuntimeRefusal } from "../protocol/runtime-errors.ts";
import { isCommandKind } from "./command-effects.ts";
import type { Engine, Project, ProjectCommand } from "./contract.ts";
import type { LocalRequest, LocalRoute } from "./local-route.ts";
import type { OpenProject, Projects } from "./projects.ts";
import type { ScanReport } from "./redact/scan.ts";
import type { Registry } from "./registry.ts";
import type { CommandOutcome } from "./store/commands.ts";
import type { BindingSource } from "./sync/binding.ts";
import type { Sync } from "./sync/loop.ts";

const EVENTS_MAX = 1_000;
const WAIT_MS_MAX = 25_000;

export type RouteParts = {
  /** Looks at everything that is kept with today's rules. */
  scan(signal: AbortSignal): Promise<ScanReport>;
  registry: Registry;
  projects: Projects;
  sync: Sync;
  binding: BindingSource;
  engine: Engine;
  version: string;
  generation: number;
  stop(): Promise<void>;
  apply(project: Project, command: ProjectCommand): CommandOutcome<unknown>;
};

export function supervisorRoutes(parts: RouteParts): LocalRoute[] {
  return [...statusRoutes(parts), ...projectRoutes(parts), ...syncRoutes(parts)];
}

function statusRoutes({ registry, sync, engine, version, generation, stop, scan }: RouteParts): LocalRoute[] {
  return [
    {
      method: "GET",
      path: "/v1/status",
      answer: () => {
        const { pid, port, startedAt } = registry.supervisor();
        return { runtimeId: registry.runtimeId, version, pid, port, generation, startedAt, ...engine.report(), sync: sync.report() };
      },
    },
    { method: "POST", path: "/v1/redact/scan", answer: ({ signal }) => scan(signal) },
    {
      method: "POST",
      path: "/v1/shutdown",
      answer: () => {
        setTimeout(() => void stop(), 10); // after this answer has left
        return { stopping: true };
      },
    },
  ];
}

function projectRoutes({ projects, apply }: RouteParts): LocalRoute[] {
  const of = ({ params }: LocalRequest): OpenProject => projects.byKey(params["projectKey"]!);
  const runOf = (request: LocalRequest) => {
    const project = of(request);
    const run = project.store.read.runs.view(request.params["runId"]!);
    if (!run) throw new RuntimeRefusal("run_not_found", `there is no run ${request.params["runId"]} in ${project.name}`);
    return { project, run };
  };
  return [
    {
      method: "POST",
      path: "/v1/projects",
      answer: ({ body }) => {
        const [root, projectId, name] = [text(body, "root", 4096), text(body, "projectId", 144), text(body, "name", 128)];
        const configRevision = body["configRevision"] === undefined ? undefined : text(body, "configRevision", 80);
        const hubProject = body["hubProject"] === undefined ? undefined : text(body, "hubProject", 128);
        const { key } = projects.register({ root, projectId, name, configRevision, hubProject });
        return { projectKey: key, projectId, name };
      },
    },
    {
      method: "GET",
      path: "/v1/projects",
      answer: () => ({ projects: projects.entries().map(({ row, unavailable }) => ({ ...row, ...(unavailable && { unavailable }) })) }),
    },
    {
      method: "GET",
      path: "/v1/projects/:projectKey/runs",
      answer: (request) => {
        const { query } = request;
        const page = { status: query.get("status") ?? undefined, before: number(query, "before"), limit: number(query, "limit", { max: 500 }) };
        return { runs: of(request).store.read.runs.list(page) };
      },
    },
    { method: "GET", path: "/v1/projects/:projectKey/runs/:runId", answer: (request) => ({ run: runOf(request).run }) },
    {
      method: "GET",
      path: "/v1/projects/:projectKey/runs/:runId/plan",
      answer: (request) => {
        const { project, run } = runOf(request);
        return { plan: project.store.read.runs.planOf(run.runId) };
      },
    },
    {
      method: "GET",
      path: "/v1/projects/:projectKey/runs/:runId/events",
      answer: async (request) => {
        const { project, run } = runOf(request);
        const after = number(request.query, "after") ?? 0;
        const limit = number(request.query, "limit", { max: EVENTS_MAX }) ?? EVENTS_MAX;
        const waitMs = number(request.query, "waitMs", { max: WAIT_MS_MAX }) ?? 0;
        if (waitMs > 0 && project.store.read.events.last(run.runId) <= after) await nextEvent(project, run.runId, waitMs, request.signal);
        return { events: project.store.read.events.after(run.runId, after, limit), state: project.store.read.runs.state(run.runId) };
      },
    },
    { method: "POST", path: "/v1/projects/:projectKey/commands", answer: (request) => command(of(request), request.body, apply) },
  ];
}

/** Applies a command and answers what it did, the first time and every other time. @throws RuntimeRefusal its refusal */
function command(project: OpenProject, body: Record<string, unknown>, apply: RouteParts["apply"]) {
  const { kind, payload = {} } = body;
  if (!isCommandKind(kind)) throw new RuntimeRefusal("runtime_protocol_error", "kind is none this Runtime knows");
  const runId = body["runId"] === undefined ? undefined : text(body, "runId", 144);
  const [commandId, actor] = [text(body, "commandId", 144), text(body, "actor", 200)];
  const outcome = apply(project, { commandId, kind, runId, payload: payload as never, actor, source: "cli" });
  if (outcome.state === "refused") throw refusalOf(outcome);
  return { state: outcome.state, repeated: outcome.repeated, result: outcome.result };
}

function refusalOf({ code, reason, repeated }: { code: string; reason: string; repeated: boolean }): RuntimeRefusal {
  return new RuntimeRefusal(code as never, reason, { detail: { repeated } });
}

function syncRoutes({ projects, sync, binding }: RouteParts): LocalRoute[] {
  return [
    { method: "GET", path: "/v1/sync", answer: () => sync.report() },
    {
      method: "POST",
      path: "/v1/sync/retry",
      answer: ({ body }) => {
        const code = body["code"] === undefined ? undefined : text(body, "code", 64);
        const chosen = body["projectKey"] === undefined ? projects.open() : [projects.byKey(text(body, "projectKey", 64))];
        const requeued = chosen.map(({ store }) => store.commit((tx) => tx.outbox.retry(code))).reduce((sum, n) => sum + n, 0);
        sync.retryNow();
        return { requeued };
      },
    },
    {
      method: "POST",
      path: "/v1/hub",
      answer: ({ body }) => {
        if (body["url"] === undefined) binding.unbind();
        else {
          const token = body["token"] === undefined ? undefined : text(body, "token", 512);
          binding.bind({ url: text(body, "url", 512), project: text(body, "project", 128), token });
        }
        sync.retryNow();
        const bound = binding.read();
        return { hub: bound && { url: bound.url, project: bound.project } };
      },
    },
  ];
}

/** The next event of a run, a time limit, or the caller's end, whichever comes first. */
function nextEvent(project: OpenProject, runId: string, waitMs: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, waitMs);
  const stop = project.store.onAppend((events) => events.some((event) => event.runId === runId) && resolve());
  signal.addEventListener("abort", () => resolve(), { once: true });
  return promise.finally(() => {
    clearTimeout(timer);
    stop();
  });
}

function text(body: Record<string, unknown>, name: string, max: number): string {
  const value = body[name];
  if (typeof value !== "string" || value.trim() === "" || value.length > max)
    throw new RuntimeRefusal("runtime_protocol_error", `${name} must be a text of 1 to ${max} characters`);
  return value.trim();
}

function number(query: URLSearchParams, name: string, { max = Number.MAX_SAFE_INTEGER } = {}): number | undefined {
  const given = query.get(name);
  if (given === null || given === "") return undefined;
  if (!/^\d{1,16}$/.test(given)) throw new RuntimeRefusal("runtime_protocol_error", `${name} must be a whole number`);
  return Math.min(Number(given), max);
}

// The engine's routes of the local API: a run in full, with what it waits for; intake, receipts, transcripts, worktrees and harnesses.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import { isTerminal } from "../../protocol/workflow-file.ts";
import type { Project } from "../contract.ts";
import { harnessReports } from "../harness/probe.ts";
import type { LocalRequest, LocalRoute } from "../local-route.ts";
import { inspectBundle, loadBundle, readProject } from "../project/bundle.ts";
import type { Plan } from "../project/plan.ts";
import { ProjectProblems } from "../project/problems.ts";
import { type Repository, repositoriesOf } from "../project/repositories.ts";
import type { EventStore } from "../store/event-store.ts";
import type { Workers } from "../worker/workers.ts";
import { listWorktrees, removeWorktree, type WorktreeReport, whyKeep } from "../workspace/inventory.ts";
import { readBinding } from "./coordinators.ts";
import type { ProjectEngine } from "./project-engine.ts";
import { verify } from "./receipts.ts";
import { viewOf } from "./view.ts";
import { worktreesFolder } from "./workspaces.ts";

const WAIT_MS_MAX = 25_000;

/** Checks the files of any project folder; says what the project is as far as it can be read. */
function check(root: unknown) {
  if (typeof root !== "string" || root === "") throw new RuntimeRefusal("runtime_protocol_error", "root must be a folder");
  const { bundle, identity, problems } = inspectBundle(root);
  return {
    problems,
    project: identity,
    workflows: bundle ? [...bundle.workflows.keys()] : [],
  };
}

export function routesOf({ engines, workers }: { engines: Map<string, ProjectEngine>; workers: Map<string, Workers> }): LocalRoute[] {
  const of = ({ params }: LocalRequest): ProjectEngine => {
    const engine = engines.get(params["projectKey"]!);
    if (!engine) throw new RuntimeRefusal("project_not_found", `no open project has the key ${params["projectKey"]}`);
    return engine;
  };
  return [
    ...runRoutes(of),
    ...intakeRoutes(of),
    ...coordinatorRoutes(of),
    ...worktreeRoutes(of, ({ key }) => workers.get(key)),
    ...workerRoutes(({ params }) => workers.get(params["projectKey"]!)),
    { method: "POST", path: "/v1/check", answer: ({ body }) => check(body["root"]) },
    { method: "GET", path: "/v1/harnesses", answer: () => harnessReports(process.env) },
  ];
}

type Of = (request: LocalRequest) => ProjectEngine;

function runRoutes(of: Of): LocalRoute[] {
  const RUN = "/v1/projects/:projectKey/runs/:runId";
  return [
    { method: "GET", path: "/v1/projects/:projectKey/gates/:gateId", answer: (request) => gateOf(request, of) },
    { method: "GET", path: `${RUN}/view`, answer: (request) => ({ run: viewOf(of(request), request.params["runId"]!) }) },
    {
      method: "GET",
      path: `${RUN}/receipt`,
      answer: (request) => {
        const engine = of(request);
        const runId = engine.run(request.params["runId"]!).runId;
        const verified = verify(engine.project.store, runId);
        if (!verified) throw new RuntimeRefusal("run_not_accepting", `run ${runId} has no receipt yet: its first drive has not ended`);
        return { ...verified, receipts: engine.project.store.read.receipts.ofRun(runId) };
      },
    },
    {
      method: "GET",
      path: `${RUN}/logs`,
      answer: (request) => {
        const { project } = of(request);
        const wanted = request.query.get("step");
        const attempts = attemptsOf(project.store, of(request).run(request.params["runId"]!).runId);
        return {
          attempts: attempts
            .filter(({ stepId }) => wanted === null || stepId === wanted)
            .map((attempt) => ({ ...attempt, pieces: project.prompts.transcript(attempt.attemptId) })),
        };
      },
    },
  ];
}

const PAGE = 1000;

/** Every attempt of a run, in the order they were made. */
function attemptsOf({ read }: EventStore, runId: string): { attemptId: string; stepId: string | undefined }[] {
  const found: { attemptId: string; stepId: string | undefined }[] = [];
  for (let after = 0; ; ) {
    const page = read.events.after(runId, after, PAGE);
    for (const { sequence, eventType, payload } of page) {
      if (eventType === "attempt.created" && payload.attemptId) found.push({ attemptId: payload.attemptId, stepId: payload.stepId });
      after = sequence;
    }
    if (page.length < PAGE) return found;
  }
}

/** A gate as the project's files say it now. */
function gateOf(request: LocalRequest, of: Of) {
  const gate = loadBundle(of(request).project.root).gates.get(request.params["gateId"]!);
  if (!gate) throw new RuntimeRefusal("project_invalid", `gates.yaml has no gate called ${request.params["gateId"]}`);
  return { gate };
}

function intakeRoutes(of: Of): LocalRoute[] {
  return [
    {
      method: "GET",
      path: "/v1/projects/:projectKey/intake",
      answer: (request) => {
        const { read } = of(request).project.store;
        return { intake: read.intake.list({ limit: 200 }), paused: read.controls.pause() ?? null };
      },
    },
    {
      method: "GET",
      path: "/v1/projects/:projectKey/intake/:intakeId",
      answer: async (request) => {
        const engine = of(request);
        const { read } = engine.project.store;
        const find = () => read.intake.find(request.params["intakeId"]!);
        const waitMs = Math.min(Number(request.query.get("waitMs") ?? 0) || 0, WAIT_MS_MAX);
        let waits = waitMs > 0;
        const over = waits ? patience(waitMs, request.signal).then(() => void (waits = false)) : undefined;
        while (waits && find()?.state === "queued" && !read.controls.pause()) await Promise.race([engine.dispatch(), over]);
        const intake = find();
        if (!intake) throw new RuntimeRefusal("run_not_found", `there is no intake message ${request.params["intakeId"]}`);
        return { intake };
      },
    },
  ];
}

function coordinatorRoutes(of: Of): LocalRoute[] {
  const PATH = "/v1/projects/:projectKey/coordinators";
  return [
    { method: "GET", path: PATH, answer: (request) => ({ coordinators: of(request).project.store.read.coordinators.list() }) },
    {
      method: "POST",
      path: `${PATH}/:id`,
      answer: (request) => {
        const { coordinatorId, binding } = readBinding(request.params["id"], request.body);
        of(request).project.store.commit((tx) => tx.coordinators.save(coordinatorId, binding));
        return { coordinatorId, ...binding };
      },
    },
    {
      method: "POST",
      path: `${PATH}/:id/revoke`,
      answer: (request) => {
        const coordinatorId = request.params["id"]!;
        const known = of(request)
          .project.store.read.coordinators.list()
          .some((one) => one.coordinatorId === coordinatorId);
        if (!known) throw new RuntimeRefusal("command_refused", `there is no coordinator ${coordinatorId}`);
        of(request).project.store.commit((tx) => tx.coordinators.revoke(coordinatorId));
        return { coordinatorId, revoked: true };
      },
    },
  ];
}

/** Resolves after the time, or when the caller has gone. */
function patience(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", () => resolve(), { once: true });
  return promise.finally(() => clearTimeout(timer));
}

function worktreeRoutes(of: Of, workersOf: (project: Project) => Workers | undefined): LocalRoute[] {
  const list = async (request: LocalRequest) => {
    const { project, context } = of(request);
    const folder = worktreesFolder(context);
    const found = await listWorktrees(project.root, folder, repositoriesIn(project, folder));
    return found.map((report) => {
      if (workersOf(project)?.owns(report.runId)) return { ...report, status: "worker", keep: "its worker is here" };
      const status = project.store.read.runs.state(report.runId)?.status ?? "unknown";
      return { ...report, status, keep: status === "unknown" || isTerminal(status) ? whyKeep(report) : `its run is ${status}` };
    });
  };
  return [
    { method: "GET", path: "/v1/projects/:projectKey/worktrees", answer: async (request) => ({ worktrees: await list(request) }) },
    {
      method: "POST",
      path: "/v1/projects/:projectKey/worktrees/clean",
      answer: async (request) => {
        const wanted = request.body["runId"];
        const removed: string[] = [];
        const kept: { path: string; why: string }[] = [];
        for (const report of await list(request)) {
          if (wanted !== undefined && report.runId !== wanted) continue;
          const inner = kept.some(({ path }) => path.startsWith(`${report.path}/`)) ? "a worktree in it stays" : undefined;
          const why = report.keep ?? inner ?? (await removal(of(request).project.root, report));
          if (why === undefined) removed.push(report.path);
          else kept.push({ path: report.path, why });
        }
        return { removed, kept };
      },
    },
  ];
}

/** Why a worktree could not be removed. */
async function removal(root: string, report: WorktreeReport): Promise<string | undefined> {
  try {
    await removeWorktree(root, report);
    return undefined;
  } catch (error) {
    if (error instanceof RuntimeRefusal) return error.message;
    throw error;
  }
}

/** Repositories that may have worktrees: those of the project as it is now, and those of the runs that have left folders. */
function repositoriesIn({ root, store }: Project, folder: string): Repository[] {
  const runs = existsSync(folder) ? readdirSync(folder) : [];
  const plans = runs.map((runId) => store.read.runs.planOf(runId)?.plan as Plan | undefined);
  const all = [...namedNow(root), ...plans.flatMap((plan) => plan?.repositories ?? [])];
  return [...new Map(all.map((one) => [one.path, one])).values()].filter(({ path }) => path === "." || existsSync(join(root, path, ".git")));
}

/** Those that project.yaml names, whatever is wrong with the other files. */
function namedNow(root: string): Repository[] {
  try {
    return repositoriesOf(readProject(root));
  } catch (error) {
    if (error instanceof ProjectProblems) return [];
    throw error;
  }
}

function workerRoutes(of: (request: LocalRequest) => Workers | undefined): LocalRoute[] {
  const found = (request: LocalRequest): Workers => {
    const workers = of(request);
    if (!workers) throw new RuntimeRefusal("project_not_found", `no open project has the key ${request.params["projectKey"]}`);
    return workers;
  };
  const PATH = "/v1/projects/:projectKey/workers";
  return [
    { method: "GET", path: PATH, answer: (request) => ({ workers: found(request).reports() }) },
    { method: "POST", path: PATH, answer: async (request) => ({ worker: await found(request).add(request.body) }) },
    {
      method: "POST",
      path: `${PATH}/:name/stop`,
      answer: async (request) => ({ name: request.params["name"], stopped: await found(request).remove(request.params["name"]!, "suspend") }),
    },
  ];
}

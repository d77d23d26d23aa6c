// The checkouts of this machine: every registered one is opened at start and looked at on each tick. One that cannot be opened stays listed with its reason.
import { statSync } from "node:fs";
import { RuntimeRefusal } from "../protocol/runtime-errors.ts";
import type { Clock } from "./clock.ts";
import type { Project } from "./contract.ts";
import type { NewId } from "./ids.ts";
import type { Log } from "./log.ts";
import { canonicalRoot, privateFolder, projectKey } from "./paths.ts";
import type { Redactor } from "./redact/redactor.ts";
import type { RegisteredProject, Registry } from "./registry.ts";
import { openEventStore } from "./store/event-store.ts";
import { openPromptStore } from "./store/prompts.ts";
import { type Pusher, pusher } from "./sync/push.ts";

export type OpenProject = Project & { pusher: Pusher };
/** A registered checkout: open, or why not. `missing` is a checkout that moved; its store is open so that its backlog still leaves. */
export type ProjectEntry = { row: RegisteredProject; open?: OpenProject; unavailable?: string; missing?: boolean };

export type ProjectsOptions = {
  registry: Registry;
  generation: number;
  clock: Clock;
  newId: NewId;
  random?: () => number;
  redactor: Redactor;
  log: Log;
  /** Opens event stores; another one only in tests. */
  openStore?: typeof openEventStore;
  /** Path of a project's databases. */
  paths(key: string): { folder: string; events: string; prompts: string };
  /** A checkout can run: called for each store that is opened while its folder is there. */
  onOpen(project: OpenProject): void;
  /** A checkout cannot run any more. */
  onClose(project: OpenProject): void;
};
export type Projects = ReturnType<typeof openProjects>;

/** Opens nothing by itself: call `refresh`. */
export function openProjects(options: ProjectsOptions) {
  const { registry, log } = options;
  const entries = new Map<string, ProjectEntry>();
  const running = new Set<OpenProject>();

  function refreshOne(row: RegisteredProject) {
    const entry = entries.get(row.projectKey) ?? { row };
    entries.set(row.projectKey, Object.assign(entry, { row }));
    try {
      if (entry.open) entry.open.store.probe();
      else {
        entry.open = open(row, options);
        log("store_opened", { projectKey: row.projectKey, projectId: row.projectId });
      }
      entry.missing = !isFolder(row.projectRoot);
      note(entry, entry.missing ? `the checkout ${row.projectRoot} is not there` : undefined);
    } catch (error) {
      close(entry);
      note(entry, reasonOf(error));
    }
    const { open: project } = entry;
    if (project && !entry.missing && !running.has(project)) start(project);
    if (project && entry.missing) stop(project);
  }

  function note(entry: ProjectEntry, unavailable: string | undefined) {
    if (unavailable && unavailable !== entry.unavailable)
      log("store_unavailable", { level: "warn", projectKey: entry.row.projectKey, projectId: entry.row.projectId, reason: unavailable });
    entry.unavailable = unavailable;
  }

  function start(project: OpenProject) {
    running.add(project);
    options.onOpen(project);
  }
  function stop(project: OpenProject) {
    if (running.delete(project)) options.onClose(project);
  }
  function close(entry: ProjectEntry) {
    if (!entry.open) return;
    stop(entry.open);
    for (const part of [entry.open.store, entry.open.prompts])
      try {
        part.close();
      } catch {} // its file failed already
    entry.open = undefined;
  }

  return {
    /** Opens every registered checkout that is not open, and checks those that are. */
    refresh: () => {
      for (const row of registry.projectsForRuntime(registry.runtimeId)) refreshOne(row);
      for (const row of registry.projectsOfOthers(registry.runtimeId))
        entries.set(row.projectKey, { row, unavailable: `its home is Runtime ${row.homeRuntimeId}, this one is ${registry.runtimeId}` });
    },
    /** Registers a checkout and opens it. @throws RuntimeRefusal project_not_found, project_conflict, or why its store cannot be opened */
    register: (checkout: { root: string; projectId: string; name: string; configRevision?: string; hubProject?: string }): OpenProject => {
      const projectRoot = canonicalRoot(checkout.root);
      const { projectId, name, configRevision = null, hubProject = null } = checkout;
      const row = registry.register({
        projectKey: projectKey(projectRoot),
        projectId,
        name,
        projectRoot,
        homeRuntimeId: registry.runtimeId,
        hubProject,
        configRevision,
      });
      refreshOne(row);
      const entry = entries.get(row.projectKey)!;
      if (!entry.open || entry.unavailable) throw new RuntimeRefusal("store_unavailable", `${name}: ${entry.unavailable}`);
      return entry.open;
    },
    entries: (): ProjectEntry[] => [...entries.values()],
    open: (): OpenProject[] => [...entries.values()].flatMap(({ open }) => open ?? []),
    /** A checkout that can run. @throws RuntimeRefusal project_not_found, store_unavailable */
    byKey: (key: string): OpenProject => {
      const entry = entries.get(key);
      if (!entry) throw new RuntimeRefusal("project_not_found", `no checkout of key ${key} is registered here`);
      return usable(entry);
    },
    /** The checkout that holds a run, else the one of the project that was used last. @throws RuntimeRefusal project_not_found, run_not_found, store_unavailable */
    find: ({ projectId, runId, among }: { projectId?: string; runId?: string; among?: (entry: ProjectEntry) => boolean }): OpenProject => {
      const all = [...entries.values()].filter((entry) => (projectId === undefined || entry.row.projectId === projectId) && (!among || among(entry)));
      if (all.length === 0)
        throw new RuntimeRefusal("project_not_found", `no checkout of ${projectId ?? "any project"} is registered on this machine`);
      if (runId !== undefined) {
        const holder = all.find(({ open }) => open?.store.read.runs.find(runId));
        if (!holder) throw new RuntimeRefusal("run_not_found", `no checkout on this machine has run ${runId}`);
        return usable(holder);
      }
      return usable(all.sort((a, b) => b.row.usedAt - a.row.usedAt)[0]!);
    },
    /** Closes every store. `lost` tells that they belong to another supervisor now. */
    closeAll: () => {
      for (const entry of entries.values()) close(entry);
    },
  };
}

function usable({ open, unavailable, row }: ProjectEntry): OpenProject {
  if (!open || unavailable) throw new RuntimeRefusal("store_unavailable", `${row.name}: ${unavailable ?? "its store is not open"}`);
  return open;
}

function open(row: RegisteredProject, options: ProjectsOptions): OpenProject {
  const { registry, generation, clock, newId, random, redactor, openStore = openEventStore } = options;
  const paths = options.paths(row.projectKey);
  privateFolder(paths.folder);
  redactor.addFolder(row.projectRoot); // before anything of this project can be written
  const { projectId, projectKey: key, projectRoot: root, name } = row;
  const store = openStore({ path: paths.events, projectId, runtimeId: registry.runtimeId, generation, redactor, clock, newId });
  try {
    const prompts = openPromptStore(paths.prompts, { redactor, clock });
    return { key, projectId, name, root, folder: paths.folder, store, prompts, pusher: pusher({ store, projectId, clock, random }) };
  } catch (error) {
    store.close();
    throw error;
  }
}

const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
const reasonOf = (error: unknown) =>
  error instanceof RuntimeRefusal ? `${error.code}: ${error.message}` : String((error as Error)?.message ?? error);

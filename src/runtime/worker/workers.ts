// The workers of one project: started with it, added and removed by request, and kept in a file.
import { join } from "node:path";
import { sha256 } from "../../protocol/canonical.ts";
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { EngineParts, Project } from "../contract.ts";
import type { Workspace } from "../engine/local.ts";
import { HARNESS_TABLE } from "../harness/table.ts";
import { HubAgent } from "../hub-agent.ts";
import { privateFolder } from "../paths.ts";
import { readProject } from "../project/bundle.ts";
import { repositoriesOf } from "../project/repositories.ts";
import { readSpec, readSpecs, type WorkerSpec, writeSpecs } from "./spec.ts";
import { Worker, type WorkerReport } from "./worker.ts";

/** Names the folder and branch of a writer. @param key its name in small letters */
const folderOf = (key: string): string => `worker-${sha256(key).slice(0, 12)}`;

export class Workers {
  private readonly workers = new Map<string, Worker>();

  constructor(
    private readonly project: Project,
    private readonly parts: EngineParts,
    private readonly waits: { firstMs: number; maxMs: number } | undefined,
  ) {}

  /** Starts every worker of the project. */
  open(): void {
    try {
      for (const spec of readSpecs(this.project.folder)) this.begin(spec);
    } catch (error) {
      this.parts.log("workers_not_started", {
        level: "error",
        projectKey: this.project.key,
        reason: error instanceof Error ? error.message : String(error),
      });
    }
  }

  /** Adds a worker, or replaces the one of the same name. @throws RuntimeRefusal runtime_protocol_error, hub_not_bound, harness_missing */
  async add(given: unknown): Promise<WorkerReport> {
    const spec = readSpec(given);
    if (!this.parts.hub(this.project)) throw new RuntimeRefusal("hub_not_bound", "a worker needs a hub, and this machine is bound to none");
    this.requireProgram(spec);
    await this.remove(spec.name, "suspend");
    writeSpecs(this.project.folder, [...readSpecs(this.project.folder), spec]);
    return this.begin(spec).report();
  }

  /** Ends a worker and forgets it. Answers whether there was one. */
  async remove(name: string, how: "suspend" | "leave"): Promise<boolean> {
    const key = name.toLowerCase();
    const worker = this.workers.get(key);
    this.workers.delete(key);
    await worker?.end(how);
    const specs = readSpecs(this.project.folder);
    const kept = specs.filter((spec) => spec.name.toLowerCase() !== key);
    if (kept.length !== specs.length) writeSpecs(this.project.folder, kept);
    return worker !== undefined;
  }

  /** Whether a folder of worktrees is that of a worker who is here. */
  owns(folder: string): boolean {
    return [...this.workers.keys()].some((key) => folderOf(key) === folder);
  }

  reports(): WorkerReport[] {
    return [...this.workers.values()].map((worker) => worker.report());
  }

  /** Ends all of them; they come back with the project. */
  async close(how: "suspend" | "leave"): Promise<void> {
    const all = [...this.workers.values()];
    this.workers.clear();
    await Promise.all(all.map((worker) => worker.end(how)));
  }

  /** A worker whose program is not here could only fail every request. */
  private requireProgram({ harness, command }: WorkerSpec): void {
    const program = HARNESS_TABLE[harness].program ?? command?.[0];
    if (program === undefined || this.parts.machine.programs.find(program, process.env, this.project.root)) return;
    throw new RuntimeRefusal("harness_missing", `the program ${program} is not installed on this machine`);
  }

  private begin(spec: WorkerSpec): Worker {
    const { project, parts } = this;
    const folder = join(project.folder, "workers", sha256(spec.name.toLowerCase()).slice(0, 24));
    privateFolder(join(project.folder, "workers"));
    privateFolder(folder);
    const purpose = spec.purpose ?? `Answers requests with ${spec.harness}`;
    const agent = new HubAgent({
      hub: () => parts.hub(project),
      name: spec.name,
      purpose,
      model: spec.model?.model ?? spec.harness,
      folder: join(parts.folder, "agents"),
      remember: parts.remember,
    });
    const worker = new Worker({
      spec,
      agent,
      folder,
      workspace: () => this.workspaceOf(spec),
      env: process.env,
      clock: parts.clock,
      programs: parts.machine.programs,
      confirm: project.store.probe,
      log: parts.log,
      redact: (text) => parts.redactor.secrets(text).text,
      afterFailure: this.waits,
    });
    this.workers.set(spec.name.toLowerCase(), worker);
    worker.start();
    return worker;
  }

  /** A reader works in the checkout itself, a writer in worktrees of its own, which stay. */
  private async workspaceOf(spec: WorkerSpec): Promise<Workspace> {
    const { root, folder } = this.project;
    const { worktrees } = this.parts.machine;
    if (spec.access !== "write") return { access: "read", path: root, trees: [] };
    const repositories = repositoriesOf(readProject(root));
    const pinned = await worktrees.pinHeads(root, repositories);
    const name = folderOf(spec.name.toLowerCase());
    const branch = `kxm/${name}`;
    const path = join(folder, "worktrees", name, "work");
    const workspace: Workspace = { access: "write", path, trees: repositories.map((one) => ({ ...one, base: pinned[one.id]!.base, branch })) };
    await worktrees.materialize(root, workspace);
    return workspace;
  }
}

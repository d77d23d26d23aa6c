// The repositories of a project, and what an agent may do in each: the least of what its tools, its ceiling and the step allow.
import type { AgentFile, ProjectFile } from "../../protocol/project-files.ts";
import type { Step } from "../../protocol/workflow-file.ts";

/** A Git repository of a project: its name in the project's files, and its folder below the project's root ("." is the root itself). */
export type Repository = { id: string; path: string };
/** What may be done in a repository. `none`: it is not even there. */
export type Access = "none" | "read" | "write";

const ORDER: readonly Access[] = ["none", "read", "write"];
const least = (...all: Access[]): Access => ORDER[Math.min(...all.map((one) => ORDER.indexOf(one)))]!;

/** The project's repositories; one that names none is a single repository called main. Folders are often written with a slash at the end. */
export const repositoriesOf = ({ repositories = [{ id: "main", path: "." }] }: ProjectFile): Repository[] =>
  repositories.map(({ id, path }) => ({ id, path: path.replace(/\/$/, "") }));

/** A map that is given names all that is more than reading: what it leaves out may be read. */
const from = (map: Record<string, Access> | undefined, id: string, otherwise: Access): Access =>
  map === undefined ? otherwise : (map[id] ?? "read");

const perRepository = (repositories: Repository[], of: (id: string) => Access): Record<string, Access> =>
  Object.fromEntries(repositories.map(({ id }) => [id, of(id)]));

/** Most an agent may do per repository, whatever a step asks for. */
export const ceilingsOf = (agent: AgentFile, repositories: Repository[]): Record<string, Access> =>
  perRepository(repositories, (id) => least(agent.tools === "workspace-writer" ? "write" : "read", from(agent.repositories, id, "write")));

/** What a step asks for per repository. A panel only reads unless it says otherwise; gates read everything. */
export const askedBy = (step: Step, repositories: Repository[]): Record<string, Access> =>
  perRepository(repositories, (id) => from(step.repositories, id, step.kind === "agent" ? "write" : "read"));

/** What an agent gets in a step. */
export const granted = (asked: Record<string, Access>, ceilings: Record<string, Access>): Record<string, Access> =>
  Object.fromEntries(Object.entries(asked).map(([id, access]) => [id, least(access, ceilings[id] ?? "read")]));

/** Whether one folder of a project lies in another. */
export const isWithin = (inner: string, outer: string): boolean => inner !== outer && (outer === "." || inner.startsWith(`${outer}/`));

// Loads a project's files from .kxm: reads each file once, collects every problem of every file, and never follows a link out of the project.
import { lstatSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { join, sep } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import { sha256 } from "../../protocol/canonical.ts";
import { AgentFile, CURRENCY_DEFAULT, type Gate, GatesFile, IDENTIFIER, PricesFile, ProjectFile, REFERENCES } from "../../protocol/project-files.ts";
import { WorkflowFile } from "../../protocol/workflow-file.ts";
import { checkFile } from "./check.ts";
import { checkGraph } from "./graph.ts";
import { type MemoryNote, readMemory } from "./memory.ts";
import { type Problem, ProjectProblems, sortProblems } from "./problems.ts";
import { repositoriesOf } from "./repositories.ts";
import { type Located, readYaml, YAML_BYTES_MAX } from "./yaml.ts";

/** The folder of project files below the project's root. */
const PROJECT_FOLDER = ".kxm";
/** Files of one folder that are read. */
const FILES_PER_FOLDER_MAX = 512;

/** A project as its files say it, checked in full. */
export type Bundle = {
  root: string;
  project: ProjectFile;
  agents: Map<string, AgentFile>;
  workflows: Map<string, WorkflowFile>;
  gates: Map<string, Gate>;
  prices: PricesFile | undefined;
  memory: MemoryNote[];
  /** SHA-256 of every file that was read, by its path below the root. */
  files: Record<string, string>;
};

/** Which project it is, and what it is called at the hub where its file says so. */
export type Identity = Pick<ProjectFile, "id" | "name" | "hubProject">;
const identityOf = ({ id, name, hubProject }: ProjectFile): Identity => ({ id, name, ...(hubProject && { hubProject }) });

type Reader = { root: string; problems: Problem[]; files: Record<string, string> };

const problemAt = (file: string, code: string, message: string): Problem => ({ file, line: 1, column: 1, code, message });

/** The bytes of a plain file inside the root; undefined when it is missing or refused. */
function readBytes(reader: Reader, path: string, required: boolean): Uint8Array | undefined {
  const full = join(reader.root, path);
  try {
    if (!lstatSync(full).isFile() && !lstatSync(full).isSymbolicLink()) {
      reader.problems.push(problemAt(path, "file_kind", "this must be a plain file"));
      return undefined;
    }
    const real = realpathSync(full);
    const stat = lstatSync(real);
    if (!real.startsWith(reader.root + sep) || !stat.isFile()) {
      reader.problems.push(problemAt(path, "file_outside", "the link leads out of the project"));
      return undefined;
    }
    if (stat.size > YAML_BYTES_MAX) {
      reader.problems.push(problemAt(path, "yaml_too_large", `${stat.size} bytes are more than ${YAML_BYTES_MAX}`));
      return undefined;
    }
    const bytes = readFileSync(real);
    reader.files[path] = sha256(bytes);
    return bytes;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== "ENOENT") reader.problems.push(problemAt(path, "file_unreadable", `the file cannot be read (${code})`));
    else if (required) reader.problems.push(problemAt(path, "file_missing", "the file does not exist; `kxm init` makes a project"));
    return undefined;
  }
}

type Checked<T> = { located: Located; value: T };

function readChecked<T>(reader: Reader, path: string, schema: TSchema, required: boolean): Checked<T> | undefined {
  const bytes = readBytes(reader, path, required);
  if (!bytes) return undefined;
  const before = reader.problems.length;
  const located = readYaml(path, bytes, reader.problems);
  if (!located || reader.problems.length > before) return undefined;
  const value = checkFile(schema, located, reader.problems) as T | undefined;
  return value === undefined ? undefined : { located, value };
}

/** Every file of a folder whose name is an id with the given ending. */
function list(reader: Reader, folder: string, ending: string): { id: string; path: string }[] {
  let names: string[];
  try {
    names = readdirSync(join(reader.root, folder)).sort();
  } catch {
    return [];
  }
  if (names.length > FILES_PER_FOLDER_MAX) reader.problems.push(problemAt(folder, "folder_too_large", `more than ${FILES_PER_FOLDER_MAX} files`));
  const found: { id: string; path: string }[] = [];
  for (const name of names.slice(0, FILES_PER_FOLDER_MAX)) {
    if (name.startsWith(".") || name.toLowerCase() === "readme.md") continue;
    const path = `${folder}/${name}`;
    const id = name.slice(0, -ending.length);
    if (!name.endsWith(ending)) reader.problems.push(problemAt(path, "file_name", `files here end in ${ending}`));
    else if (id.length > 64 || !new RegExp(IDENTIFIER).test(id))
      reader.problems.push(
        problemAt(path, "file_name", "the file's name is its id: small letters, digits, - and _, starting with a letter, at most 64"),
      );
    else found.push({ id, path });
  }
  return found;
}

function checkRepositories({ located, value }: Checked<ProjectFile>, problems: Problem[]): void {
  const repositories = repositoriesOf(value);
  for (const field of ["id", "path"] as const)
    repositories.forEach((one, n) => {
      if (repositories.findIndex((other) => other[field] === one[field]) === n) return;
      const message = `another repository has the ${field} ${one[field]}`;
      problems.push({ file: located.file, ...located.at(`/repositories/${n}/${field}`), code: "repository_duplicate", message });
    });
}

/** What a gate names of its run must be there when it starts. */
function checkGates({ located, value }: Checked<GatesFile>, project: ProjectFile, problems: Problem[]): void {
  const known = new Set(repositoriesOf(project).map(({ id }) => id));
  for (const [id, gate] of Object.entries(value.gates)) {
    if (!("argv" in gate)) continue;
    const texts = [...gate.argv.map((text, n) => ({ text, at: `argv/${n}` })), ...(gate.lease ? [{ text: gate.lease, at: "lease" }] : [])];
    for (const { text, at } of texts)
      for (const [, , repository] of text.matchAll(REFERENCES))
        if (repository !== undefined && !known.has(repository)) {
          const message = `project.yaml has no repository called ${repository}`;
          problems.push({ file: located.file, ...located.at(`/gates/${id}/${at}`), code: "repository_unknown", message });
        }
  }
}

function checkAgents(agents: Map<string, Checked<AgentFile>>, project: ProjectFile, problems: Problem[]): void {
  for (const { located, value } of agents.values()) {
    const harness = value.harness ?? project.defaultHarness;
    const breach = (pointer: string, code: string, message: string) => problems.push({ file: located.file, ...located.at(pointer), code, message });
    if (harness === "command" && !value.command) breach("", "command_missing", "an agent with the harness command needs command: [program, …]");
    if (harness !== "command" && value.command) breach("/command", "command_unused", `the harness ${harness} takes no command`);
    const repositories = new Set(repositoriesOf(project).map(({ id }) => id));
    for (const id of Object.keys(value.repositories ?? {}))
      if (!repositories.has(id)) breach(`/repositories/${id}`, "repository_unknown", `project.yaml has no repository called ${id}`);
  }
}

/** Files that others refer to: while one of them has a problem, what refers to it cannot be judged. */
const REFERRED = /^\.kxm\/(?:project\.yaml|gates\.yaml|agents)(?:\/|$)/;

/** Estimates in one currency cannot be held against money in another. */
function checkCurrency({ limits }: WorkflowFile, project: ProjectFile, prices: PricesFile | undefined) {
  const currency = limits?.currency ?? project.limits?.currency ?? CURRENCY_DEFAULT;
  const counted = (limits?.maxModelCost ?? project.limits?.maxModelCost) !== undefined;
  if (!counted || prices === undefined || prices.currency === currency) return [];
  const message = `the money is counted in ${currency}, prices.yaml is in ${prices.currency}: name one currency in both`;
  return [{ pointer: limits?.maxModelCost === undefined ? "" : "/limits/maxModelCost", code: "currency_mismatch", message }];
}

const values = <T>(checked: Map<string, Checked<T>>): Map<string, T> => new Map([...checked].map(([id, { value }]) => [id, value]));

/**
 * Reads and checks a whole project.
 * @param root the folder that holds .kxm
 * @returns the bundle and its problems; with problems the bundle is undefined, and `identity` tells which project it is if that can be read
 */
export function inspectBundle(root: string): { bundle: Bundle | undefined; identity: Identity | undefined; problems: Problem[] } {
  const reader: Reader = { root: rootOf(root), problems: [], files: {} };
  const at = (path: string) => `${PROJECT_FOLDER}/${path}`;
  const project = readChecked<ProjectFile>(reader, at("project.yaml"), ProjectFile, true);
  const readAll = <T>(folder: string, schema: TSchema) => {
    const found = new Map<string, Checked<T>>();
    for (const { id, path } of list(reader, at(folder), ".yaml")) {
      const checked = readChecked<T>(reader, path, schema, true);
      if (checked) found.set(id, checked);
    }
    return found;
  };
  const agents = readAll<AgentFile>("agents", AgentFile);
  const workflows = readAll<WorkflowFile>("workflows", WorkflowFile);
  const gates = readChecked<GatesFile>(reader, at("gates.yaml"), GatesFile, false);
  const prices = readChecked<PricesFile>(reader, at("prices.yaml"), PricesFile, false);
  const memory = list(reader, at("memory"), ".md").flatMap(({ id, path }) => {
    const bytes = readBytes(reader, path, true);
    const note = bytes && readMemory(id, path, bytes, reader.problems);
    return note ? [note] : [];
  });
  const gateMap = new Map(Object.entries(gates?.value.gates ?? {}));
  if (project && !reader.problems.some(({ file }) => REFERRED.test(file))) {
    checkRepositories(project, reader.problems);
    checkAgents(agents, project.value, reader.problems);
    if (gates) checkGates(gates, project.value, reader.problems);
    const known = {
      agents: values(agents),
      gates: gateMap,
      repositories: new Set(repositoriesOf(project.value).map(({ id }) => id)),
    };
    for (const { located, value } of workflows.values())
      for (const { pointer, code, message } of [...checkGraph(value, known), ...checkCurrency(value, project.value, prices?.value)])
        reader.problems.push({ file: located.file, ...located.at(pointer), code, message });
    const wanted = project.value.defaultWorkflow;
    if (!workflows.has(wanted) && !reader.problems.some(({ file }) => file === at(`workflows/${wanted}.yaml`)))
      reader.problems.push({
        file: project.located.file,
        ...project.located.at("/defaultWorkflow"),
        code: "workflow_unknown",
        message: `no workflow is called ${wanted}`,
      });
  }
  const problems = sortProblems(reader.problems);
  const identity = project && identityOf(project.value);
  if (!project || problems.length > 0) return { bundle: undefined, identity, problems };
  const bundle: Bundle = {
    root: reader.root,
    project: project.value,
    agents: values(agents),
    workflows: values(workflows),
    gates: gateMap,
    prices: prices?.value,
    memory,
    files: reader.files,
  };
  return { bundle, identity, problems };
}

function rootOf(root: string): string {
  try {
    return realpathSync(root);
  } catch {
    return root; // every file in it is then reported as missing
  }
}

/** The project file alone, whatever the others are like. @throws ProjectProblems with every finding in it */
export function readProject(root: string): ProjectFile {
  const reader: Reader = { root: rootOf(root), problems: [], files: {} };
  const project = readChecked<ProjectFile>(reader, `${PROJECT_FOLDER}/project.yaml`, ProjectFile, true);
  if (!project) throw new ProjectProblems(sortProblems(reader.problems));
  return project.value;
}

/** The bundle. @throws ProjectProblems with every finding */
export function loadBundle(root: string): Bundle {
  const { bundle, problems } = inspectBundle(root);
  if (!bundle) throw new ProjectProblems(problems);
  return bundle;
}

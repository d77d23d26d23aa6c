// A compiled plan: all that a run needs from the project's files, in one value with a hash. Compiled once and pinned; later edits change nothing in a run.
import { canonical, sha256, taggedSha256 } from "../../protocol/canonical.ts";
import { type AgentFile, CURRENCY_DEFAULT, type Gate, type HarnessId, type PricesFile, type ProjectFile } from "../../protocol/project-files.ts";
import type { EvidenceKind, Step, StepKind, WorkflowFile } from "../../protocol/workflow-file.ts";
import type { Bundle } from "./bundle.ts";
import { type Access, askedBy, ceilingsOf, type Repository, repositoriesOf } from "./repositories.ts";
import { type Route, routesOf } from "./steps.ts";

/** Attempts of a step that does not say. */
const MAX_ATTEMPTS_DEFAULT = 3;
/** Longest attempt of an agent or gate that does not say, in milliseconds. */
export const AGENT_TIMEOUT_MS_DEFAULT = 3_600_000;
export const GATE_TIMEOUT_MS_DEFAULT = 600_000;
/** Runs of one project at the same time unless it says. */
export const CONCURRENT_RUNS_DEFAULT = 4;

export type PlanAgent = {
  id: string;
  purpose: string;
  instructions: string;
  harness: HarnessId;
  model?: { provider: string; model: string };
  tools: "read-only" | "workspace-writer";
  /** Most it may do per repository. */
  repositories: Record<string, Access>;
  env: string[];
  timeoutMs: number;
  command?: string[];
};
export type PlanPanel = {
  agents: string[];
  minimum: number;
  target: number;
  maximum: number;
  maxParallel: number;
  maxAttempts: number;
  distinctBy?: "provider" | "model";
  strategy: "all" | "all-settled" | "quorum" | "first-success";
  minimumPassed: number;
  cancelRemaining: boolean;
};
export type PlanEvidence = { key: string; kind: EvidenceKind; minimum: number; reusable: boolean; distinct: boolean };
export type PlanStep = {
  id: string;
  kind: StepKind;
  description: string;
  instructions: string;
  routes: Route[];
  outcomes: string[];
  maxAttempts: number;
  timeoutMs?: number;
  /** What it asks for per repository. */
  repositories: Record<string, Access>;
  agent?: string;
  gate?: string;
  expect: "pass" | "fail";
  signal?: string;
  panel?: PlanPanel;
  requiredEvidence: PlanEvidence[];
};
export type PlanLimits = { maxTransitions?: number; maxRunDurationMs?: number; maxAgentTimeMs?: number; maxModelCost?: number; currency: string };
export const PLAN_SCHEMA = "kxm.plan.v1";
/** What a run executes. */
export type Plan = {
  schema: typeof PLAN_SCHEMA;
  projectId: string;
  workflowId: string;
  description: string;
  /** The first one is what is meant where none is named. */
  repositories: Repository[];
  coordinator?: { id: string; instructions: string };
  limits: PlanLimits;
  planHash?: { step: string; evidenceKey: string };
  reproOracle?: { step: string; evidenceKey: string };
  requirePlanHash: string[];
  steps: PlanStep[];
  agents: Record<string, PlanAgent>;
  gates: Record<string, Gate>;
  prices?: PricesFile;
  sync: { results: "summary" | "none"; fileChanges: "paths" | "counts" };
};

/** The revisions that every run pins, in the forms the sync event wants. */
export type Revisions = {
  configRevision: string;
  memoryRevision: string;
  executorPolicyRevision: string;
  toolPolicyRevision: string;
  syncPolicyRevision: string;
};

function compilePanel(step: Step): PlanPanel | undefined {
  if (!step.assignments || !step.join) return undefined;
  const { allowedAgents, minimum = 1, target = allowedAgents.length, distinctBy } = step.assignments;
  return {
    agents: allowedAgents,
    minimum,
    target,
    maximum: step.assignments.maximum ?? target,
    maxParallel: step.assignments.maxParallel ?? target,
    maxAttempts: step.assignments.maxAttemptsPerAssignment ?? 2,
    distinctBy,
    strategy: step.join.strategy,
    minimumPassed: step.join.minimumPassed ?? (step.join.strategy === "all" ? target : minimum),
    cancelRemaining: step.join.cancelRemaining ?? true,
  };
}

function compileStep(bundle: Bundle, steps: Step[], index: number): PlanStep {
  const step = steps[index]!;
  const routes = routesOf(steps, index);
  return {
    id: step.id,
    kind: step.kind,
    description: step.description ?? "",
    instructions: step.instructions ?? "",
    routes,
    outcomes: routes.map(({ outcome }) => outcome),
    maxAttempts: step.maxAttempts ?? (step.kind === "approval" || step.kind === "wait" ? 1 : MAX_ATTEMPTS_DEFAULT),
    timeoutMs: step.timeoutMs,
    repositories: askedBy(step, repositoriesOf(bundle.project)),
    agent: step.agent,
    gate: step.gate,
    expect: step.expect ?? "pass",
    signal: step.signal,
    panel: compilePanel(step),
    requiredEvidence: (step.requiredEvidence ?? []).map((evidence) => ({
      key: evidence.key,
      kind: evidence.kind,
      minimum: evidence.minimum ?? 1,
      reusable: evidence.reusableAcrossAttempts ?? false,
      distinct: evidence.producerPolicy === "distinct",
    })),
  };
}

const compileAgent = (id: string, agent: AgentFile, project: ProjectFile): PlanAgent => ({
  id,
  purpose: agent.purpose,
  instructions: agent.instructions ?? "",
  harness: agent.harness ?? project.defaultHarness,
  model: agent.model,
  tools: agent.tools ?? "read-only",
  repositories: ceilingsOf(agent, repositoriesOf(project)),
  env: agent.env ?? [],
  timeoutMs: agent.timeoutMs ?? AGENT_TIMEOUT_MS_DEFAULT,
  command: agent.command,
});

function limitsOf(workflow: WorkflowFile, project: ProjectFile): PlanLimits {
  const { maxTransitions, maxRunDurationMs, maxAgentTimeMs, maxModelCost, currency } = workflow.limits ?? {};
  return {
    maxTransitions,
    maxRunDurationMs: maxRunDurationMs ?? project.limits?.maxRunDurationMs,
    maxAgentTimeMs,
    maxModelCost: maxModelCost ?? project.limits?.maxModelCost,
    currency: currency ?? project.limits?.currency ?? CURRENCY_DEFAULT,
  };
}

/** Compiles one workflow of a checked bundle. Pure: the same files give the same plan and hash. */
export function compilePlan(bundle: Bundle, workflowId: string): { plan: Plan; planHash: string } {
  const workflow = bundle.workflows.get(workflowId)!;
  const steps = workflow.steps.map((_, index) => compileStep(bundle, workflow.steps, index));
  const agentIds = new Set(steps.flatMap((step) => [...(step.agent ? [step.agent] : []), ...(step.panel?.agents ?? [])]));
  const gateIds = new Set(steps.flatMap((step) => (step.gate ? [step.gate] : [])));
  const coordinator = workflow.coordinator ? bundle.agents.get(workflow.coordinator) : undefined;
  const compiled: Plan = {
    schema: PLAN_SCHEMA,
    projectId: bundle.project.id,
    workflowId,
    description: workflow.description ?? "",
    repositories: repositoriesOf(bundle.project),
    coordinator: coordinator && { id: workflow.coordinator!, instructions: coordinator.instructions ?? "" },
    limits: limitsOf(workflow, bundle.project),
    planHash: workflow.planHash,
    reproOracle: workflow.reproOracle,
    requirePlanHash: workflow.requirePlanHash ?? [],
    steps,
    agents: Object.fromEntries([...agentIds].sort().map((id) => [id, compileAgent(id, bundle.agents.get(id)!, bundle.project)])),
    gates: Object.fromEntries([...gateIds].sort().map((id) => [id, bundle.gates.get(id)!])),
    prices: bundle.prices,
    sync: { results: bundle.project.sync?.results ?? "summary", fileChanges: bundle.project.sync?.fileChanges ?? "paths" },
  };
  const text = canonical(compiled);
  return { plan: JSON.parse(text) as Plan, planHash: taggedSha256(text) };
}

/** The revisions of a bundle. `redactionVersion` names the rules that scrub what leaves the machine. */
export function revisionsOf(bundle: Bundle, redactionVersion: string): Revisions {
  const isMemory = (path: string) => path.startsWith(".kxm/memory/");
  const pick = (want: boolean) => canonical(Object.fromEntries(Object.entries(bundle.files).filter(([path]) => isMemory(path) === want)));
  const agents = [...bundle.agents].sort(([a], [b]) => (a < b ? -1 : 1));
  const executors = agents.map(([id, agent]) => [
    id,
    agent.harness ?? bundle.project.defaultHarness,
    agent.model ?? null,
    agent.command ?? null,
    agent.timeoutMs ?? null,
  ]);
  const tools = agents.map(([id, agent]) => [id, agent.tools ?? "read-only", agent.repositories ?? {}, agent.env ?? []]);
  return {
    configRevision: taggedSha256(pick(false)),
    memoryRevision: `mem_${sha256(pick(true)).slice(0, 32)}`,
    executorPolicyRevision: taggedSha256(canonical(executors)),
    toolPolicyRevision: taggedSha256(canonical(tools)),
    syncPolicyRevision: taggedSha256(canonical([bundle.project.sync ?? {}, redactionVersion])),
  };
}

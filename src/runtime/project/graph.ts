// Graph rules of a workflow, all checked before a run exists. Each rule has its own code and reports every breach, not the first.

import type { AgentFile, Gate } from "../../protocol/project-files.ts";
import { type Step, TERMINAL, type WorkflowFile } from "../../protocol/workflow-file.ts";
import { builtInOutcomes, misplacedFields, type Route, routesOf, takesOwnOutcomes } from "./steps.ts";

/** What other files define, for references. */
export type Known = { agents: Map<string, AgentFile>; gates: Map<string, Gate>; repositories: Set<string> };

/** A breach at a JSON pointer inside the workflow file. */
export type Breach = { pointer: string; code: string; message: string };

type Graph = { steps: Step[]; routes: Route[][]; index: Map<string, number> };

/** Every breach of every rule. An empty list means that a run can execute the workflow to an end. */
export function checkGraph(workflow: WorkflowFile, known: Known): Breach[] {
  const breaches: Breach[] = [];
  const { steps } = workflow;
  const index = new Map<string, number>();
  steps.forEach((step, i) => {
    if (index.has(step.id)) breaches.push({ pointer: `/steps/${i}/id`, code: "step_id_duplicate", message: `another step is called ${step.id}` });
    else index.set(step.id, i);
  });
  const graph: Graph = { steps, routes: steps.map((_, i) => routesOf(steps, i)), index };
  steps.forEach((step, i) => {
    breaches.push(
      ...checkFields(step, i),
      ...checkReferences(step, i, known),
      ...checkOutcomes(step, i),
      ...checkTargets(graph, i),
      ...checkPanel(step, i, known),
    );
  });
  breaches.push(...checkCaptures(workflow, index));
  if (workflow.coordinator && !known.agents.has(workflow.coordinator))
    breaches.push({ pointer: "/coordinator", code: "agent_unknown", message: `no agent is called ${workflow.coordinator}` });
  // Reachability would only repeat what broken ids and targets have already said.
  if (breaches.some(({ code }) => code === "step_id_duplicate" || code === "target_unknown")) return breaches;
  return [...breaches, ...checkReach(graph), ...checkCycles(workflow, graph), ...checkBypass(graph)];
}

function checkFields(step: Step, i: number): Breach[] {
  const { forbidden, missing } = misplacedFields(step);
  return [
    ...forbidden.map((field) => ({
      pointer: `/steps/${i}/${field}`,
      code: "step_field_forbidden",
      message: `a ${step.kind} step takes no ${field}`,
    })),
    ...missing.map((field) => ({ pointer: `/steps/${i}`, code: "step_field_missing", message: `the ${step.kind} step ${step.id} needs ${field}` })),
  ];
}

function checkReferences(step: Step, i: number, known: Known): Breach[] {
  const breaches: Breach[] = [];
  const agentMissing = (pointer: string, id: string) => {
    if (!known.agents.has(id))
      breaches.push({ pointer, code: "agent_unknown", message: `no agent is called ${id}: .kxm/agents/${id}.yaml does not exist` });
  };
  if (step.agent) agentMissing(`/steps/${i}/agent`, step.agent);
  step.assignments?.allowedAgents.forEach((id, n) => agentMissing(`/steps/${i}/assignments/allowedAgents/${n}`, id));
  if (step.gate && !known.gates.has(step.gate))
    breaches.push({ pointer: `/steps/${i}/gate`, code: "gate_unknown", message: `gates.yaml has no gate called ${step.gate}` });
  for (const id of Object.keys(step.repositories ?? {}))
    if (!known.repositories.has(id))
      breaches.push({
        pointer: `/steps/${i}/repositories/${id}`,
        code: "repository_unknown",
        message: `project.yaml has no repository called ${id}`,
      });
  const keys = new Set<string>();
  step.requiredEvidence?.forEach(({ key }, n) => {
    if (keys.has(key))
      breaches.push({ pointer: `/steps/${i}/requiredEvidence/${n}/key`, code: "evidence_duplicate", message: `${key} is required twice` });
    keys.add(key);
  });
  return breaches;
}

function checkOutcomes(step: Step, i: number): Breach[] {
  const builtIn = builtInOutcomes(step);
  const given = Object.keys(step.on ?? {});
  const unknown = takesOwnOutcomes(step) ? [] : given.filter((outcome) => !builtIn.includes(outcome));
  const breaches = unknown.map((outcome) => ({
    pointer: `/steps/${i}/on/${outcome}`,
    code: "outcome_impossible",
    message: `a ${step.kind} step${step.kind === "gate" ? ` with expect ${step.expect ?? "pass"}` : ""} never ends in ${outcome}; it ends in ${builtIn.join(", ")}`,
  }));
  if (step.kind !== "gate") return breaches;
  const undeclared = builtIn.filter((outcome) => !given.includes(outcome));
  return [
    ...breaches,
    ...undeclared.map((outcome) => ({
      pointer: `/steps/${i}`,
      code: "gate_outcome_undeclared",
      message: `the gate step ${step.id} must say in on: where ${outcome} leads`,
    })),
  ];
}

function checkTargets(graph: Graph, i: number): Breach[] {
  return graph.routes[i]!.filter(({ target, declared }) => declared && target !== TERMINAL && !graph.index.has(target)).map(
    ({ outcome, target }) => ({
      pointer: `/steps/${i}/on/${outcome}`,
      code: "target_unknown",
      message: `no step is called ${target}`,
    }),
  );
}

function checkPanel(step: Step, i: number, known: Known): Breach[] {
  const { assignments: panel, join } = step;
  if (!panel) return [];
  const at = `/steps/${i}/assignments`;
  const breaches: Breach[] = [];
  const minimum = panel.minimum ?? 1;
  const target = panel.target ?? panel.allowedAgents.length;
  const maximum = panel.maximum ?? target;
  if (minimum > target || target > maximum)
    breaches.push({ pointer: at, code: "assignments_bounds", message: `minimum ${minimum} ≤ target ${target} ≤ maximum ${maximum} does not hold` });
  if (join?.minimumPassed !== undefined && join.minimumPassed > maximum)
    breaches.push({
      pointer: `/steps/${i}/join/minimumPassed`,
      code: "quorum_impossible",
      message: `${join.minimumPassed} can never pass: at most ${maximum} are assigned`,
    });
  if (join?.strategy === "quorum" && join.minimumPassed === undefined)
    breaches.push({ pointer: `/steps/${i}/join`, code: "quorum_missing", message: "the strategy quorum needs minimumPassed" });
  if (join && join.strategy !== "first-success" && Object.values(step.repositories ?? {}).includes("write"))
    breaches.push({
      pointer: `/steps/${i}/repositories`,
      code: "panel_writes",
      message: `only a panel with first-success may write: with ${join.strategy} there is no single result to go on with`,
    });
  if (panel.distinctBy) {
    const names = panel.allowedAgents.map((id) => known.agents.get(id)?.model?.[panel.distinctBy!] ?? id);
    const distinct = new Set(names).size;
    if (distinct < target)
      breaches.push({
        pointer: `${at}/distinctBy`,
        code: "quorum_impossible",
        message: `only ${distinct} of the allowed agents differ in ${panel.distinctBy}, ${target} are needed`,
      });
  }
  return breaches;
}

function checkCaptures(workflow: WorkflowFile, index: Map<string, number>): Breach[] {
  const breaches: Breach[] = [];
  for (const name of ["planHash", "reproOracle"] as const) {
    const capture = workflow[name];
    if (capture && !index.has(capture.step))
      breaches.push({ pointer: `/${name}/step`, code: "step_unknown", message: `no step is called ${capture.step}` });
  }
  workflow.requirePlanHash?.forEach((id, n) => {
    if (!index.has(id)) breaches.push({ pointer: `/requirePlanHash/${n}`, code: "step_unknown", message: `no step is called ${id}` });
  });
  if (workflow.requirePlanHash && !workflow.planHash)
    breaches.push({ pointer: "/requirePlanHash", code: "plan_hash_unset", message: "requirePlanHash needs planHash: nothing would ever pin a plan" });
  return breaches;
}

/** Steps reached from `start` along the routes that `keep` lets through; also whether a terminal of `completed` is reached. */
export function walk(
  graph: Pick<Graph, "routes" | "index">,
  start: number,
  keep: (from: number, route: Route) => boolean,
): { seen: Set<number>; completes: boolean; ends: boolean } {
  const seen = new Set([start]);
  const queue = [start];
  let completes = false;
  let ends = false;
  for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
    for (const route of graph.routes[at]!) {
      if (!keep(at, route)) continue;
      if (route.target === TERMINAL) {
        ends = true;
        completes ||= route.terminalStatus === "completed";
        continue;
      }
      const next = graph.index.get(route.target)!;
      if (!seen.has(next)) queue.push(next);
      seen.add(next);
    }
  }
  return { seen, completes, ends };
}

function checkReach(graph: Graph): Breach[] {
  const breaches: Breach[] = [];
  const { seen, completes } = walk(graph, 0, () => true);
  graph.steps.forEach((step, i) => {
    if (!seen.has(i)) breaches.push({ pointer: `/steps/${i}/id`, code: "step_unreachable", message: `no path leads to ${step.id}` });
    // Only what the author wrote, or the plain way on, counts as an end: that failures end every run somehow is no plan.
    const planned = walk(graph, i, (_, route) => route.declared || route.outcome === "passed");
    if (!planned.ends) breaches.push({ pointer: `/steps/${i}`, code: "step_dead_end", message: `from ${step.id} no path leads to $terminal` });
  });
  if (!completes) breaches.push({ pointer: "/steps", code: "never_completes", message: "no path ends the run as completed" });
  return breaches;
}

function checkCycles(workflow: WorkflowFile, graph: Graph): Breach[] {
  const breaches: Breach[] = [];
  let cyclic = false;
  graph.routes.forEach((routes, i) => {
    for (const route of routes) {
      const target = graph.index.get(route.target);
      if (target === undefined || target > i) continue;
      cyclic = true;
      if (route.maxTransitions === undefined)
        breaches.push({
          pointer: `/steps/${i}/on/${route.outcome}`,
          code: "back_edge_unbounded",
          message: `${graph.steps[i]!.id} → ${route.target} goes back and needs maxTransitions: write {target: ${route.target}, maxTransitions: 3}`,
        });
    }
  });
  if (cyclic && workflow.limits?.maxTransitions === undefined)
    breaches.push({
      pointer: workflow.limits ? "/limits" : "",
      code: "budget_missing",
      message: "steps form a cycle: limits.maxTransitions is needed",
    });
  return breaches;
}

/** A gate or approval is bypassed when the run can complete although its `passed` was never taken. */
function checkBypass(graph: Graph): Breach[] {
  const breaches: Breach[] = [];
  graph.steps.forEach((step, i) => {
    if (step.kind !== "gate" && step.kind !== "approval") return;
    const { completes } = walk(graph, 0, (from, route) => from !== i || route.outcome !== "passed");
    if (completes)
      breaches.push({
        pointer: `/steps/${i}`,
        code: "gate_bypassed",
        message: `the run can complete without the ${step.kind} ${step.id} having passed`,
      });
  });
  return breaches;
}

import { expect, test } from "bun:test";
import type { AgentFile, Gate } from "../../../src/protocol/project-files.ts";
import type { Step, WorkflowFile } from "../../../src/protocol/workflow-file.ts";
import { checkGraph } from "../../../src/runtime/project/graph.ts";

const agent = (provider = "anthropic"): AgentFile => ({ schema: "kxm.agent.v1", purpose: "x", model: { provider, model: `${provider}-1` } });
const known = {
  agents: new Map([
    ["writer", agent()],
    ["reviewer", agent("openai")],
    ["twin", agent()],
  ]),
  gates: new Map<string, Gate>([["tests", { argv: ["true"] }]]),
  repositories: new Set(["main"]),
};
const work: Step = { id: "work", kind: "agent", agent: "writer" };
const gate = (on: Step["on"], more: Partial<Step> = {}): Step => ({ id: "check", kind: "gate", gate: "tests", on, ...more });
const panel = (more: object, join: Step["join"] = { strategy: "all" }): Step => ({
  id: "panel",
  kind: "moa",
  assignments: { allowedAgents: ["writer", "reviewer"], ...more },
  join,
});
const codes = (steps: Step[], more: Partial<WorkflowFile> = {}) =>
  checkGraph({ schema: "kxm.workflow.v1", steps, ...more }, known).map(({ code, pointer }) => `${code} ${pointer}`);
const back = { target: "work", maxTransitions: 2 };

test("a loop of work and gate with its budgets is fine", () => {
  expect(codes([work, gate({ passed: "$terminal", "implementation-failure": back })], { limits: { maxTransitions: 9 } })).toEqual([]);
});

const CASES: [string, string[], Step[], Partial<WorkflowFile>?][] = [
  ["two steps with one id", ["step_id_duplicate /steps/1/id"], [work, work]],
  ["an unknown agent", ["agent_unknown /steps/0/agent"], [{ ...work, agent: "nobody" }]],
  ["an unknown panel member", ["agent_unknown /steps/0/assignments/allowedAgents/1"], [panel({ allowedAgents: ["writer", "nobody"] })]],
  ["an unknown gate", ["gate_unknown /steps/1/gate"], [work, gate({ passed: "$terminal", "implementation-failure": "$terminal" }, { gate: "none" })]],
  ["an unknown target", ["target_unknown /steps/0/on/passed"], [{ ...work, on: { passed: "moon" } }]],
  ["an unknown repository", ["repository_unknown /steps/0/repositories/moon"], [{ ...work, repositories: { moon: "read" } }]],
  [
    "an unreachable step",
    ["step_unreachable /steps/1/id"],
    [
      { ...work, on: { passed: "$terminal" } },
      { ...work, id: "lost" },
    ],
  ],
  [
    "a step with no way out",
    ["step_dead_end /steps/0", "never_completes /steps", "back_edge_unbounded /steps/0/on/passed"],
    [{ ...work, on: { passed: "work" } }],
    { limits: { maxTransitions: 9 } },
  ],
  [
    "a back-edge without a bound and a cycle without a budget",
    ["back_edge_unbounded /steps/1/on/implementation-failure", "budget_missing "],
    [work, gate({ passed: "$terminal", "implementation-failure": "work" })],
  ],
  [
    "a way round a gate",
    ["gate_bypassed /steps/1"],
    [
      { ...work, on: { skip: { target: "$terminal", terminalStatus: "completed" } } },
      gate({ passed: "$terminal", "implementation-failure": "$terminal" }),
    ],
  ],
  [
    "a rejected approval that completes",
    ["gate_bypassed /steps/0"],
    [{ id: "ask", kind: "approval", on: { rejected: { target: "$terminal", terminalStatus: "completed" } } }],
  ],
  ["a gate that does not say where failure leads", ["gate_outcome_undeclared /steps/1"], [work, gate({ passed: "$terminal" })]],
  [
    "an outcome a gate never has",
    ["outcome_impossible /steps/1/on/repro-missing"],
    [work, gate({ passed: "$terminal", "implementation-failure": "$terminal", "repro-missing": "$terminal" })],
  ],
  ["bounds that do not hold", ["assignments_bounds /steps/0/assignments"], [panel({ minimum: 3, target: 2 })]],
  ["a quorum that cannot be", ["quorum_impossible /steps/0/join/minimumPassed"], [panel({}, { strategy: "quorum", minimumPassed: 3 })]],
  ["a quorum without a number", ["quorum_missing /steps/0/join"], [panel({}, { strategy: "quorum" })]],
  [
    "too few different providers",
    ["quorum_impossible /steps/0/assignments/distinctBy"],
    [panel({ allowedAgents: ["writer", "twin"], distinctBy: "provider" })],
  ],
  ["a writing panel without a winner", ["panel_writes /steps/0/repositories"], [{ ...panel({}), repositories: { main: "write" } }]],
  ["a field of another kind", ["step_field_forbidden /steps/0/gate"], [{ ...work, gate: "tests" }]],
  ["a field that is missing", ["step_field_missing /steps/0"], [{ id: "w", kind: "wait" }]],
  [
    "evidence required twice",
    ["evidence_duplicate /steps/0/requiredEvidence/1/key"],
    [
      {
        ...work,
        requiredEvidence: [
          { key: "a", kind: "gate" },
          { key: "a", kind: "receipt" },
        ],
      },
    ],
  ],
  ["a plan of no step", ["step_unknown /planHash/step"], [work], { planHash: { step: "plan", evidenceKey: "plan" } }],
  ["a needed plan that nothing pins", ["plan_hash_unset /requirePlanHash"], [work], { requirePlanHash: ["work"] }],
  ["an unknown coordinator", ["agent_unknown /coordinator"], [work], { coordinator: "boss" }],
];
for (const [name, expected, steps, more] of CASES) test(`the graph rules refuse ${name}`, () => expect(codes(steps, more)).toEqual(expected));

test("a first-success panel may write", () => {
  expect(codes([{ ...panel({}, { strategy: "first-success" }), repositories: { main: "write" } }])).toEqual([]);
});

// The files `kxm init` writes. Every one of them is valid as it stands, and a test runs the default workflow to its end.

const projectFile = (id: string, name: string) => `# The project. Reviewed in Git like code. \`kxm schema project\` prints every field.
schema: kxm.project.v1
id: ${id}
name: ${JSON.stringify(name)}
defaultWorkflow: default
# echo needs no model and answers at once. Others: claude, codex, gemini, opencode, pi, copilot, cursor-agent, qwen, command.
defaultHarness: echo
limits:
  maxConcurrentRuns: 4
  # maxRunDurationMs: 7200000
  # maxModelCost: 5
  # currency: USD
# Several repositories, each at its folder below this one; without this, the one that holds the project.
# repositories:
#   - {id: main, path: .}
#   - {id: api, path: services/api}
`;

const DEFAULT_WORKFLOW = `# What \`kxm run\` does without a name. A run starts at the first step; each outcome leads on by \`on\`, or to the next step when it passed.
schema: kxm.workflow.v1
description: Plan, do, and have it looked at
limits:
  maxTransitions: 20
steps:
  - id: plan
    kind: agent
    agent: planner
    instructions: "Write a short plan for: {{prompt}}"
  - id: work
    kind: agent
    agent: worker
    instructions: "Carry out the plan for: {{prompt}}"
  - id: review
    kind: agent
    agent: reviewer
    instructions: Look at what was done. Declare passed, or changes-requested with what is missing.
    on:
      passed: $terminal
      changes-requested: {target: work, maxTransitions: 3}
`;

const agent = (purpose: string, instructions: string, tools?: string) => `schema: kxm.agent.v1
purpose: ${purpose}
instructions: ${instructions}
${tools ? `tools: ${tools}\n` : ""}# harness: claude        # else the project's defaultHarness
# model: {provider: anthropic, model: claude-sonnet-4-5}
# timeoutMs: 1800000
`;

const GATES = `# Commands that decide. No shell reads them; exit code 0 passes. Use one in a workflow:
#   - id: check
#     kind: gate
#     gate: clean
#     on: {passed: $terminal, implementation-failure: {target: work, maxTransitions: 3}}
schema: kxm.gate-registry.v1
gates:
  clean:
    description: The work is committed
    argv: [git, diff, --quiet, HEAD]
    timeoutMs: 60000
  # tests:
  #   argv: [npm, test]
  # deliver:                       # one holder at a time, with a fencing token in KXM_FENCING_TOKEN
  #   argv: [kxm, gate, push, --commit, "{{commit}}", --to, refs/heads/main, --expect, "{{base}}", --json]
  #   env: [SSH_AUTH_SOCK]
  #   lease: branch:main
  #   effect: external-idempotent  # pushing again what is there already changes nothing
`;

const example = (found: string[]) => `# An example, not loaded: copy what you need to .kxm/agents and .kxm/workflows.
# Agent programs found when this file was written: ${found.join(", ") || "none"}.

# .kxm/agents/coder.yaml
#   schema: kxm.agent.v1
#   purpose: Writes code
#   harness: ${found[0] ?? "claude"}
#   tools: workspace-writer        # works in a Git worktree of its own, on kxm/<run>/<step>
#   instructions: Keep changes small. Run the tests.
#   timeoutMs: 1800000

# .kxm/agents/linter.yaml
#   schema: kxm.agent.v1
#   purpose: Runs a program that answers on stdout
#   harness: command
#   command: [./scripts/lint-report]

# .kxm/workflows/fix.yaml
#   schema: kxm.workflow.v1
#   limits: {maxTransitions: 20, maxModelCost: 5, currency: USD}
#   steps:
#     - {id: reproduce, kind: gate, gate: tests, expect: fail, on: {passed: fix, repro-missing: $terminal}}
#     - {id: fix, kind: agent, agent: coder, maxAttempts: 3}
#     - {id: check, kind: gate, gate: tests, on: {passed: panel, implementation-failure: {target: fix, maxTransitions: 3}}}
#     - id: panel
#       kind: moa
#       assignments: {allowedAgents: [reviewer, coder], target: 2}
#       join: {strategy: quorum, minimumPassed: 1}
#     - {id: release, kind: approval, instructions: May this be released?, timeoutMs: 86400000}
`;

/** @param found ids of the harnesses whose programs are installed */
export function projectFiles({ name, found }: { name: string; found: string[] }): Record<string, string> {
  const id = `prj_${Bun.randomUUIDv7("hex").replaceAll("-", "")}`;
  return {
    ".kxm/project.yaml": projectFile(id, name),
    ".kxm/workflows/default.yaml": DEFAULT_WORKFLOW,
    ".kxm/agents/planner.yaml": agent("Plans work in small steps", "Name the files and the risks. Do not change anything."),
    ".kxm/agents/worker.yaml": agent("Does the work", "Do exactly what the plan says.", "workspace-writer"),
    ".kxm/agents/reviewer.yaml": agent("Looks for what is wrong", "Be strict and short."),
    ".kxm/gates.yaml": GATES,
    ".kxm/examples/README.yaml": example(found),
  };
}

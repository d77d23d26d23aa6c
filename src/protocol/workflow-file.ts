// The shape of a workflow file. A step is one flat object; which fields its kind takes is checked in steps.ts, so that each mistake gets its own sentence.
import { type Static, Type } from "@sinclair/typebox";
import { Closed, Currency, DURATION_MS_MAX, IDENTIFIER, Identifier, MoneyAmount, OneOf, Text, Whole } from "./project-files.ts";

export const STEP_KINDS = ["agent", "moa", "gate", "approval", "wait"] as const;
export type StepKind = (typeof STEP_KINDS)[number];
export const TERMINAL = "$terminal";
export const TERMINAL_STATUSES = ["completed", "failed", "cancelled"] as const;
export type TerminalStatus = (typeof TERMINAL_STATUSES)[number];
/** Every status of a run on its Runtime, in the order a run goes through them. */
export const RUN_STATUSES = [
  "created",
  "queued",
  "preparing",
  "running",
  "waiting",
  "blocked_uncertain",
  "cancelling",
  ...TERMINAL_STATUSES,
] as const;
/** Whether a run of this status is over and stays so. */
export const isTerminal = (status: string): boolean => (TERMINAL_STATUSES as readonly string[]).includes(status);
export const EVIDENCE_KINDS = ["assignment-result", "gate", "receipt", "approval", "artifact"] as const;
export type EvidenceKind = (typeof EVIDENCE_KINDS)[number];

export const Edge = Closed(
  {
    target: Type.String({ pattern: `^\\$terminal$|${IDENTIFIER}`, maxLength: 64, description: "A step id, or $terminal to end the run" }),
    maxTransitions: Type.Optional(Whole(1, 1000, "How often a run may take this edge")),
    terminalStatus: Type.Optional(OneOf(TERMINAL_STATUSES, "How the run ends at $terminal")),
  },
  "Where an outcome leads",
);

const Assignments = Closed(
  {
    allowedAgents: Type.Array(Identifier("An agent of the project"), {
      minItems: 1,
      maxItems: 64,
      uniqueItems: true,
      description: "Who may be on the panel",
    }),
    minimum: Type.Optional(Whole(1, 64, "Results the join needs at least (default 1)")),
    target: Type.Optional(Whole(1, 64, "Assignments that are started (default: one per allowed agent)")),
    maximum: Type.Optional(Whole(1, 64, "Most assignments, counting replacements of failed ones (default target)")),
    maxParallel: Type.Optional(Whole(1, 64, "Assignments that run at the same time (default target)")),
    maxAttemptsPerAssignment: Type.Optional(Whole(1, 20, "Attempts of one assignment (default 2)")),
    distinctBy: Type.Optional(OneOf(["provider", "model"] as const, "No two assignments share a provider, or a model")),
  },
  "The panel of a moa step",
);

const Join = Closed(
  {
    strategy: OneOf(["all", "all-settled", "quorum", "first-success"] as const, "When the panel's step is decided"),
    minimumPassed: Type.Optional(Whole(1, 64, "Passed assignments that all-settled and quorum need")),
    cancelRemaining: Type.Optional(Type.Boolean({ description: "Stop the assignments that no longer matter (default true)" })),
  },
  "How the panel's results become one outcome",
);

/** Most pieces of one evidence that a step may ask for. */
export const EVIDENCE_MINIMUM_MAX = 64;
const Evidence = Closed(
  {
    key: Identifier("The name of the evidence"),
    kind: OneOf(EVIDENCE_KINDS, "What must show it"),
    minimum: Type.Optional(Whole(1, EVIDENCE_MINIMUM_MAX, "How many pieces (default 1)")),
    reusableAcrossAttempts: Type.Optional(
      Type.Boolean({ description: "Pieces of earlier attempts and steps of this run count, too (default false)" }),
    ),
    producerPolicy: Type.Optional(OneOf(["any", "distinct"] as const, "distinct: each piece from another producer (default any)")),
  },
  "What must be shown before the step passes",
);

export const Step = Closed(
  {
    id: Identifier("The step's name, unique in the workflow"),
    kind: OneOf(STEP_KINDS, "What the step does"),
    description: Type.Optional(Text(1000, "What people read about it")),
    instructions: Type.Optional(Text(20_000, "What agents or approvers are told; {{prompt}} is the run's prompt")),
    agent: Type.Optional(Identifier("agent: who works")),
    gate: Type.Optional(Identifier("gate: which gate of gates.yaml")),
    expect: Type.Optional(OneOf(["pass", "fail"] as const, "gate: fail proves that a reproduction fails before the fix (default pass)")),
    signal: Type.Optional(Identifier("wait: the name of the signal")),
    maxAttempts: Type.Optional(Whole(1, 20, "Attempts each time the step is entered (default 3)")),
    timeoutMs: Type.Optional(Whole(100, DURATION_MS_MAX, "Longest one attempt, approval or wait may take")),
    repositories: Type.Optional(
      Type.Record(Type.String({ pattern: IDENTIFIER }), OneOf(["none", "read", "write"] as const, "Access for this step"), {
        description: "What the step may do per repository; one that is left out may be read, and the agent's own ceiling still holds",
        maxProperties: 16,
      }),
    ),
    assignments: Type.Optional(Assignments),
    join: Type.Optional(Join),
    requiredEvidence: Type.Optional(Type.Array(Evidence, { minItems: 1, maxItems: 32, description: "What must be shown before the step passes" })),
    on: Type.Optional(
      Type.Record(
        Type.String({ pattern: IDENTIFIER, maxLength: 64 }),
        Type.Union([Type.String({ pattern: `^\\$terminal$|${IDENTIFIER}`, maxLength: 64 }), Edge]),
        { description: "Where each outcome leads: a step id, $terminal, or {target, maxTransitions, terminalStatus}", maxProperties: 32 },
      ),
    ),
  },
  "One step",
);
export type Step = Static<typeof Step>;

const Capture = (description: string) =>
  Type.Optional(Closed({ step: Identifier("The step that shows it"), evidenceKey: Identifier("The evidence that is hashed") }, description));

export const WorkflowFile = Closed(
  {
    schema: Type.Literal("kxm.workflow.v1"),
    description: Type.Optional(Text(1000, "What the workflow is for")),
    coordinator: Type.Optional(Identifier("The agent whose instructions head every step's prompt")),
    limits: Type.Optional(
      Closed(
        {
          maxTransitions: Type.Optional(Whole(1, 10_000, "Steps a run may enter after its first; needed when steps form a cycle")),
          maxRunDurationMs: Type.Optional(Whole(1000, DURATION_MS_MAX, "Longest a run may take")),
          maxAgentTimeMs: Type.Optional(Whole(1000, DURATION_MS_MAX, "Most time agents may work, added up")),
          maxModelCost: Type.Optional(MoneyAmount("Most a run may spend on models; at 80 % the run pauses and asks")),
          currency: Type.Optional(Currency),
        },
        "Budgets; a run that uses one up fails with budget_<name>",
      ),
    ),
    planHash: Capture("The plan that is pinned once its step passes"),
    reproOracle: Capture("The reproduction that no later attempt may weaken"),
    requirePlanHash: Type.Optional(
      Type.Array(Identifier("A step"), { minItems: 1, maxItems: 128, uniqueItems: true, description: "Steps that start only once a plan is pinned" }),
    ),
    steps: Type.Array(Step, { minItems: 1, maxItems: 128, description: "The steps; a run starts at the first" }),
  },
  "A workflow: .kxm/workflows/<id>.yaml",
);
export type WorkflowFile = Static<typeof WorkflowFile>;

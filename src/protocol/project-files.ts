// The shape of every project file but workflows: one TypeBox schema each, the source of the checks, the types and the editors' JSON Schemas.
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { AUTHORITIES, KINDS } from "./context.ts";

/** Ids of agents, workflows, steps, gates and outcomes; a file's name is its id. */
export const IDENTIFIER = "^[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*$";
const ENV_NAME = "^[A-Za-z_][A-Za-z0-9_]{0,127}$";
const RELATIVE_PATH = "^(?!/)(?!.*(?:^|/)\\.{1,2}(?:/|$))(?!.*//)[^\\\\\\u0000-\\u001f]{1,1024}$";

export const Identifier = (description: string) => Type.String({ pattern: IDENTIFIER, maxLength: 64, description });
export const Text = (max: number, description: string) => Type.String({ minLength: 1, maxLength: max, description });
export const Whole = (minimum: number, maximum: number, description: string) => Type.Integer({ minimum, maximum, description });
export const Closed = <P extends Record<string, TSchema>>(properties: P, description: string) =>
  Type.Object(properties, { additionalProperties: false, description });
/** One of some words. The pattern is what the checker reads, the enum what editors offer. */
export const OneOf = <T extends string>(values: readonly T[], description: string) =>
  Type.Unsafe<T>(Type.String({ pattern: `^(?:${values.join("|")})$`, enum: [...values], description }));
export const MoneyAmount = (description: string) => Type.Number({ minimum: 0, maximum: 1_000_000, description });
export const Currency = Type.String({ pattern: "^[A-Z]{3}$", description: "Three capitals, such as USD" });

/** Longest run and longest step: one year, in milliseconds. */
/** The currency of budgets that name none: the one in which agent programs report. */
export const CURRENCY_DEFAULT = "USD";
export const DURATION_MS_MAX = 31_536_000_000;

/** The programs a harness row exists for. */
export const HARNESSES = ["claude", "codex", "gemini", "opencode", "pi", "copilot", "cursor-agent", "qwen", "command", "echo"] as const;
export type HarnessId = (typeof HARNESSES)[number];
/** The program on PATH behind each harness that has one. */
export const HARNESS_PROGRAMS: Partial<Record<HarnessId, string>> = {
  claude: "claude",
  codex: "codex",
  gemini: "gemini",
  opencode: "opencode",
  pi: "pi",
  copilot: "copilot",
  "cursor-agent": "cursor-agent",
  qwen: "qwen",
};
const Harness = OneOf(HARNESSES, "The program that runs the agent; `kxm harness list` shows what is installed");

export const ProjectFile = Closed(
  {
    schema: Type.Literal("kxm.project.v1"),
    id: Type.String({ pattern: "^prj_[A-Za-z0-9][A-Za-z0-9_-]{5,127}$", description: "The project's lasting id; `kxm init` makes it" }),
    name: Text(128, "What people call the project"),
    hubProject: Type.Optional(Text(128, "The project's name at the hub, unless KXM_PROJECT says another (default the name of its folder)")),
    defaultWorkflow: Identifier("The workflow of `kxm run` without a name"),
    defaultHarness: Harness,
    repositories: Type.Optional(
      Type.Array(
        Closed(
          {
            id: Identifier("The name other files use for the repository"),
            path: Type.String({ pattern: `^\\.$|${RELATIVE_PATH}`, description: "Its folder, relative to the project's root" }),
          },
          "A Git repository that steps work in",
        ),
        { minItems: 1, maxItems: 16, description: "Where steps work; without it the one repository that holds the project, called main" },
      ),
    ),
    limits: Type.Optional(
      Closed(
        {
          maxConcurrentRuns: Type.Optional(Whole(1, 128, "Runs that execute at the same time; the rest wait in order of arrival (default 4)")),
          maxRunDurationMs: Type.Optional(Whole(1000, DURATION_MS_MAX, "Longest a run may take, for workflows that do not say")),
          maxModelCost: Type.Optional(MoneyAmount("Most a run may spend on models, for workflows that do not say")),
          currency: Type.Optional(Currency),
        },
        "Limits for every run of the project",
      ),
    ),
    sync: Type.Optional(
      Closed(
        {
          results: Type.Optional(OneOf(["summary", "none"] as const, "What leaves the machine of an agent's answer (default summary)")),
          fileChanges: Type.Optional(OneOf(["paths", "counts"] as const, "What leaves the machine of changed files (default paths)")),
        },
        "What is sent to the hub",
      ),
    ),
  },
  "The project: .kxm/project.yaml",
);
export type ProjectFile = Static<typeof ProjectFile>;

export const AgentFile = Closed(
  {
    schema: Type.Literal("kxm.agent.v1"),
    purpose: Text(256, "One line that says what the agent is for"),
    instructions: Type.Optional(Text(20_000, "What the agent is told in front of every step")),
    harness: Type.Optional(Harness),
    model: Type.Optional(
      Closed(
        { provider: Identifier("Such as anthropic or openai"), model: Text(200, "The model's name as the harness takes it") },
        "The model to ask for",
      ),
    ),
    tools: Type.Optional(OneOf(["read-only", "workspace-writer"] as const, "What the agent may do to files (default read-only)")),
    repositories: Type.Optional(
      Type.Record(Type.String({ pattern: IDENTIFIER }), OneOf(["none", "read", "write"] as const, "Ceiling for this repository"), {
        description: "Most the agent may do per repository, whatever a step asks for; one that is left out may be read",
        maxProperties: 16,
      }),
    ),
    env: Type.Optional(
      Type.Array(Type.String({ pattern: ENV_NAME }), {
        maxItems: 64,
        uniqueItems: true,
        description: "Names of environment variables the program is given",
      }),
    ),
    timeoutMs: Type.Optional(Whole(100, 86_400_000, "Longest one attempt may take, unless the step says less")),
    command: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 4096 }), {
        minItems: 1,
        maxItems: 64,
        description: "For the harness `command`: the program and its arguments. The prompt comes on stdin, the answer is what it prints",
      }),
    ),
  },
  "An agent: .kxm/agents/<id>.yaml",
);
export type AgentFile = Static<typeof AgentFile>;

export const EFFECT_CLASSES = [
  "read-only",
  "workspace-mutation",
  "external-idempotent",
  "receipt-queryable",
  "external-non-idempotent",
  "unknown",
] as const;
export type EffectClass = (typeof EFFECT_CLASSES)[number];

/** What a gate may name of its run: {{commit}}, or {{commit.api}} of another repository than the first. */
export const REFERENCES = /\{\{\s*(?:(branch|commit|base)(?:\.([a-z][a-z0-9_-]*))?|(runId|stepId))\s*\}\}/g;

export const GateCommand = Closed(
  {
    kind: Type.Optional(Type.Literal("command")),
    description: Type.Optional(Text(1000, "What the gate proves")),
    argv: Type.Array(Type.String({ minLength: 1, maxLength: 4096 }), {
      minItems: 1,
      maxItems: 64,
      description:
        "The program and its arguments; no shell reads them. {{branch}}, {{commit}}, {{base}}, {{runId}} and {{stepId}} are filled in; with several repositories also {{commit.<repository>}} and so on",
    }),
    timeoutMs: Type.Optional(Whole(100, 86_400_000, "Longest the command may take (default 600000)")),
    cwd: Type.Optional(Type.String({ pattern: `^\\.$|${RELATIVE_PATH}`, description: "Folder below the project's root (default the root)" })),
    env: Type.Optional(
      Type.Array(Type.String({ pattern: ENV_NAME }), {
        maxItems: 64,
        uniqueItems: true,
        description: "Names of environment variables the command is given",
      }),
    ),
    lease: Type.Optional(Text(200, "The hub lease the command needs, such as branch:{{branch}}; without it the command does not start")),
    effect: Type.Optional(
      OneOf(
        EFFECT_CLASSES,
        "What running it changes. workspace-mutation (default) may be repeated; a gate with a lease is unknown unless it says otherwise",
      ),
    ),
  },
  "Runs a command; exit code 0 passes",
);
export const GateArtifacts = Closed(
  {
    kind: Type.Literal("artifacts-exist"),
    description: Type.Optional(Text(1000, "What the gate proves")),
    paths: Type.Array(Type.String({ pattern: RELATIVE_PATH }), { minItems: 1, maxItems: 64, description: "Files that must exist and not be empty" }),
  },
  "Checks that files exist",
);
export type GateCommand = Static<typeof GateCommand>;
export type GateArtifacts = Static<typeof GateArtifacts>;
export type Gate = GateCommand | GateArtifacts;

export const GatesFile = Closed(
  {
    schema: Type.Literal("kxm.gate-registry.v1"),
    gates: Type.Record(Type.String({ pattern: IDENTIFIER, maxLength: 64 }), Type.Union([GateCommand, GateArtifacts]), {
      description: "The project's gates by id",
      maxProperties: 128,
    }),
  },
  "The gates: .kxm/gates.yaml",
);
export type GatesFile = Static<typeof GatesFile>;

const Price = (of: string) => Type.Optional(MoneyAmount(`${of} per million tokens`));
export const PricesFile = Closed(
  {
    schema: Type.Literal("kxm.prices.v1"),
    currency: Currency,
    models: Type.Record(
      Type.String({ minLength: 1, maxLength: 200 }),
      Closed(
        { input: Price("Input"), output: Price("Output"), cacheRead: Price("Cached input"), cacheWrite: Price("Cache writes") },
        "List prices of one model",
      ),
      { description: "Prices by model name; a name that ends in * covers all models that start like it", maxProperties: 512 },
    ),
  },
  "List prices for cost estimates: .kxm/prices.yaml",
);
export type PricesFile = Static<typeof PricesFile>;

/** The front matter of a memory note; the text below it is the fact. */
export const MemoryFile = Closed(
  {
    schema: Type.Literal("kxm.memory.v1"),
    title: Text(200, "One line that names the fact"),
    source: Text(500, "Where the fact comes from: a document, a commit, a person"),
    confidence: Type.Optional(OneOf(["verified", "probable", "uncertain"] as const, "How sure it is (default probable)")),
    validUntil: Type.Optional(Type.String({ pattern: "^\\d{4}-\\d{2}-\\d{2}$", description: "The day it should be looked at again" })),
    kind: Type.Optional(OneOf(KINDS, "What the hub serves it as (default knowledge)")),
    authority: Type.Optional(OneOf(AUTHORITIES.slice(1), "How far it binds (default instruction, the most a file may claim)")),
    observedAt: Type.Optional(Text(40, "When it was seen to be so, as a date or a time")),
  },
  "A reviewed fact: .kxm/memory/<id>.md",
);
export type MemoryFile = Static<typeof MemoryFile>;

// Workflow definitions: what is accepted, and that every problem of a set is told at once.
import { expect, test } from "bun:test";
import { definitionHash, parseDefinitions } from "../../../src/hub/workflows/definitions.ts";

const good = {
  id: "release",
  project: "shop",
  target: "lead",
  secret: "0123456789abcdef",
  promptTemplate: "Release {{ version }}",
  maxTransitions: 5,
  planHash: { stageId: "plan", evidenceKey: "Plan  Text" },
  stages: [
    { id: "plan", instructions: "Plan it", requiredEvidence: ["Plan Text"] },
    {
      id: "review",
      instructions: "Have it reviewed",
      requiredEvidence: ["review"],
      on: { failed: "plan", passed: { target: "$terminal", maxTransitions: 2 } },
      evidencePolicies: { Review: { kind: "peer-reply", minProducers: 2, eligibleAgents: ["ann", "bob"], degradation: { minProducers: 1 } } },
    },
  ],
};
const parse = (list: unknown, environment = {}) => parseDefinitions(JSON.stringify(list), environment);
const problemsOf = (change: object) => parse([{ ...good, ...change }]).problems.map(({ path, message }) => `${path} ${message}`);

test("defaults are filled, keys normalized and transitions put in object form", () => {
  const { definitions, problems } = parse([good]);
  expect(problems).toEqual([]);
  const definition = definitions.get("release")!;
  expect(definition).toMatchObject({ source: "generic", delivery: "followUp", planHash: { stageId: "plan", evidenceKey: "plan text" } });
  expect(definition.stages[0]).toMatchObject({ label: "plan", maxAttempts: 3, requiredEvidence: ["plan text"] });
  expect(definition.stages[1]).toMatchObject({ on: { failed: { target: "plan" }, passed: { target: "$terminal", maxTransitions: 2 } } });
  expect(Object.keys(definition.stages[1]!.evidencePolicies!)).toEqual(["review"]);
});

test("the hash is over the parsed form: order, defaults and secrets do not change it, content does", () => {
  const hash = (change: object) => definitionHash(parse([{ ...good, ...change }]).definitions.get("release")!);
  expect(hash({ secret: "another-secret-of-16", source: "generic", delivery: "followUp" })).toBe(hash({}));
  expect(hash({ promptTemplate: "Other" })).not.toBe(hash({}));
});

test("secrets come from the environment when they are named there", () => {
  const { secret: _, ...rest } = good;
  expect(parse([{ ...rest, secretEnv: "HOOK" }], { HOOK: "from-the-environment" }).definitions.get("release")!.secret).toBe("from-the-environment");
  expect(parse([{ ...rest, secretEnv: "HOOK" }]).problems[0]!.path).toBe("$[0].secretEnv");
  expect(parse([{ ...good, secretEnv: "HOOK" }], { HOOK: "from-the-environment" }).problems[0]!.message).toContain("not both");
  expect(parse([rest]).problems[0]!.path).toBe("$[0].secret");
});

test("all problems of a set are told at once and nothing of it is used", () => {
  const { definitions, problems } = parse([good, { ...good, id: "release", secret: "short", stages: [] }, 7]);
  expect(definitions.size).toBe(0);
  expect(problems.map(({ path }) => path)).toEqual(["$[1].secret", "$[1].stages", "$[1].planHash.stageId", "$[1].id", "$[2]"]);
});

test.each([
  ["a transition to an unknown stage", { stages: [good.stages[0], { ...good.stages[1], on: { failed: "nowhere" } }] }, "unknown stage"],
  [
    "a forward jump over a stage",
    { stages: [{ ...good.stages[0], on: { passed: "last" } }, good.stages[1], { id: "last", instructions: "x" }] },
    "very next stage",
  ],
  ["a loop without a budget", { maxTransitions: undefined }, "maxTransitions"],
  ["twice the same stage id", { stages: [good.stages[0], good.stages[0]] }, "unique"],
  ["a policy for a key that is not required", { stages: [good.stages[0], { ...good.stages[1], requiredEvidence: [] }] }, "requiredEvidence"],
  [
    "an unknown policy member",
    { stages: [good.stages[0], { ...good.stages[1], evidencePolicies: { review: { ...good.stages[1]!.evidencePolicies!.Review, extra: 1 } } }] },
    "not a member",
  ],
  ["the coordinator as its own producer", { target: "ANN" }, "coordinator"],
  [
    "more producers than agents",
    {
      stages: [
        good.stages[0],
        { ...good.stages[1], evidencePolicies: { review: { kind: "peer-reply", minProducers: 3, eligibleAgents: ["ann", "bob"] } } },
      ],
    },
    "more than there are",
  ],
  [
    "a degradation that lowers nothing",
    {
      stages: [
        good.stages[0],
        {
          ...good.stages[1],
          evidencePolicies: { review: { kind: "peer-reply", minProducers: 1, eligibleAgents: ["ann"], degradation: { minProducers: 1 } } },
        },
      ],
    },
    "below the policy",
  ],
  ["an unknown area", { stages: [{ ...good.stages[0], area: "kitchen" }, good.stages[1]] }, "must be one of"],
  ["a plan hash required by an unknown stage", { requirePlanHash: ["nowhere"] }, "unknown stage"],
])("%s is refused", (_, change, sentence) => {
  expect(problemsOf(change).join("\n")).toContain(sentence);
});

test("a member that nothing reads is said with its line and the one that was meant, and refuses nothing", () => {
  const [stage, review] = good.stages;
  const policy = { ...review!.evidencePolicies!.Review };
  const odd = {
    ...good,
    ttlMS: 5_000,
    filter: { path: "a", equal: "b", equals: "c" },
    stages: [
      { ...stage, requireEvidence: ["x"] },
      {
        ...review,
        on: { failed: { target: "plan", maxTransition: 1 } },
        evidencePolicies: { Review: { ...policy, degradation: { minProducers: 1, by: "x" } } },
      },
    ],
  };
  const { definitions, problems, remarks } = parseDefinitions(JSON.stringify([odd], null, 1), {});
  expect([definitions.size, problems]).toEqual([1, []]);
  const lines = JSON.stringify([odd], null, 1).split("\n");
  expect(remarks.map(({ path, message }) => `${path} ${message}`).sort()).toEqual([
    "$[0].filter.equal is not read by anything: did you mean equals?",
    "$[0].stages[0].requireEvidence is not read by anything: did you mean requiredEvidence?",
    "$[0].stages[1].evidencePolicies.Review.degradation.by is not read by anything",
    "$[0].stages[1].on.failed.maxTransition is not read by anything: did you mean maxTransitions?",
    "$[0].ttlMS is not read by anything: did you mean ttlMs?",
  ]);
  for (const { path, line } of remarks) expect(lines[line - 1]).toContain(`"${path.slice(path.lastIndexOf(".") + 1)}"`);
});

test("a problem has the line it stands on, also one that breaks the JSON", () => {
  expect(parseDefinitions('[\n  {\n    "id": 5\n  }\n]', {}).problems).toContainEqual({ path: "$[0].id", line: 3, message: "must be a string" });
  expect(parseDefinitions('[\n  {\n    "id": "a"\n    "project": "b"\n  }\n]', {}).problems).toEqual([
    { path: "$", line: 4, message: "is not valid JSON: comma expected" },
  ]);
  expect(parseDefinitions("[\n// no comments\n]", {}).problems[0]).toMatchObject({ path: "$", line: 2 });
  expect(parseDefinitions("[\n{},\n]", {}).problems[0]).toMatchObject({ path: "$", line: 3 });
});

test("broken JSON and other shapes are refused with a place", () => {
  expect(parseDefinitions("[", {}).problems[0]!.path).toBe("$");
  expect(parse({}).problems[0]!.message).toContain("array");
});

test("a text that nests deeper than anybody can follow is a problem like any other", () => {
  for (const [text, message] of [
    ["[".repeat(100_000), "is not valid JSON"],
    ["[".repeat(100_000) + "]".repeat(100_000), "$[0]"],
  ] as const) {
    const { problems, definitions } = parseDefinitions(text, {});
    expect(definitions.size).toBe(0);
    expect(`${problems[0]!.path} ${problems[0]!.message}`).toContain(message);
    expect(problems[0]!.line).toBe(1);
  }
});

import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { inspectBundle, loadBundle } from "../../../src/runtime/project/bundle.ts";
import { compilePlan, revisionsOf } from "../../../src/runtime/project/plan.ts";
import { formatProblem } from "../../../src/runtime/project/problems.ts";
import { YAML_BYTES_MAX } from "../../../src/runtime/project/yaml.ts";

let root: string;
const put = (path: string, text: string | Uint8Array) => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
const PROJECT = `schema: kxm.project.v1
id: prj_0123456789
name: demo
defaultWorkflow: main
defaultHarness: echo
`;
const AGENT = "schema: kxm.agent.v1\npurpose: writes\ntools: workspace-writer\n";
const flow = (steps: string, head = "") => `schema: kxm.workflow.v1\n${head}steps:\n${steps}`;
const STEP = "  - id: work\n    kind: agent\n    agent: writer\n";

beforeEach(() => {
  root = mkdtempSync("/dev/shm/kxm-project-");
  put(".kxm/project.yaml", PROJECT);
  put(".kxm/agents/writer.yaml", AGENT);
  put(".kxm/workflows/main.yaml", flow(STEP));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));
const codes = () => inspectBundle(root).problems.map(({ code }) => code);
const lines = () => inspectBundle(root).problems.map(formatProblem);

test("a small project loads and compiles to the same hash every time", () => {
  const bundle = loadBundle(root);
  const first = compilePlan(bundle, "main");
  expect(compilePlan(loadBundle(root), "main").planHash).toBe(first.planHash);
  expect(first.plan.steps[0]).toMatchObject({ id: "work", repositories: { main: "write" }, maxAttempts: 3, outcomes: ["passed", "failed"] });
  expect(first.plan.agents["writer"]!.harness).toBe("echo");
  expect(revisionsOf(bundle, "r1").configRevision).toMatch(/^sha256:[0-9a-f]{64}$/);
  put(".kxm/agents/writer.yaml", `${AGENT}instructions: other\n`);
  expect(compilePlan(loadBundle(root), "main").planHash).not.toBe(first.planHash);
});

test("all problems of all files are said at once with line and column", () => {
  put(".kxm/project.yaml", PROJECT.replace("defaultHarness: echo", "defaultHarness: chatty\nspeed: 9"));
  put(".kxm/agents/writer.yaml", "schema: kxm.agent.v1\npurpose: [1]\ntimeoutMs: 5\n");
  put(".kxm/workflows/main.yaml", flow("  - id: work\n    kind: dance\n"));
  expect(lines()).toEqual([
    ".kxm/agents/writer.yaml:2:1: field_type: purpose must be text, not a list",
    ".kxm/agents/writer.yaml:3:1: field_range: timeoutMs must be between 100 and 86400000",
    expect.stringContaining(".kxm/project.yaml:5:1: field_type: defaultHarness must be one of claude"),
    ".kxm/project.yaml:6:1: field_unknown: speed is not a field here",
    expect.stringContaining(".kxm/workflows/main.yaml:4:5: field_type: kind must be one of agent, moa"),
  ]);
});

test("a mistyped field is answered with the one that was meant", () => {
  put(".kxm/workflows/main.yaml", flow(`${STEP}    instruction: do it\n    colour: blue\n`));
  expect(lines()).toEqual([
    ".kxm/workflows/main.yaml:6:5: field_unknown: instruction is not a field here: did you mean instructions?",
    ".kxm/workflows/main.yaml:7:5: field_unknown: colour is not a field here",
  ]);
});

test("a missing field is named once, at the object it is missing from", () => {
  put(".kxm/project.yaml", PROJECT.replace("name: demo\n", ""));
  expect(lines()).toEqual([".kxm/project.yaml:1:1: field_missing: name is missing: What people call the project"]);
});

for (const [what, text, code] of [
  ["anchors", "a: &x 1\n", "yaml_anchor"],
  ["aliases", "a: &x 1\nb: *x\n", "yaml_alias"],
  ["tags", "a: !!str 1\n", "yaml_tag"],
  ["custom tags", "a: !run [rm]\n", "yaml_tag"],
  ["directives", "%TAG ! tag:x,2000:\n---\na: 1\n", "yaml_tag"],
  ["duplicate keys", "name: a\nname: b\n", "yaml_duplicate_key"],
  ["keys that are not text", "? [a]\n: 1\n", "yaml_key_not_text"],
  ["number keys", "1: x\n", "yaml_key_not_text"],
  ["prototype keys", "__proto__: {a: 1}\n", "field_unknown"],
  ["a second document", "a: 1\n---\nb: 2\n", "yaml_multiple_documents"],
  ["broken syntax", "a: [1\n", "yaml_syntax"],
  ["an empty file", "# nothing\n", "yaml_empty"],
  ["33 levels", `a: ${"[".repeat(33)}${"]".repeat(33)}\n`, "yaml_too_deep"],
] as const)
  test(`project files refuse ${what}`, () => {
    put(".kxm/project.yaml", text);
    expect(codes()).toContain(code);
    expect(({} as Record<string, unknown>)["a"]).toBeUndefined();
  });

test("32 levels are read, and a bomb of brackets or aliases ends at once", () => {
  put(".kxm/project.yaml", `a: ${"[".repeat(31)}${"]".repeat(31)}\n`);
  expect(codes()).not.toContain("yaml_too_deep");
  put(".kxm/project.yaml", `a: ${"[".repeat(200_000)}`);
  expect(codes().length).toBeGreaterThan(0);
  put(".kxm/project.yaml", `a: &a [x]\n${Array.from({ length: 40 }, (_, i) => `b${i}: &b${i} [${"*a,".repeat(40)}]`).join("\n")}\n`);
  expect(codes()).toContain("yaml_alias");
});

test("files beyond the size limit, bad UTF-8, links out of the project and FIFOs are refused unread", () => {
  put(".kxm/agents/big.yaml", `# ${"x".repeat(YAML_BYTES_MAX)}`);
  put(".kxm/agents/bytes.yaml", new Uint8Array([0x61, 0x3a, 0x20, 0xff, 0xfe]));
  symlinkSync("/etc/passwd", join(root, ".kxm/agents/link.yaml"));
  Bun.spawnSync(["mkfifo", join(root, ".kxm/agents/pipe.yaml")]);
  put(".kxm/agents/Bad Name.yaml", AGENT);
  put(".kxm/agents/notes.txt", "hello");
  expect(codes().toSorted()).toEqual(["file_kind", "file_name", "file_name", "file_outside", "yaml_not_utf8", "yaml_too_large"]);
});

test("a memory note keeps its provenance; its places are those of the file", () => {
  put(".kxm/memory/ports.md", "---\nschema: kxm.memory.v1\ntitle: Ports\nsource: docs/ports.md\n---\nThe hub listens on 7331.\n");
  expect(loadBundle(root).memory[0]).toMatchObject({ id: "ports", title: "Ports", text: "The hub listens on 7331." });
  put(".kxm/memory/ports.md", "---\nschema: kxm.memory.v1\ntitle: Ports\nsauce: x\n---\nText\n");
  expect(lines()).toEqual([
    ".kxm/memory/ports.md:2:1: field_missing: source is missing: Where the fact comes from: a document, a commit, a person",
    ".kxm/memory/ports.md:4:1: field_unknown: sauce is not a field here: did you mean source?",
  ]);
});

test("a project without a folder says how to make one", () => {
  rmSync(join(root, ".kxm"), { recursive: true });
  expect(lines()).toEqual([".kxm/project.yaml:1:1: file_missing: the file does not exist; `kxm init` makes a project"]);
});

test("a broken workflow or memory note does not hide what is wrong with the graph of another workflow", () => {
  put(".kxm/workflows/main.yaml", flow("  - id: work\n    kind: dance\n"));
  put(".kxm/workflows/other.yaml", flow("  - id: work\n    kind: agent\n    agent: nobody\n"));
  put(".kxm/memory/a.md", "no head\n");
  expect(codes()).toEqual(["memory_head_missing", "field_type", "agent_unknown"]);
  // What refers to a broken agent cannot be judged before the agent is right.
  put(".kxm/agents/writer.yaml", "schema: kxm.agent.v1\n");
  expect(codes()).toEqual(["field_missing", "memory_head_missing", "field_type"]);
});

test("prices in another currency than the money a workflow may spend are refused", () => {
  put(".kxm/prices.yaml", "schema: kxm.prices.v1\ncurrency: EUR\nmodels: {'gpt-5*': {input: 1, output: 10}}\n");
  expect(codes()).toEqual([]);
  put(".kxm/workflows/main.yaml", flow(STEP, "limits: {maxModelCost: 5, currency: EUR}\n"));
  expect(codes()).toEqual([]);
  put(".kxm/workflows/main.yaml", flow(STEP, "limits: {maxModelCost: 5}\n"));
  expect(lines()).toEqual([
    ".kxm/workflows/main.yaml:2:10: currency_mismatch: the money is counted in USD, prices.yaml is in EUR: name one currency in both",
  ]);
});

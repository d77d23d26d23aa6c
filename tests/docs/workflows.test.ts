// docs/workflows.md shows every field, and everything it shows runs.
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import { adviceOn, FAILURES } from "../../src/protocol/failures.ts";
import { AgentFile, GateArtifacts, GateCommand, MemoryFile, PricesFile, ProjectFile } from "../../src/protocol/project-files.ts";
import { RUNTIME_ERRORS } from "../../src/protocol/runtime-errors.ts";
import { WorkflowFile } from "../../src/protocol/workflow-file.ts";
import { HARNESS_TABLE } from "../../src/runtime/harness/table.ts";
import { loadBundle } from "../../src/runtime/project/bundle.ts";
import { openWorld } from "../runtime/engine/world.ts";

const page = (name: string) => readFileSync(join(import.meta.dir, "../../docs", name), "utf8");
const text = page("workflows.md");
/** The files that the page shows, by path. */
const files = Object.fromEntries([
  ...[...text.matchAll(/```yaml\n# (\.kxm\/\S+)\n([\s\S]*?)```/g)].map(([, path, body]) => [path!, body!]),
  ...[...text.matchAll(/```markdown\n<!-- (\.kxm\/\S+) -->\n([\s\S]*?)```/g)].map(([, path, body]) => [path!, body!]),
]);
/** The engine's tests own the project's id. */
const owned = { ...files, ".kxm/project.yaml": files[".kxm/project.yaml"]!.replace(/id: prj_\w+/, "id: prj_engine_test") };
const workflows = Object.keys(files).flatMap((path) => /^\.kxm\/workflows\/(\w+)\.yaml$/.exec(path)?.[1] ?? []);

function fieldsOf(schema: TSchema, into = new Set<string>()): Set<string> {
  for (const [name, field] of Object.entries((schema["properties"] ?? {}) as Record<string, TSchema>)) {
    into.add(name);
    fieldsOf(field, into);
  }
  for (const inner of [schema["items"], ...(schema["anyOf"] ?? []), ...Object.values(schema["patternProperties"] ?? {})])
    if (inner) fieldsOf(inner as TSchema, into);
  return into;
}

test("every field of every file is in an example", () => {
  const shown = Object.values(files).join("\n");
  for (const schema of [ProjectFile, AgentFile, WorkflowFile, GateCommand, GateArtifacts, PricesFile, MemoryFile])
    for (const field of fieldsOf(schema)) expect(`${shown}\n${text}`, field).toMatch(new RegExp(`(?:^|[\\s{\`])${field}:`, "m"));
});

test("every rule of the graph is in the page", () => {
  const codes = readFileSync(join(import.meta.dir, "../../src/runtime/project/graph.ts"), "utf8").matchAll(/code: "(\w+)"/g);
  for (const [, code] of codes) expect(text, code).toContain(`\`${code}\``);
});

test("the examples are one valid project", async () => {
  expect(workflows.length).toBeGreaterThan(3);
  await using world = await openWorld(owned);
  expect([...loadBundle(world.root).workflows.keys()]).toEqual(workflows.toSorted());
  expect(loadBundle(world.root).memory).toHaveLength(1);
});

test("the example of several repositories is a valid part of a project", async () => {
  const [, repositories] = /```yaml\n(repositories:\n[\s\S]*?)```/.exec(text)!;
  const rest = "schema: kxm.project.v1\nid: prj_engine_test\nname: shop\ndefaultWorkflow: main\ndefaultHarness: echo\n";
  const workflow = "schema: kxm.workflow.v1\nsteps:\n  - {id: ask, kind: approval}\n";
  await using world = await openWorld({ ".kxm/project.yaml": rest + repositories, ".kxm/workflows/main.yaml": workflow });
  expect(loadBundle(world.root).project.repositories).toEqual([
    { id: "shop", path: "." },
    { id: "api", path: "services/api" },
  ]);
});

test.each(workflows)("the example %s runs to its end", async (workflowId) => {
  // The coder of the page shows no evidence; the release asks for a note.
  const files = {
    ...owned,
    ".kxm/agents/coder.yaml": owned[".kxm/agents/coder.yaml"]!.replace(
      '"outcome\\":\\"passed\\"',
      '"outcome\\":\\"passed\\",\\"evidence\\":{\\"note\\":\\"fixed it\\"}',
    ),
  };
  await using world = await openWorld(files);
  const runId = await world.start({ workflowId, prompt: "Fix the flaky test" });
  for (;;) {
    const run = await world.until(
      runId,
      ({ status, asked, waitsFor }) =>
        status !== "running" && (asked !== undefined || waitsFor !== undefined || !["created", "preparing", "waiting"].includes(status)),
    );
    if (run.asked) world.apply("approve", { approvalId: run.asked.approvalId, contentHash: run.asked.contentHash }, runId);
    else if (run.waitsFor) world.apply("signal", { signal: run.waitsFor }, runId);
    else {
      expect(`${run.status} ${run.reason ?? ""}`).toBe("completed ");
      break;
    }
    await world.until(runId, (now) => now.asked?.approvalId !== run.asked?.approvalId || now.waitsFor !== run.waitsFor);
  }
  expect(world.outbox().filter(({ problem }) => problem)).toEqual([]);
});

test("docs/runtime.md names every refusal of the Runtime and every command of runs", () => {
  const runtime = page("runtime.md");
  for (const code of Object.keys(RUNTIME_ERRORS)) expect(runtime, code).toContain(`\`${code}\``);
  for (const command of ["list", "show", "events", "logs", "cancel", "approve", "reject", "signal", "retry", "resolve", "receipt", "worktrees"])
    expect(runtime).toContain(`kxm runs ${command}`);
});

test("docs/runtime.md says of every failure what to do, and there is no other failure", () => {
  const runtime = page("runtime.md");
  for (const [failure, advice] of Object.entries(FAILURES)) expect(runtime).toContain(`| \`${failure}\` | ${advice} |`);
  const folder = join(import.meta.dir, "../../src/runtime");
  const sources = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const said = sources.flatMap((name) => [
    ...readFileSync(join(folder, name), "utf8").matchAll(/\bclass: (?:[^"\n]*\? )?"([a-z_]+)"(?: : "([a-z_]+)")?/g),
  ]);
  const failures = new Set(said.flatMap(([, one, other]) => [one!, ...(other ? [other] : [])]));
  // The one is tried again and never ends a run; the other is a class of effects.
  for (const other of ["resolved_absent", "unknown"]) failures.delete(other);
  expect(failures.size).toBeGreaterThan(20);
  for (const failure of failures) expect(adviceOn(`${failure}: why`), failure).toBeString();
});

test("docs/harnesses.md has every harness with the version its row was checked with and its signs of a sign-in", () => {
  const harnesses = page("harnesses.md");
  for (const { id, checked, signIn } of Object.values(HARNESS_TABLE)) {
    expect(harnesses).toContain(`| \`${id}\` |`);
    for (const sign of [...signIn.files, ...signIn.env]) expect(harnesses, `${id}: ${sign}`).toContain(`\`${sign}\``);
    if (checked) expect(harnesses).toContain(`\`${checked.name}\` ${checked.version}`);
  }
});

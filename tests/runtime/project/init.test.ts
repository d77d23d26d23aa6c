import { expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import { parse } from "yaml";
import { projectFiles } from "../../../src/cli/init-files.ts";
import { AgentFile, GatesFile, HARNESSES, ProjectFile } from "../../../src/protocol/project-files.ts";
import { WorkflowFile } from "../../../src/protocol/workflow-file.ts";
import { HARNESS_TABLE } from "../../../src/runtime/harness/table.ts";
import { loadBundle } from "../../../src/runtime/project/bundle.ts";
import { openWorld } from "../engine/world.ts";

const SCHEMAS = { project: ProjectFile, agent: AgentFile, workflow: WorkflowFile, gates: GatesFile };

test("what init writes is one valid project whose names survive any folder name", async () => {
  for (const name of ["shop", 'a "quoted": name', "# not a comment", "- list", "ünïcode", "{{x}}"]) {
    const files = projectFiles({ name, found: ["claude"] });
    await using world = await openWorld(files);
    expect(loadBundle(world.root).project.name).toBe(name);
  }
});

test("two projects never get the same id", () => {
  const id = () => /^id: (\S+)$/m.exec(projectFiles({ name: "x", found: [] })[".kxm/project.yaml"]!)![1];
  expect(id()).not.toBe(id());
});

test("the printed schemas are plain JSON and accept what init writes", () => {
  const files = projectFiles({ name: "x", found: [] });
  const kinds = {
    project: ".kxm/project.yaml",
    workflow: ".kxm/workflows/default.yaml",
    agent: ".kxm/agents/worker.yaml",
    gates: ".kxm/gates.yaml",
  } as const;
  for (const [kind, path] of Object.entries(kinds)) {
    const schema = SCHEMAS[kind as keyof typeof SCHEMAS];
    const plain = JSON.parse(JSON.stringify(schema));
    expect(plain.additionalProperties).toBe(false);
    expect(plain.description).toBeString();
    expect(Value.Check(schema, parse(files[path]!)), path).toBe(true);
  }
});

test("every harness that a file may name has a row, and every row is named", () => {
  expect(Object.keys(HARNESS_TABLE).toSorted()).toEqual([...HARNESSES].toSorted());
  for (const [id, row] of Object.entries(HARNESS_TABLE)) expect(row.id).toBe(id as never);
});

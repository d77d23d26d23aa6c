// Each row of the harness table drives a program of its name as a run does: found on PATH, told its prompt, given its flags and nothing of KXM's own, and
// its answer read. The programs only answer as the real ones were seen to; the real ones are driven by the tests of clients.
import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HARNESS_TABLE } from "../../../src/runtime/harness/table.ts";
import { openWorld, workflow } from "../engine/world.ts";
import { GOOD } from "./recorded.ts";

const PROGRAM = `#!/bin/sh
if test "$1" = --version; then echo 9.9.9; exit; fi
printf '%s\\n' "$@" >"$OUT.arguments"; env >"$OUT.environment"; pwd >"$OUT.folder"; cat >"$OUT.prompt"; cat "$OUT.answer"
`;
const rows = Object.values(HARNESS_TABLE).filter(({ program }) => program !== undefined);

test("there is a recorded turn of every program", () => {
  expect(rows.map(({ id }) => id).filter((id) => !GOOD.some(([harness]) => harness === id))).toEqual([]);
});

test.each(rows.map((row) => [row.id, row] as const))("a run drives %s", async (id, row) => {
  await using world = await openWorld({
    ".kxm/agents/a.yaml": { schema: "kxm.agent.v1", purpose: "tries", harness: id, env: ["OUT"], tools: "workspace-writer" },
    ".kxm/workflows/main.yaml": workflow([{ id: "work", kind: "agent", agent: "a" }]),
  });
  const bin = join(world.base, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, row.program!), PROGRAM);
  chmodSync(join(bin, row.program!), 0o755);
  const [, answer, turn] = GOOD.find(([harness]) => harness === id)!;
  writeFileSync(join(world.base, "out.answer"), answer);
  const { PATH, KXM_AUTH_TOKEN } = process.env;
  Object.assign(process.env, { PATH: `${bin}:${PATH}`, OUT: join(world.base, "out"), KXM_AUTH_TOKEN: "not for programs" });
  try {
    const runId = await world.start({ prompt: "Do it" });
    const run = await world.finished(runId);
    expect([run.status, run.reason, run.steps[0]!.summary]).toEqual(["completed", undefined, "s"]);
    const said = (what: string) => readFileSync(join(world.base, `out.${what}`), "utf8");
    expect(said("prompt")).toContain("# The run\n\nDo it");
    expect(said("arguments")).not.toContain("Do it");
    expect(said("environment")).not.toContain("not for programs");
    expect(said("folder")).toContain(`/${runId}/work`);
    const of = (type: string) => world.events(runId).find(({ eventType }) => eventType === type)!.payload;
    expect(of("assignment.result_recorded").usage).toMatchObject(turn.usage!);
    const versions = world.events(runId).flatMap(({ payload }) => payload.executor?.harnessVersion ?? []);
    expect(versions).toContain("9.9.9");
  } finally {
    process.env["PATH"] = PATH;
    if (KXM_AUTH_TOKEN === undefined) delete process.env["KXM_AUTH_TOKEN"];
    else process.env["KXM_AUTH_TOKEN"] = KXM_AUTH_TOKEN;
  }
});

// The short checks that clients carry say the same as the schemas they stand for.
import { expect, test } from "bun:test";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import fc from "fast-check";
import { CommandsAnswer, RuntimeCommand, SyncAnswer } from "../../src/protocol/sync.ts";
import { isCommandsAnswer, isRuntimeCommand, isSyncAnswer } from "../../src/protocol/sync-guards.ts";

const id = "run_0123456789abcdef";
const command = {
  id,
  seq: 1,
  kind: "start",
  projectId: id,
  runId: id,
  payload: { prompt: "x" },
  actor: "ann",
  createdAt: "2026-01-02T03:04:05.678Z",
};
const result = { projectId: id, runId: id, sequence: 3, outcome: "accepted", code: "x", existingHash: "sha256:0" };
const answer = { results: [result], cursors: [{ projectId: id, runId: id, cursor: 0 }] };

/** The same value with one place in it replaced or removed. */
const bent = (value: unknown): fc.Arbitrary<unknown> => {
  const places: (string | number)[][] = [];
  const visit = (at: unknown, path: (string | number)[]) => {
    places.push(path);
    if (typeof at === "object" && at !== null) for (const [key, inner] of Object.entries(at)) visit(inner, [...path, key]);
  };
  visit(value, []);
  const odd = fc.constantFrom<unknown>(
    undefined,
    null,
    "",
    "x",
    id,
    "x".repeat(201),
    0,
    -1,
    1.5,
    Number.NaN,
    2 ** 60,
    true,
    [],
    {},
    [{}],
    "start",
    "conflict",
    "toString",
  );
  return fc.tuple(fc.constantFrom(...places), odd).map(([path, replacement]) => {
    if (path.length === 0) return replacement;
    const copy = structuredClone(value) as any;
    let at = copy;
    for (const key of path.slice(0, -1)) at = at[key];
    if (replacement === undefined && Array.isArray(at)) at.splice(path.at(-1) as number, 1);
    else if (replacement === undefined) delete at[path.at(-1)!];
    else at[path.at(-1)!] = replacement;
    return copy;
  });
};

for (const [name, schema, guard, sample] of [
  ["an answer to a batch", SyncAnswer, isSyncAnswer, answer],
  ["a command", RuntimeCommand, isRuntimeCommand, command],
] as const)
  test(`${name} is judged as its schema judges it`, () => {
    const check = TypeCompiler.Compile(schema);
    expect([guard(sample), check.Check(sample)]).toEqual([true, true]);
    let refused = 0;
    fc.assert(
      fc.property(bent(sample), (value) => {
        const says = guard(value);
        refused += says ? 0 : 1;
        return says === check.Check(value);
      }),
      { numRuns: 3_000 },
    );
    expect(refused).toBeGreaterThan(100);
  });

test("an answer to a poll is a list, whatever its items are", () => {
  expect(TypeCompiler.Compile(CommandsAnswer).Check({ commands: [command] })).toBe(true);
  expect([{ commands: [] }, { commands: [7] }, { commands: {} }, {}, null, []].map(isCommandsAnswer)).toEqual([
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
});

import { expect, test } from "bun:test";
import { readDeclaration } from "../../../src/runtime/engine/declaration.ts";

const outcome = (reply: string) => {
  const reading = readDeclaration(reply);
  return reading.kind === "declared" ? reading.declaration.outcome : reading.why;
};

for (const reply of [
  '{"outcome":"passed"}',
  '\n  {"outcome": "passed", "summary": "done {really}"}\n\n',
  'I looked at it.\n\n{"outcome":"passed"}',
  'Done:\n```json\n{\n  "outcome": "passed",\n  "evidence": {"tests": "12 of 12"}\n}\n```',
  'Example {"outcome":"failed"} in prose.\n{"outcome":"passed"}',
  '{"outcome":"passed"}\nand again\n{"outcome":"passed"}',
])
  test(`declares passed: ${JSON.stringify(reply).slice(0, 60)}`, () => expect(outcome(reply)).toBe("passed"));

for (const [reply, why] of [
  ["", "is empty"],
  ["passed", "does not end"],
  ['The outcome is "passed".', "does not end"],
  ['{"outcome":"passed"} as promised', "does not end"],
  ['so: {"outcome":"passed"}', "does not stand alone"],
  ['{"outcome":"passed"', "does not end"],
  ['{"outcome":"passed"}}', "does not stand alone"],
  ['{"result":{"outcome":"passed"}}', "names no outcome"],
  ['{"outcome":"passed","outcome":"failed"}', "does not stand alone"],
  ['{"outcome":["passed"]}', "names no outcome"],
  ['{"outcome":"Passed!"}', "names no outcome"],
  ['[{"outcome":"passed"}]', "does not end"],
  ['{"outcome":"failed"}\n{"outcome":"passed"}', "two different outcomes"],
  ['Either\n{"outcome":"failed"}\nor\n{"outcome":"passed"}', "two different outcomes"],
  ['{"__proto__":{"outcome":"passed"}}', "does not stand alone"],
] as const)
  test(`declares nothing: ${JSON.stringify(reply)}`, () => expect(outcome(reply)).toContain(why));

test("evidence, summary and artifacts come along; what has another shape stays away", () => {
  expect(readDeclaration('{"outcome":"passed","summary":" ok ","evidence":{"a":"1","B!":"2","c":[3]},"artifacts":["x.md",7]}')).toEqual({
    kind: "declared",
    declaration: { outcome: "passed", summary: "ok", evidence: { a: "1", c: "[3]" }, artifacts: ["x.md"] },
  });
});

test("hostile replies end in bounded time", () => {
  const started = performance.now();
  for (const bomb of ['{"a":\n'.repeat(20_000), "{\n".repeat(100_000), `${'{"a":1}\n'.repeat(50_000)}x}`, `{"a":"${"\\".repeat(100_000)}}`])
    expect(readDeclaration(bomb).kind).toBe("unknown");
  expect(performance.now() - started).toBeLessThan(2000);
});

// Names that every object has.
import { expect, test } from "bun:test";
import { own } from "../../src/protocol/own.ts";

test("only members of the record itself are found", () => {
  const record = JSON.parse('{"a":1,"__proto__":2}') as Record<string, number>;
  expect([own(record, "a"), own(record, "__proto__"), own(record, "b"), own(undefined, "a")]).toEqual([1, 2, undefined, undefined]);
  for (const name of ["constructor", "toString", "hasOwnProperty", "valueOf"]) expect(own(record, name)).toBeUndefined();
  expect(own({}, "__proto__")).toBeUndefined();
});

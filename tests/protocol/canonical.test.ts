// Canonical JSON: one text per value, whatever order its keys came in.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { canonical, sha256, taggedSha256 } from "../../src/protocol/canonical.ts";

/** The definition, slow and plain. */
function defined(value: any): string {
  if (Array.isArray(value)) return `[${value.map(defined).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${defined(value[key])}`).join(",")}}`;
}

test("keys are sorted by UTF-16 code units at every level, without white space", () => {
  expect(canonical({ b: 1, a: [{ d: null, c: "x" }], é: true, Z: -0, "": 1e21 })).toBe('{"":1e+21,"Z":0,"a":[{"c":"x","d":null}],"b":1,"é":true}');
  expect(canonical({ b: undefined, a: [undefined] })).toBe('{"a":[null]}');
});

test("keys that look like numbers are sorted as text, which no object can hold", () => {
  expect(canonical({ 9: 1, 10: 2, a: 3 })).toBe('{"10":2,"9":1,"a":3}');
  expect(canonical({ x: { 9: 1, 10: 2 }, a: [{ b: 1, a: 2 }] })).toBe('{"a":[{"a":2,"b":1}],"x":{"10":2,"9":1}}');
  expect(canonical({ 1: 1, a: { c: 1, b: 2 } })).toBe('{"1":1,"a":{"b":2,"c":1}}');
});

test("a member called __proto__ stays a member", () => {
  expect(canonical(JSON.parse('{"b":1,"__proto__":{"z":1,"y":2}}'))).toBe('{"__proto__":{"y":2,"z":1},"b":1}');
  expect(canonical(JSON.parse('{"__proto__":1,"b":{"z":1,"y":2}}'))).toBe('{"__proto__":1,"b":{"y":2,"z":1}}');
});

test("any JSON value has the text of the definition, and the value itself is not changed", () => {
  const key = fc.oneof(fc.string({ unit: "binary" }), fc.nat(100).map(String), fc.constantFrom("a", "b", "__proto__", "toJSON"));
  const json = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      fc.string({ unit: "binary" }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie("value")),
      fc.array(fc.tuple(key, tie("value"))).map((entries) => Object.fromEntries(entries)),
    ),
  })).value;
  fc.assert(
    fc.property(json, (value) => {
      const parsed = JSON.parse(JSON.stringify(value));
      const before = JSON.stringify(parsed);
      expect(canonical(parsed)).toBe(defined(parsed));
      expect(JSON.stringify(parsed)).toBe(before);
      expect(canonical(JSON.parse(canonical(parsed)))).toBe(canonical(parsed));
    }),
    { numRuns: 2_000, seed: 7331 },
  );
});

test("hashes are SHA-256 of the UTF-8 bytes, in lower-case hex", () => {
  expect(sha256("")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  expect(sha256("é")).toBe(sha256(new TextEncoder().encode("é")));
  expect(taggedSha256("")).toBe(`sha256:${sha256("")}`);
});

// Windows of requests by whatever a caller says it is: counted apart, and never remembered in full.
import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { createRateLimit } from "../../src/http/rate-limit.ts";

const code = (work: () => unknown) => {
  try {
    work();
  } catch (error) {
    return (error as { code: string }).code;
  }
  return "counted";
};

test("callers are told apart however long their names are", () => {
  const limit = createRateLimit({ max: 2, windowMs: 1_000 });
  const long = (end: string) => `${"x".repeat(20_000)}${end}`;
  for (const name of ["a", "b", long("a"), long("b")]) {
    expect([1, 2, 3].map(() => code(() => limit.count(name, 0)))).toEqual(["counted", "counted", "rate_limited"]);
    expect(code(() => limit.count(name, 1_000))).toBe("counted");
  }
});

test("names as long as a header may be do not fill the memory", () => {
  const limit = createRateLimit({ max: 2, windowMs: 1_000 });
  const used = () => {
    Bun.gc(true);
    return heapStats().heapSize + heapStats().extraMemorySize;
  };
  const before = used();
  for (let n = 0; n < 4_000; n++) limit.count(Buffer.alloc(12_000, `${n} `).toString("latin1"), 0);
  expect(used() - before).toBeLessThan(8_000_000); // the names alone are 48 MB
  expect(limit.count("still counting", 0).remaining).toBe(1);
});

test("a refusal says what was counted", () => {
  const limit = createRateLimit({ max: 0, windowMs: 60_000, what: "refused credentials" });
  expect(() => limit.count("a", 0)).toThrow("more than 0 refused credentials in 60000 ms");
});

// What the log may say of an unknown error.
import { expect, test } from "bun:test";
import { DrizzleQueryError } from "drizzle-orm";
import { describeError } from "../../src/hub/log.ts";

test("an error of the store is told with its query and its cause, never with the values", () => {
  const query = 'update "messages" set "content" = $1 where "id" = $2';
  const told = describeError(new DrizzleQueryError(query, ["what ann asked\nparams: of bob", "msg_1"], new Error("connection lost")));
  expect(told).toContain(query);
  expect(told).toContain("connection lost");
  for (const value of ["ann", "bob", "msg_1"]) expect(told).not.toContain(value);
});

test("an error is one bounded line", () => {
  expect(describeError(new Error("a\r\nb\nc"))).toBe("Error: a b c");
  expect(describeError(new Error("x".repeat(5_000)))).toHaveLength(500);
  expect(describeError("thrown")).toBe("string");
});

// The word that was meant: of words that are near, the nearest; and what somebody sends costs no more than what the list holds.
import { expect, test } from "bun:test";
import { nearest } from "../../src/protocol/nearest.ts";

const PAGES = ["/runs", "/agents", "/messages", "/settings/tokens/revoke"];

test("a mistyped word is taken for the nearest one, and one that is far from all for none", () => {
  expect(["/rnus", "/agent", "/mesages", "/settings/token/revoke", "/runs"].map((word) => nearest(word, PAGES))).toEqual([
    "/runs",
    "/agents",
    "/messages",
    "/settings/tokens/revoke",
    "/runs",
  ]);
  expect(["", "/", "/leases", "/settings"].map((word) => nearest(word, PAGES))).toEqual([undefined, undefined, undefined, undefined]);
});

test("a word that is far longer than any of the list is not compared letter by letter", () => {
  const started = performance.now();
  for (let n = 0; n < 100; n++) expect(nearest("/runs".repeat(100_000), PAGES)).toBeUndefined();
  expect(performance.now() - started).toBeLessThan(1000);
});

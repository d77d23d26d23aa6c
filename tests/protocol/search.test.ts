// The query language of search and how a find is shown.
import { expect, test } from "bun:test";
import { parseSearch, snippetOf } from "../../src/protocol/search.ts";

const now = Date.UTC(2026, 0, 10);
const code = (query: string) => {
  try {
    parseSearch(query, now);
  } catch (error) {
    return (error as { code: string }).code;
  }
};

test("words, phrases and qualifiers are told apart; other words with a colon are words", () => {
  expect(parseSearch('retry pay* "payment failed" from:ann to:"big bob" status:queued kind:message project:shop since:7d http://x.y', now)).toEqual({
    terms: [
      { text: "retry", match: "word" },
      { text: "pay", match: "prefix" },
      { text: "payment failed", match: "phrase" },
      { text: "http x y", match: "phrase" },
    ],
    from: "ann",
    to: "big bob",
    status: "queued",
    kind: "message",
    project: "shop",
    since: now - 7 * 86_400_000,
  });
  expect(parseSearch("since:2026-01-02", now).since).toBe(Date.UTC(2026, 0, 2));
});

test("only the qualifiers are qualifiers, whatever else has a name", () => {
  for (const word of ["constructor:x", "toString:x", "__proto__:x", "hasOwnProperty:x"]) expect(parseSearch(word, now).terms).toHaveLength(1);
});

test("what cannot be meant is refused with a sentence", () => {
  expect([code("kind:dream"), code("since:yesterday"), code("a ".repeat(17)), code('from:""')]).toEqual(Array(4).fill("invalid_search_query"));
});

test("operators, quotes and wildcards of the engines are just text", () => {
  expect(parseSearch('a* NEAR(b) -c "d" OR ) ; drop table \' & | ! <->', now).terms.map(({ text }) => text)).toEqual([
    "a",
    "NEAR b",
    "c",
    "d",
    "OR",
    "drop",
    "table",
  ]);
});

test("a snippet shows the first find with the places of all words as ranges, never markup", () => {
  const text = `${"x ".repeat(100)}the <b>Payments</b> fail ${"y ".repeat(300)}payment`;
  const found = snippetOf(text, [{ text: "payment", match: "prefix" }]);
  expect(found.text.length).toBe(240);
  expect(found.highlights.map(([start, end]) => found.text.slice(start, end))).toEqual(["Payments"]);
  expect(snippetOf("nothing here", [{ text: "zebra", match: "word" }])).toEqual({ text: "nothing here", highlights: [] });
  expect(snippetOf("😀".repeat(200), [{ text: "x", match: "word" }]).text.isWellFormed()).toBe(true);
});

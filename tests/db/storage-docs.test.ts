// docs/storage.md names everything an operator can meet, and nothing that does not exist.
import { expect, test } from "bun:test";
import { SUFFIXES } from "../../src/db/inspect.ts";
import { REFUSALS } from "../../src/db/refused.ts";
import { UNAVAILABLE } from "../../src/db/tx.ts";

const page = await Bun.file(`${import.meta.dir}/../../docs/storage.md`).text();
const firstCells = (heading: string) => {
  const section = page.split(/^## /m).find((part) => part.startsWith(heading))!;
  return [...section.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, cell]) => [...cell!.matchAll(/`([^`]+)`/g)].map(([, code]) => code!));
};

test("every refusal has its line", () => {
  expect(firstCells("A store that is refused").sort()).toEqual([...REFUSALS].sort());
});

test("every reason of a 503 has its line", () => {
  expect(firstCells("What an answer means").sort()).toEqual(Object.keys(UNAVAILABLE).sort());
});

test("every file of a store has its line", () => {
  const named = firstCells("Where the data lies");
  for (const suffix of SUFFIXES) expect(named).toContain(`kxm.db${suffix}`);
});

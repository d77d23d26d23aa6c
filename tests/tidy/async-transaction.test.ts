// R41. Why `transaction(async …)` is banned, and that nothing in src has it.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { CALL_RULES } from "./rules-calls.ts";
import { product, readProject, withoutComments } from "./source.ts";

const table = () => {
  const database = new Database(":memory:");
  database.run("create table notes (text text) strict");
  return database;
};
const stored = (database: Database) => database.query("select text from notes").all();
const NOTHING_SENT = new Error("the second half failed");

test("R41 no transaction in src has an async callback", () => {
  const offending = product(readProject()).filter(({ text }) => /transaction\s*\(\s*async/.test(withoutComments(text)));
  expect(offending.map(({ path }) => path)).toEqual([]);
});

test("R41 an async transaction commits its first half and loses the rest", async () => {
  using database = table();
  const send = database.transaction(async () => {
    database.run("insert into notes values ('first half')");
    await Promise.resolve();
    throw NOTHING_SENT;
  });
  await expect(send.immediate()).rejects.toThrow(NOTHING_SENT);
  await Promise.resolve();
  expect(stored(database)).toEqual([{ text: "first half" }]); // the caller was told that it failed
});

test("R41 the same work in a synchronous transaction leaves nothing behind", () => {
  using database = table();
  const send = database.transaction(() => {
    database.run("insert into notes values ('first half')");
    throw NOTHING_SENT;
  });
  expect(() => send.immediate()).toThrow(NOTHING_SENT);
  expect(stored(database)).toEqual([]);
});

test("R41 the rule finds an async transaction however it is wrapped", () => {
  const rule = CALL_RULES.find(({ name }) => name === "a transaction is opened by the write lane alone")!;
  for (const text of [
    "db.transaction(async () => {})",
    "db.transaction(\n  async function () {})",
    "const { transaction } = db;\ntransaction(async (tx) => {})",
  ])
    expect(rule.check([{ path: "src/hub/a.ts", text }])).toHaveLength(1);
});

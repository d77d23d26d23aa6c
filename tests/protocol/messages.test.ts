// Cursors of streams and fields of messages, without a hub.
import { expect, test } from "bun:test";
import { RegisterBody } from "../../src/protocol/agents.ts";
import { formatCursor, parseCursor } from "../../src/protocol/events.ts";
import { readFields, readQuery } from "../../src/protocol/fields.ts";
import { newId } from "../../src/protocol/ids.ts";
import { AckBody, isEnded, ListQuery, MESSAGE_STATUSES, SendBody } from "../../src/protocol/messages.ts";

const codeOf = (work: () => unknown) => {
  try {
    return work();
  } catch (error) {
    return [(error as { code: string }).code, (error as Error).message];
  }
};

test("a cursor comes back as it was written; any other text is none", () => {
  const generation = newId("gen");
  for (const seq of [0, 1, 17, Number.MAX_SAFE_INTEGER]) expect(parseCursor(formatCursor(generation, seq))).toEqual({ generation, seq });
  const others = [
    "",
    "1",
    `${generation}`,
    `${generation}.`,
    `${generation}.01`,
    `${generation}.-1`,
    `${generation}.1.2`,
    ` ${generation}.1`,
    `${generation}.1\n`,
  ];
  const far = [`${generation}.9007199254740993`, `${generation}.99999999999999999`, "x".repeat(100_000), `${generation.toUpperCase()}.1`, "gen_\0.1"];
  for (const text of [...others, ...far]) expect([text.slice(0, 60), parseCursor(text)]).toEqual([text.slice(0, 60), undefined]);
});

test("fields are read in order: trimmed, with defaults, and the first that does not fit is named", () => {
  const read = (body: Record<string, unknown>) => codeOf(() => readFields(SendBody, body));
  expect(read({ target: " bob ", content: " hi ", unknown: 1 })).toEqual({
    target: "bob",
    content: "hi",
    delivery: "followUp",
    hops: 0,
    maxHops: 5,
    allowOffline: false,
  });
  expect(read({ target: "b", content: "c", correlationId: "", replyTo: null, idempotencyKey: null, allowOffline: null, hops: -0 })).toMatchObject({
    hops: 0,
  });
  expect(read({})).toEqual(["protocol_error", "target must be a string"]);
  expect(read({ target: "b", content: "c", hops: 7, maxHops: 7, ttlMs: "x" })).toEqual([
    "hop_limit_reached",
    "the message has been passed on 7 times and may be 7 times at most",
  ]);
  expect(read({ target: "b", content: "c", hops: 7, maxHops: "x" })).toEqual(["protocol_error", "maxHops must be an integer between 1 and 20"]);
  expect(read({ target: "b", content: "c", ttlMs: null })).toEqual(["protocol_error", "ttlMs must be an integer between 1000 and 604800000"]);
});

test("an optional text with a default takes it for null, but is not empty", () => {
  const read = (purpose: unknown) => codeOf(() => readFields(RegisterBody, { name: "n", project: "p", purpose }));
  for (const purpose of [undefined, null]) expect(read(purpose)).toMatchObject({ purpose: "General-purpose Pi agent" });
  expect(read("")).toEqual(["protocol_error", "purpose cannot be empty"]);
});

test("a phase is turn or nothing", () => {
  expect(["turn", undefined, null, ""].map((phase) => readFields(AckBody, { phase }).phase)).toEqual(["turn", undefined, undefined, undefined]);
  expect(codeOf(() => readFields(AckBody, { phase: "done" }))).toEqual(["protocol_error", "phase must be one of turn"]);
});

test("a query reads words and whole numbers, and refuses what it would have to guess", () => {
  const read = (query: string) => codeOf(() => readQuery(ListQuery, new URLSearchParams(query)));
  expect(read("")).toEqual({ box: "inbox", order: "oldest", limit: 50 });
  expect(read("box=sent&status=replied&limit=200")).toMatchObject({ box: "sent", status: "replied", limit: 200 });
  for (const bad of ["limit=1e2", "limit=+1", "limit=0x10", "limit= 5", "limit=201", "status=error", "box="])
    expect(read(bad)).toHaveProperty("0", "protocol_error");
});

test("three states are ends, two are not", () => {
  expect(MESSAGE_STATUSES.filter(isEnded)).toEqual(["replied", "cancelled", "expired"]);
});

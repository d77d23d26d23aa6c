// Context packets and recall over pools: determinism, order, budgets, authority and isolation.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { packetOf } from "../../../src/hub/context/packets.ts";
import { createPools, estimateTokens, itemOfEntry } from "../../../src/hub/context/pool.ts";
import { episodes, explain, recall } from "../../../src/hub/context/recall.ts";
import { wordsOf } from "../../../src/hub/context/words.ts";
import { AUTHORITIES, CEILING, CONFIDENCES, type ContextItem, exceedsCeiling, KINDS, SOURCE_TYPES } from "../../../src/protocol/context.ts";
import type { JournalEntry } from "../../../src/protocol/journal.ts";

const item = (id: string, change: Partial<ContextItem> = {}): ContextItem => ({
  id,
  kind: "knowledge",
  project: "shop",
  summary: `about ${id}`,
  provenance: { sourceType: "human" },
  authority: "evidence",
  confidence: "probable",
  ...change,
});
const entry = (id: string, change: Partial<JournalEntry> = {}): JournalEntry => ({
  id,
  runId: "run_1",
  agentId: "agt_1",
  category: "lesson",
  area: "gates",
  severity: "info",
  summary: `lesson ${id}`,
  evidence: ["e"],
  relatedEntryIds: [],
  createdAt: "2026-01-01T00:00:00.000Z",
  ...change,
});
/** A pool over plain items and entries; the store is only asked for them. */
async function poolOf(items: ContextItem[], entries: JournalEntry[] = [], project = "shop") {
  const rows = (list: { id: string }[], after: number) => list.map((record, index) => ({ record, revision: index + 1 })).slice(after);
  const read = {
    context: { counters: async () => ({ purges: 0 }), changedAfter: async (_: string, after: number) => rows(items, after) },
    journal: { changedAfter: async (_: string, after: number) => rows(entries, after) },
  };
  return createPools(() => []).get(read as never, project);
}
const ask = (change = {}) => ({ project: "shop", role: "implementer", task: "fix the payment retries", ...change });

test("words are folded: case, plurals, stop words and lengths", () => {
  expect(wordsOf("The Retries of PAYMENTS, boxes and a 1 x é über")).toEqual(["retry", "payment", "box", "über"]);
});

test("what matches the task comes first, by score; then kind, confidence, authority, newest, id", async () => {
  const pool = await poolOf([
    item("b"),
    item("a"),
    item("sure", { confidence: "verified" }),
    item("state", { kind: "state", stateKey: "k", status: "current" }),
    item("new", { observedAt: "2026-02-01T00:00:00.000Z" }),
    item("hit", { summary: "payment retries wait 2 s" }),
    item("half", { summary: "payments are made daily at noon" }),
  ]);
  expect(packetOf(pool, ask()).audit.selectedIds).toEqual(["hit", "half", "sure", "new", "a", "b", "state"]);
});

test("the same items in any order give the same packet", () => {
  const items = fc.array(
    fc.record({
      kind: fc.constantFrom(...KINDS),
      summary: fc.lorem({ maxCount: 8 }),
      authority: fc.constantFrom(...AUTHORITIES),
      confidence: fc.constantFrom(...CONFIDENCES),
      status: fc.constantFrom("current" as const, "superseded" as const, "proposed" as const, "rejected" as const),
      stateKey: fc.constantFrom("a", "b"),
    }),
    { maxLength: 40 },
  );
  return fc.assert(
    fc.asyncProperty(items, fc.lorem(), fc.integer({ min: 512, max: 600 }), async (shapes, task, budgetTokens) => {
      const all = shapes.map((shape, index) => item(`i${index}`, shape));
      const [forward, backward] = [await poolOf(all), await poolOf([...all].reverse())];
      for (const role of ["planner", "verifier", "somebody", "constructor", "__proto__"]) {
        const request = ask({ role, task, budgetTokens });
        const [one, other] = [packetOf(forward, request), packetOf(backward, request)];
        expect(JSON.stringify(one)).toBe(JSON.stringify(other));
        expect(one.packet.estimatedTokens).toBeLessThanOrEqual(budgetTokens);
        expect(one.audit.selectedIds).not.toContainAnyValues(
          all.filter(({ status }) => status === "superseded" || status === "rejected").map(({ id }) => id),
        );
      }
    }),
    { numRuns: 60 },
  );
});

test("a budget is first-fit, and what did not fit is said", async () => {
  const pool = await poolOf([
    item("a", { summary: "x".repeat(4000), confidence: "verified" }),
    item("b", { summary: "y".repeat(1200) }),
    item("c", { summary: "z".repeat(1200) }),
  ]);
  const { packet, audit } = packetOf(pool, ask({ budgetTokens: 700 }));
  expect(audit.selectedIds).toEqual(["b", "c"]);
  expect(packet.unresolvedGaps).toEqual(["budget of 700 tokens reached; 1 candidates deferred"]);
  expect(packetOf(await poolOf([item("a", { summary: "x".repeat(4000) })]), ask({ budgetTokens: 512 })).packet.unresolvedGaps).toEqual([
    "budget of 512 tokens cannot fit any selected context",
  ]);
  expect(packetOf(await poolOf([]), ask()).packet.unresolvedGaps).toEqual(["no context records exist for this project yet"]);
});

test("each role gets its journal categories, and competing state becomes a contradiction", async () => {
  const categories = ["plan", "decision", "error", "lesson", "observation", "state-change"] as const;
  const pool = await poolOf(
    [item("s1", { kind: "state", stateKey: "db", status: "current" }), item("s2", { kind: "state", stateKey: "db", status: "current" })],
    categories.map((category) => entry(category, { category })),
  );
  const ids = (role: string) =>
    packetOf(pool, ask({ role }))
      .audit.selectedIds.filter((id) => id.startsWith("journal_"))
      .sort();
  expect(ids("implementer")).toEqual(["journal_decision", "journal_lesson", "journal_plan", "journal_state-change"]);
  expect(ids("repro")).toEqual(["journal_error", "journal_lesson", "journal_observation"]);
  expect(packetOf(pool, ask()).packet.contradictions.map(({ id }) => id)).toEqual(["s1", "s2"]);
});

test("kinds are checked by name", async () => {
  const pool = await poolOf([item("a")]);
  const code = (includeKinds: unknown) => {
    try {
      packetOf(pool, ask({ includeKinds }));
    } catch (error) {
      return (error as { code: string }).code;
    }
  };
  expect([code([]), code(["knowledge", "state", "skill", "episode", "evidence", "x"]), code(["dreams"]), code(["skill"])]).toEqual([
    "invalid_context_request",
    "invalid_context_request",
    "invalid_context_field",
    undefined,
  ]);
});

test("recall answers metadata only: exact phrases, then score, then id", async () => {
  const pool = await poolOf([
    item("z", { summary: "Retry Payments at night" }),
    item("a", { summary: "payments fail" }),
    item("b", { summary: "retry later" }),
    item("gone", { summary: "retry payments", status: "rejected" }),
    item("child", { summary: "nothing", provenance: { sourceType: "derived", derivedFrom: ["z"] } }),
  ]);
  const found = recall(pool, { project: "shop", query: "retry payments", limit: 25 });
  expect(found.items[0]!.id).toBe("z");
  expect(found.items.map(({ id }) => id)).not.toContain("gone");
  expect(JSON.stringify(found)).not.toContain("at night");
  expect(recall(pool, { project: "shop", limit: 2 }).items.map(({ id }) => id)).toEqual(["a", "b"]);
  expect(recall(pool, { project: "shop", query: "child nothing", limit: 5 }).items[0]).toMatchObject({ derived: true, lineageDepth: 1 });
  expect(recall(pool, { project: "shop", query: "unheard of", limit: 5 }).unresolvedGaps).toEqual(["no matching context records"]);
});

test("explain follows the lineage and survives a circle", async () => {
  const pool = await poolOf([
    item("a", { provenance: { sourceType: "derived", derivedFrom: ["b"] }, evidenceRefs: ["x"] }),
    item("b", { supersedes: ["a"], evidenceRefs: ["x", "y"] }),
  ]);
  expect(explain(pool, "a")).toMatchObject({ found: true, lineage: ["a", "b"], evidenceRefs: ["x", "y"] });
  expect(explain(pool, "none")).toEqual({ found: false, lineage: [], evidenceRefs: [], sources: [] });
});

test("episodes are errors, lessons, observations and experiments, oldest first", async () => {
  const pool = await poolOf([], [entry("late", { createdAt: "2026-03-01T00:00:00.000Z" }), entry("early"), entry("plan", { category: "plan" })]);
  expect(episodes(pool).map(({ id }) => id)).toEqual(["journal_early", "journal_late"]);
});

test("no origin may claim more than its ceiling", () => {
  for (const source of SOURCE_TYPES) expect(AUTHORITIES.filter((authority) => !exceedsCeiling(authority, source))[0]).toBe(CEILING[source]);
});

test("a journal entry becomes an item that a skill's promotion changes", () => {
  expect(itemOfEntry(entry("x", { category: "skill-candidate" }), "shop")).toMatchObject({
    id: "journal_x",
    kind: "skill",
    status: "proposed",
    authority: "evidence",
  });
  const promotion = [
    {
      schema: "kxm.journal-promotion.v1" as const,
      from: "proposed" as const,
      to: "approved" as const,
      evidenceRefs: [],
      decidedBy: "a",
      reason: "r",
      decidedAt: "",
    },
  ];
  expect(itemOfEntry(entry("x", { category: "skill-candidate", promotion }), "shop").status).toBe("current");
  expect(estimateTokens(item("abcd", { summary: "12345678" }))).toBe(Math.ceil((8 + 4 + 9) / 4));
});

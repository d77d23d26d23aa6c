// Which index each list of the dashboard reads, on SQLite without statistics: the planner must not fall back to walking a project's whole log.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { TIMED } from "../../src/db/forecast.ts";
import { sqliteWorld } from "../support/engines.ts";
import { agentRow, testedEvent } from "../support/rows.ts";

/** The plan of every statement that `work` prepares, by its text. */
async function plansOf(work: (read: Awaited<ReturnType<typeof sqliteWorld>>["engine"]["read"]) => Promise<unknown>): Promise<string[]> {
  await using world = await sqliteWorld();
  await world.engine.write("p", async (tx) => {
    await tx.agents.insert(agentRow("agt_a", "p", "Ada"));
    tx.append(testedEvent("p"));
  });
  const database = new Database(world.location, { readonly: true });
  const prepare = Database.prototype.prepare;
  const texts = new Set<string>();
  Database.prototype.prepare = function (this: Database, text: string, ...rest: unknown[]) {
    texts.add(text);
    return (prepare as (...args: unknown[]) => unknown).call(this, text, ...rest) as never;
  } as typeof prepare;
  try {
    await work(world.engine.read);
  } finally {
    Database.prototype.prepare = prepare;
  }
  const plans = [...texts].map((text) => {
    const rows = database.query(`explain query plan ${text}`).all() as { detail: string }[];
    return rows.map(({ detail }) => detail).join(" | ");
  });
  database.close(true);
  return plans;
}

const LAST = Number.MAX_SAFE_INTEGER;

test("histories, openings and deeds are found by an index of their own", async () => {
  const plans = await plansOf(async ({ events }) => {
    await events.about("p", "agt_a", LAST, 10);
    await events.openings("p", "msg_a", 10);
    await events.deedsOf("p", "agt_a", LAST, 10);
    await events.newest("p", LAST, 10);
  });
  expect(plans).toEqual([
    "SEARCH events USING INDEX events_subject (subject_id=? AND seq<?)",
    "SEARCH events USING INDEX events_opened (subject_id=? AND seq<?)",
    "SEARCH events USING INDEX events_deeds (actor=? AND seq<?)",
    "SEARCH events USING PRIMARY KEY (project=? AND seq<?)",
  ]);
});

test("every page of messages reads one index from its cursor on", async () => {
  const plans = await plansOf(async ({ messages }) => {
    for (const kind of ["open", "dead", "expired", "cancelled", "all"] as const) await messages.heads({ kind, of: "p" }, "~", 10);
    await messages.heads({ kind: "sent", of: "agt_a" }, "~", 10);
    await messages.heads({ kind: "received", of: "agt_a" }, LAST, 10);
    await messages.heads({ kind: "thread", of: "p", correlationId: "t" }, "~", 10);
    for (const kind of ["open", "dead"] as const) await messages.countHeads(kind, "p", 10);
    await messages.inWork("p", 10);
    await messages.recentTimes("p", 10);
  });
  expect(plans.filter((plan) => /SCAN messages|TEMP B-TREE/.test(plan))).toEqual([]);
  for (const plan of plans) expect(plan).toMatch(/SEARCH messages USING (COVERING )?INDEX messages_\w+ \((project|recipient_id|sender_id)=/);
  expect(plans.length).toBeGreaterThan(12);
});

test("what agents, streams and sweeps ask is found by an index, whatever is retained", async () => {
  const plans = await plansOf(async ({ messages, agents, events }) => {
    await messages.find("m");
    await messages.findByKey("agt_a", "k");
    await messages.inbox("agt_a", 0, 10);
    await messages.queued("agt_a", { after: 0, upTo: 9, limit: 10 });
    await messages.streamStart("p", "agt_a");
    await messages.due(1, 10);
    await messages.ended(1, 10);
    await messages.byIds(["m"]);
    for (const order of ["oldest", "newest"] as const) {
      for (const kind of ["open", "ended"] as const) await messages.entries({ kind, of: "agt_a", after: 5 }, order, 10);
      await messages.entries({ kind: "sent", of: "agt_a", after: "m" }, order, 10);
      await messages.entries({ kind: "thread", of: "p", correlationId: "t", after: "m" }, order, 10);
    }
    await agents.find("agt_a");
    await agents.findByName("p", "Ada");
    await agents.onlineOf("p");
    await agents.silent(1, 10);
    await events.concerning("p", "agt_a", { after: 1, upTo: 9 });
  });
  expect(plans.length).toBeGreaterThan(18);
  expect(plans.filter((plan) => /(^|\| )SCAN|TEMP B-TREE/.test(plan))).toEqual([]);
});

test("what holds in a project's context and what waits for a decision is read by an index of its own", async () => {
  const plans = await plansOf(async ({ context }) => {
    await context.currentAfter("p", "a", 10);
    await context.contradicted("p", 10);
    await context.proposals("p", 10);
  });
  expect(plans).toEqual([
    "SEARCH context_items USING INDEX context_items_current (project=? AND state_key>?)",
    "SEARCH context_items USING COVERING INDEX context_items_current (project=?)",
    "SEARCH context_items USING INDEX context_items_proposed (project=?)",
  ]);
});

test("agents, held leases, activity and ended runs are read by their index", async () => {
  const plans = await plansOf(async ({ agents, leases, activity, sync, projects }) => {
    for (const of of ["all", "online", "retired"] as const) {
      await agents.page("p", { of, prefix: "a", limit: 10 });
      await agents.page("p", { of, prefix: "a", after: "ab", limit: 10 });
    }
    await agents.among(["agt_a", "agt_b"]);
    await agents.countRetired("p", 10);
    await agents.count("p", 10);
    await projects.countOnline("p");
    await leases.heldBy("p", "agt_a", 10);
    await activity.hours("p", "messages", "queued", 0);
    await sync.endedByHour("p", 0);
  });
  expect(plans.filter((plan) => /(^|\| )SCAN (agents|leases|activity_hours|sync_runs)/.test(plan))).toEqual([]);
});

test("cost is read by its key, and the dearest runs of a day by an index of their own", async () => {
  const plans = await plansOf(async ({ costs, budgets }) => {
    await costs.bySlot("p", "day", 0);
    await costs.byName("p", "agent", 0);
    await costs.dearestRuns(0, undefined, 10);
    await costs.dearestRuns(0, "p", 10);
    await costs.names("p", 0);
    await budgets.find("bud_a");
  });
  expect(plans.filter((plan) => /SCAN cost_sums/.test(plan))).toEqual([]);
  expect(plans[2]).toBe("SEARCH cost_sums USING INDEX cost_sums_dearest (at=?)");
  expect(plans[3]).toBe("SEARCH cost_sums USING INDEX cost_sums_project_dearest (project=? AND at=?)");
});

test("the forecast of retention is counted by the indexes that retention uses", async () => {
  const plans = await plansOf(async ({ forecast }) => {
    for (const kind of TIMED) {
      await forecast.due(kind, 1, 10);
      await forecast.oldest(kind);
    }
    for (const kind of ["events", "costSums"] as const) await forecast.dueOfProject(kind, "p", 1, 10);
  });
  expect(plans).toHaveLength(2 * TIMED.length + 2);
  expect(plans.filter((plan) => /TEMP B-TREE/.test(plan) || /SCAN (?!due|first)\w+(?! USING (COVERING )?INDEX)( \||$)/.test(plan))).toEqual([]);
});

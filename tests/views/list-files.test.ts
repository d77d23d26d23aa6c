// Journal, context, sync and machines as files: what is on the page is in the file, of the session's projects only, and no cell is a formula.
import { expect, test } from "bun:test";
import { openDashboard } from "../support/dashboard.ts";
import { fillEverything } from "../support/everything.ts";
import { hrefOf, textsOf } from "../support/html.ts";
import { LIVELY } from "../support/lively.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
type Rows = Record<string, unknown>[];

test("each list offers itself as a file, with what the page shows", async () => {
  await using it = await open();
  await fillEverything(it);
  const { cookie } = await it.signIn("viewer");
  const rows = async (path: string) => {
    const { html } = await it.get(path, { cookie });
    const json = await it.get(hrefOf(html, "JSON")!, { cookie });
    const csv = await it.get(hrefOf(html, "CSV")!, { cookie });
    expect([path, json.status, csv.status, csv.headers.get("content-disposition")?.startsWith("attachment")]).toEqual([path, 200, 200, true]);
    const found = JSON.parse(json.html) as Rows;
    expect([path, csv.html.trim().split("\r\n").length - 1 >= found.length]).toEqual([path, true]);
    return { html, found };
  };
  const journal = await rows("/journal?project=shop");
  expect(journal.found.map(({ summary }) => summary)).toEqual(textsOf(journal.html, ".card__title"));
  expect((await rows("/journal?project=shop&category=lesson")).found.map(({ category }) => category)).toEqual(["lesson"]);
  const context = await rows(`/context?project=${LIVELY}`);
  expect(context.found.map(({ key }) => key)).toEqual(["deploy/freeze", "ledger/rounding", "plan/refunds", "retry/payments"]);
  expect((await rows(`/sync?project=${LIVELY}`)).found).toMatchObject([{ code: "sync_sequence_reused", sequence: 1 }]);
  const alerts = await rows(`/sync?project=${LIVELY}&tab=alerts`);
  expect(alerts.found.length).toBe(textsOf(alerts.html, "tbody tr").length);
  const machines = await rows(`/runtimes?project=${LIVELY}`);
  expect(machines.found.map(({ host, presence }) => [host, presence])).toContainEqual(["laptop-m3", "expired"]);
});

test("a file holds more than a page, each row once, and starts where its page starts", async () => {
  await using it = await open();
  await it.hub.engine.write("shop", async (tx) => {
    tx.append({ project: "shop", topic: "context", type: "state.promoted", subjectId: "ctx_0", actor: "hub", data: {} });
    for (let n = 0; n < 430; n++) {
      const [id, key] = [`ctx_${String(n).padStart(4, "0")}`, `key/${String(n).padStart(4, "0")}`];
      const said = { kind: "state" as const, project: "shop", summary: `=1+${n}`, authority: "evidence" as const, confidence: "verified" as const };
      const record = { ...said, id, stateKey: key, status: "current", provenance: { sourceType: "human" } };
      const times = { observedAt: null, validFrom: 1, validUntil: null, createdAt: 1, revision: n + 1 };
      await tx.context.insert({ ...said, ...times, id, stateKey: key, status: "current", sourceType: "human", record });
    }
  });
  const { cookie } = await it.signIn("viewer");
  const found = JSON.parse((await it.get("/context/export/json", { cookie })).html) as Rows;
  expect([found.length, new Set(found.map(({ key }) => key)).size]).toEqual([430, 430]);
  const csv = (await it.get("/context/export/csv", { cookie })).html;
  expect(csv).toContain(`"'=1+7"`);
  expect(csv).not.toMatch(/(^|,)"=/m);
});

test("a session of another project gets nothing, whatever it asks for", async () => {
  await using it = await open();
  await fillEverything(it);
  const { cookie } = await it.signIn("admin", "elsewhere");
  for (const list of ["journal", "context", "sync", "runtimes"])
    for (const project of ["shop", LIVELY])
      expect([list, (await it.get(`/${list}/export/json?project=${project}`, { cookie })).html]).toEqual([list, "[]"]);
  expect((await it.get("/journal/export/html", { cookie })).status).toBe(404);
});

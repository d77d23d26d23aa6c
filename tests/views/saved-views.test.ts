// Saved lists over a real hub: what can be saved, whose it is, what it counts, and what counting costs.
import { expect, test } from "bun:test";
import * as savedViews from "../../src/hub/saved-views.ts";
import { LISTS } from "../../src/views/saved-counts.ts";
import { PLACES } from "../../src/views/ui/nav.tsx";
import { type DashboardWorld, openDashboard } from "../support/dashboard.ts";
import { attributesOf, hrefOf, intrudersOf, textsOf } from "../support/html.ts";
import { beat, ended, pushRun, register, take } from "../support/lived-in.ts";
import { send } from "../support/mail.ts";
import { PAYLOADS } from "./payloads.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
const views = (html: string) => textsOf(html, "#saved-views .nav__item");
type Session = Awaited<ReturnType<DashboardWorld["signIn"]>>;
const save = ({ cookie, csrf }: Session, it: DashboardWorld, name: string, place: string, query: string) =>
  it.post("/views", { csrf, name, place, query }, { cookie });

test("a filtered list is offered to be saved, asks without script, and stands in the rail with its count on every page", async () => {
  await using it = await open();
  const me = await it.signIn("viewer");
  await beat(it, {});
  for (const id of ["run_failed0001", "run_failed0002"]) await pushRun(it, id, ended(it.clock.now, id, "failed"));
  expect(hrefOf((await it.get("/runs?project=shop", me)).html, "Save this list…")).toBeUndefined(); // nothing is filtered
  const list = await it.get("/runs?project=shop&view=failed&after=5.x", me);
  const asks = hrefOf(list.html, "Save this list…")!;
  expect(asks).toBe("/runs?project=shop&view=failed&after=5.x&act=save-view");
  const asked = await it.get(asks, me);
  expect(attributesOf(asked.html, "main form input[name=query]", "value")).toEqual(["project=shop&view=failed"]);
  const saved = await save(me, it, "Broken", "runs", "project=shop&view=failed");
  expect([saved.status, saved.headers.get("location")]).toEqual([303, "/runs?project=shop&view=failed"]);
  for (const path of ["/", "/agents", "/runs?view=failed&project=shop", "/ui/nav?place=runs"])
    expect([path, views((await it.get(path, me)).html)]).toEqual([path, ["Broken 2"]]);
  await pushRun(it, "run_failed0003", ended(it.clock.now, "third", "failed"));
  const opened = (await it.get("/runs?view=failed&project=shop", me)).html;
  expect(views(opened)).toEqual(["Broken 3"]);
  expect(attributesOf(opened, "#saved-views a[aria-current]", "href")).toEqual(["/runs?project=shop&view=failed"]);
});

test("every list can be saved, and what it counts is what the list shows", async () => {
  await using it = await open();
  const me = await it.signIn("admin");
  const [ann, bea] = [await register(it, "ann"), await register(it, "bea")];
  await send(it, ann, bea, {});
  await send(it, bea, ann, { correlationId: "t" });
  await take(it, ann, "branch:main");
  await take(it, bea, "branch:docs");
  const queries: Record<string, string> = {
    runs: "view=failed",
    messages: "q=from:ann",
    agents: "q=be",
    leases: "q=holder:bea",
    approvals: "view=decided",
    sync: "tab=gaps",
    journal: "category=lesson",
    audit: "q=action:session.started",
    search: "q=nothing",
  };
  expect(Object.keys(queries).toSorted()).toEqual(Object.keys(LISTS).toSorted());
  for (const [place, query] of Object.entries(queries)) expect([place, (await save(me, it, place, place, query)).status]).toEqual([place, 303]);
  // Nine lists: an answer counts four of them, the next ones the rest.
  const counts = async () => Object.fromEntries(views((await it.get("/settings", me)).html).map((text) => text.split(" ") as [string, string?]));
  const first = await counts();
  expect(Object.values(first).filter((count) => count !== undefined)).toHaveLength(4);
  await counts();
  const all = await counts();
  expect(all).toMatchObject({ runs: "0", messages: "1", agents: "1", leases: "1", approvals: "0", sync: "0", journal: "0", search: "0" });
  for (const place of ["messages", "agents", "leases"] as const) {
    const { html } = await it.get(`${PLACES[place].path}?${queries[place]}`, me);
    expect([place, textsOf(html, place === "leases" ? ".lease" : "tbody .cell-main").length]).toEqual([place, Number(all[place])]);
  }
});

test("counts that are behind are asked for once more, and what stands still is not counted again", async () => {
  await using it = await open();
  const me = await it.signIn();
  const ann = await register(it, "ann");
  for (let n = 0; n < 6; n++) await save(me, it, `view ${n}`, "messages", `q=thread:${n}`);
  const { messages } = it.hub.engine.read;
  const original = messages.heads;
  let looks = 0;
  messages.heads = ((...args: Parameters<typeof original>) => {
    looks++;
    return original(...args);
  }) as typeof original;
  const rail = async () => {
    looks = 0;
    const { html } = await it.get("/ui/nav?project=shop", me);
    return [looks, attributesOf(html, "#nav-places [hx-trigger^=load]", "hx-get").length];
  };
  expect(await rail()).toEqual([4, 1]);
  expect(await rail()).toEqual([2, 0]);
  expect(await rail()).toEqual([0, 0]);
  await send(it, ann, await register(it, "bea"), { correlationId: "3" });
  expect(await rail()).toEqual([4, 1]);
  await rail();
  expect(views((await it.get("/ui/nav", me)).html)).toContain("view 3 1");
  it.clock.now += 30_000; // "the last hour" moves although nothing happens
  expect(await rail()).toEqual([4, 1]);
  messages.heads = original;
});

test("a session of a project sees and counts its own project, whatever a form says", async () => {
  await using it = await open();
  const mine = await it.signIn("operator", "shop");
  const ann = await register(it, "ann");
  await send(it, ann, await register(it, "bea"), {});
  await save(mine, it, "theirs", "messages", "project=other&box=open");
  expect(views((await it.get("/messages", mine)).html)).toContain("theirs 1"); // its own, not the other project's
  expect(views((await it.get("/messages", await it.signIn("operator"))).html)).toEqual([]);
  expect(views((await it.get("/messages", await it.signIn("viewer", "shop"))).html)).toEqual([]);
});

test("a view is renamed and deleted on its page, and hostile names stay text", async () => {
  await using it = await open();
  const me = await it.signIn();
  await save(me, it, "first", "runs", "view=failed");
  const [view] = await savedViews.list(it.hub.engine.read, { role: "operator", project: null, tokenId: null });
  const page = (await it.get(`/views?act=rename-${view!.id}`, me)).html;
  expect(textsOf(page, "main tbody tr")[0]).toContain("first Runs view failed 0");
  expect(attributesOf(page, "main form input[name=name]", "value")).toContain("first");
  await it.post("/views/rename", { csrf: me.csrf, view: view!.id, name: PAYLOADS[0]!.slice(0, 60) }, me);
  for (const path of ["/views", "/runs"]) expect(intrudersOf((await it.get(path, me)).html)).toEqual([]);
  expect(textsOf((await it.get("/views", me)).html, "main tbody tr a")[0]).toContain("<script");
  const gone = await it.post("/views/delete", { csrf: me.csrf, view: view!.id }, me);
  expect(gone.headers.get("location")).toBe("/views");
  expect(textsOf((await it.get("/views", me)).html, ".flash")[0]).toContain("Deleted.");
  await it.post("/views/delete", { csrf: me.csrf, view: view!.id }, me);
  expect(textsOf((await it.get("/views", me)).html, ".flash")[0]).toContain("There is no such saved list any more.");
});

test("what is no list cannot be saved, and a form without its secret does nothing", async () => {
  await using it = await open();
  const me = await it.signIn();
  for (const [place, query] of [
    ["settings", ""],
    ["constructor", ""],
    ["journal", "entry=journal_1"],
  ] as const) {
    await save(me, it, "odd", place, query);
    expect(textsOf((await it.get("/views", me)).html, ".flash")[0]).toContain("That list cannot be saved.");
  }
  expect((await it.post("/views", { csrf: "wrong", name: "n", place: "runs", query: "view=failed" }, me)).status).toBe(403);
  const named = await save(me, it, "", "runs", "view=failed");
  expect([named.status, textsOf((await it.get("/views", me)).html, ".flash")[0]]).toEqual([
    303,
    "Name is missing. Correct the named field and send the request again.",
  ]);
  expect(textsOf((await it.get("/views", me)).html, "main h3")).toEqual(["No list is saved yet."]);
});

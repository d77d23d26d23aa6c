// The pages of leases over a real hub: what they show, who may take one away, and that names are only text.
import { expect, test } from "bun:test";
import { openDashboard } from "../support/dashboard.ts";
import { attributesOf, hrefOf, intrudersOf, textsOf } from "../support/html.ts";
import { register, standInLine, take } from "../support/lived-in.ts";
import { PAYLOADS } from "./payloads.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });

test("held leases show holder, token, time left and the line in order", async () => {
  await using it = await open();
  const [ann, bob, cid] = [await register(it, "ann"), await register(it, "bob"), await register(it, "cid")];
  await take(it, ann, "db:migrations", 60_000);
  await standInLine(it, bob, "db:migrations");
  await standInLine(it, cid, "db:migrations");
  it.clock.now += 20_000;
  const { html } = await it.get("/leases?project=shop", { cookie: (await it.signIn("viewer")).cookie });
  expect(textsOf(html, ".lease")[0]).toContain("db:migrations token 1 · held for 20 s");
  expect(textsOf(html, ".lease__left")).toEqual(["0:40"]);
  expect(textsOf(html, ".waiters li")).toEqual(["1 bob waits 20 s", "2 cid waits 20 s"]);
  expect(html).not.toContain("Force release");
});

test("a fragment is the page's own region, and follows its filter", async () => {
  await using it = await open();
  const ann = await register(it, "ann");
  await take(it, ann, "branch:main");
  await take(it, await register(it, "bob"), "branch:docs");
  const { cookie } = await it.signIn();
  const page = await it.get("/leases?q=holder%3Aann+branch&project=shop", { cookie });
  expect(textsOf(page.html, ".lease__name a")).toEqual(["branch:main"]);
  const [href] = attributesOf(page.html, "#leases", "hx-get");
  const fragment = await it.get(href!, { cookie, headers: { "hx-request": "true" } });
  expect(fragment.html.startsWith('<div id="leases"')).toBeTrue();
  expect(textsOf(fragment.html, ".lease__name a")).toEqual(["branch:main"]);
  expect(attributesOf(fragment.html, "#leases", "hx-get")).toEqual([href!]);
});

test("a long list comes in pages of fifty, each row once", async () => {
  await using it = await open();
  const ann = await register(it, "ann");
  const bob = await register(it, "bob", "bank");
  for (let n = 0; n < 60; n++) await take(it, n % 3 ? ann : bob, `resource-${String(n).padStart(2, "0")}`);
  const { cookie } = await it.signIn();
  const seen: string[] = [];
  for (let href: string | null | undefined = "/leases"; href; ) {
    const { html } = await it.get(href, { cookie });
    const names = textsOf(html, ".lease__name a");
    expect(names.length).toBeLessThanOrEqual(50);
    seen.push(...names);
    href = hrefOf(html, "Older");
  }
  expect(seen).toHaveLength(60);
  expect(new Set(seen).size).toBe(60);
});

test("a lease is taken away with a reason, by the token that was shown, and the first in line has it", async () => {
  await using it = await open();
  const [ann, bob] = [await register(it, "ann"), await register(it, "bob")];
  await take(it, ann, "env/staging");
  await standInLine(it, bob, "env/staging");
  const { cookie, csrf, id } = await it.signIn();
  const form = { csrf, project: "shop", name: "env/staging", fence: "1" };
  const missing = await it.post("/leases/force-release", form, { cookie });
  expect([missing.status, missing.headers.get("location")]).toEqual([303, "/leases/env%2Fstaging?project=shop"]);
  expect((await it.get("/leases/env%2Fstaging?project=shop", { cookie })).html).toContain("Reason is missing.");
  expect((await it.post("/leases/force-release", { ...form, reason: "its machine is gone" }, { cookie })).status).toBe(303);
  const lease = await it.hub.engine.read.leases.find("shop/env/staging");
  expect([lease!.holderName, lease!.fence]).toEqual(["bob", 2]);
  const late = await it.post("/leases/force-release", { ...form, reason: "again" }, { cookie, headers: { "hx-request": "true" } });
  expect([late.status, textsOf(late.html, ".flash")[0]]).toEqual([409, expect.stringContaining("Somebody else holds")]);
  const [entry] = await it.hub.engine.read.audit.page({ actor: id, action: "force_released" }, undefined, 10);
  expect([entry!.reason, entry!.role, entry!.origin]).toEqual(["its machine is gone", "operator", "dashboard"]);
});

test("taking away needs an operator of the project", async () => {
  await using it = await open();
  await take(it, await register(it, "ann"), "x");
  const form = { project: "shop", name: "x", fence: "1", reason: "r" };
  const [viewer, other, mine] = [await it.signIn("viewer"), await it.signIn("operator", "bank"), await it.signIn("operator", "shop")];
  for (const [session, status] of [
    [viewer, 403],
    [other, 403],
    [mine, 303],
  ] as const)
    expect((await it.post("/leases/force-release", { ...form, csrf: session.csrf }, { cookie: session.cookie })).status).toBe(status);
});

test("the history of a resource folds renewals and says who took it away and why", async () => {
  await using it = await open();
  const ann = await register(it, "ann");
  const { fencingToken } = await take(it, ann, "db");
  for (let n = 0; n < 5; n++) {
    it.clock.now += 10_000;
    await it.call("POST", "/v1/leases/db/renew", { body: { fencingToken }, headers: ann.headers });
  }
  const { cookie, csrf } = await it.signIn();
  const form = { csrf, project: "shop", name: "db", fence: "1", reason: "machine lost <b>" };
  await it.post("/leases/force-release", form, { cookie });
  const { html } = await it.get("/leases/db?project=shop", { cookie });
  expect(textsOf(html, "tbody .status")).toEqual(["taken away machine lost <b>", "renewed 5 times in 40 s", "taken"]);
  expect(textsOf(html, ".head .status")[0]).toBe("free");
  expect((await it.get("/leases/nobody?project=shop", { cookie })).status).toBe(404);
  expect((await it.get("/leases/db?project=shop", { cookie: (await it.signIn("admin", "bank")).cookie })).status).toBe(404);
});

test("without script the page of the resource asks before it takes away", async () => {
  await using it = await open();
  await take(it, await register(it, "ann"), "db");
  const { cookie } = await it.signIn();
  const list = await it.get("/leases?project=shop", { cookie });
  const [href] = attributesOf(list.html, ".lease__acts a", "href");
  const { html } = await it.get(href!, { cookie });
  expect(attributesOf(html, "#lease > .section > .section__body > form input[name=fence]", "value")).toEqual(["1"]);
});

test("the list is a file to keep, with the same filter, and no cell is a formula", async () => {
  await using it = await open();
  const ann = await register(it, "ann");
  await take(it, ann, '=HYPERLINK("x")');
  await take(it, await register(it, "bob"), "branch:docs");
  const { cookie } = await it.signIn("viewer");
  const csv = await it.get("/leases/export/csv?q=holder%3Aann", { cookie });
  expect(csv.headers.get("content-disposition")).toBe('attachment; filename="kxm-leases.csv"');
  expect(csv.html.split("\r\n")[1]).toStartWith(`"shop","'=HYPERLINK(""x"")"`);
  expect(csv.html.split("\r\n")).toHaveLength(3);
  const json = JSON.parse((await it.get("/leases/export/json", { cookie })).html);
  expect(json.map(({ name, token }: { name: string; token: number }) => [name, token])).toEqual([
    ['=HYPERLINK("x")', 1],
    ["branch:docs", 1],
  ]);
  expect((await it.get("/leases/export/xml", { cookie })).status).toBe(404);
});

test("names of resources and holders are only text, on the list, on the page and in the question", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  const names = PAYLOADS.map((payload) => payload.slice(0, 200).trim());
  for (const [index, name] of names.entries()) {
    const holder = await register(it, name.slice(0, 60).trim()).catch(() => register(it, `agent ${index}`));
    await take(it, holder, name);
  }
  const pages = names.map((name) => `/leases/${encodeURIComponent(name)}?project=shop&act=force-release`);
  for (const path of ["/leases", "/ui/leases", `/leases?q=${encodeURIComponent(names[0]!)}`, ...pages]) {
    const { html, status } = await it.get(path, { cookie });
    expect([path, status, intrudersOf(html)]).toEqual([path, 200, []]);
  }
  const { html } = await it.get("/leases?project=shop", { cookie });
  expect(textsOf(html, ".lease__name a")).toHaveLength(names.length);
  expect(textsOf(html, ".lease__name a").some((text) => text.startsWith("<script src="))).toBeTrue();
});

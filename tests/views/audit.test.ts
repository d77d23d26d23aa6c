// The page of the audit over a real hub: what it says of an act, how it is narrowed, and whose entries a session sees.
import { expect, test } from "bun:test";
import { openDashboard } from "../support/dashboard.ts";
import { attributesOf, hrefOf, markupOf, textsOf } from "../support/html.ts";
import { register, take } from "../support/lived-in.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
type World = Awaited<ReturnType<typeof open>>;

/** An operator takes a lease away, and says why. */
async function takeAway(it: World, name: string, reason: string, project = "shop") {
  await take(it, await register(it, `holder of ${name}`.slice(0, 60), project), name);
  const operator = await it.signIn("operator");
  const form = { csrf: operator.csrf, project, name, fence: "1", reason };
  expect((await it.post("/leases/force-release", form, { cookie: operator.cookie })).status).toBe(303);
  return operator;
}

test("an act is on the page a moment later, with who, what, why and from where", async () => {
  await using it = await open();
  const before = await it.get("/audit?project=shop", { cookie: (await it.signIn("viewer", "shop")).cookie });
  expect(textsOf(before.html, "tbody td:first-of-type")).toEqual(["signed in"]);
  await takeAway(it, "db", "its machine is gone");
  it.clock.now += 5_000;
  const { html } = await it.get("/audit?project=shop", { cookie: (await it.signIn("viewer")).cookie });
  const [row] = textsOf(html, "tbody tr");
  for (const part of ["took a lease away", "session ses_", "operator", "shop/db", "“ its machine is gone”", "dashboard", "5 s ago"])
    expect(row).toContain(part);
});

test("a project without any act says what will stand here", async () => {
  await using it = await open();
  await register(it, "ann");
  const { html } = await it.get("/audit?project=shop", { cookie: (await it.signIn("viewer")).cookie });
  expect(textsOf(html, ".empty h3")).toEqual(["Nobody did anything yet."]);
});

test("the list is narrowed by who, action, object and time, and says when a time cannot be read", async () => {
  await using it = await open();
  const first = await takeAway(it, "old", "r");
  it.clock.now += 3 * 3_600_000;
  const second = await takeAway(it, "new", "r");
  const { cookie } = await it.signIn("viewer");
  const objects = async (q: string) =>
    textsOf((await it.get(`/audit?project=shop&q=${encodeURIComponent(q)}`, { cookie })).html, "tbody tr").map((row) => /shop\/\w+/.exec(row)?.[0]);
  expect(await objects("action:force_released")).toEqual(["shop/new", "shop/old"]);
  expect(await objects(`who:${first.id}`)).toEqual(["shop/old"]);
  expect(await objects(`who:${second.id} action:opened`)).toEqual([]);
  expect(await objects("object:shop/old")).toEqual(["shop/old"]);
  expect(await objects("shop/new")).toEqual(["shop/new"]);
  expect(await objects("since:1h")).toEqual(["shop/new"]);
  expect(await objects("until:1h")).toEqual(["shop/old"]);
  expect(textsOf((await it.get("/audit?q=since:soon", { cookie })).html, ".notice")[0]).toContain("a date such as");
});

test("a long audit comes in pages, each entry once, and leaves as a file", async () => {
  await using it = await open();
  for (let n = 0; n < 60; n++) await it.signIn("viewer", "shop");
  const { cookie } = await it.signIn("admin");
  const seen: number[] = [];
  for (let href: string | null | undefined = "/audit?project=shop"; href; ) {
    const { html } = await it.get(href, { cookie });
    seen.push(textsOf(html, "tbody tr").length);
    href = hrefOf(html, "Older");
  }
  expect(seen).toEqual([50, 10]);
  const file = await it.get("/audit/export/json?project=shop", { cookie });
  expect(JSON.parse(file.html)).toHaveLength(60);
  expect((await it.get("/audit/export/csv?project=shop", { cookie })).headers.get("content-disposition")).toContain("kxm-audit.csv");
});

test("a session of one project sees no other project's acts and none of the hub's own", async () => {
  await using it = await open();
  await takeAway(it, "secret-plan", "r", "bank");
  const { cookie } = await it.signIn("admin", "shop");
  for (const path of ["/audit", "/audit?project=bank", "/audit/export/json?project=bank", "/audit?q=action:force_released"]) {
    const { html } = await it.get(path, { cookie });
    expect([path, html.includes("secret-plan")]).toEqual([path, false]);
  }
  expect((await it.get("/audit", { cookie: (await it.signIn("viewer")).cookie })).html).toContain("secret-plan");
  expect((await it.get("/audit")).status).toBe(303);
});

test("an act on something with a page of its own leads there", async () => {
  await using it = await open();
  await register(it, "ann");
  const { cookie, csrf } = await it.signIn("admin");
  await it.post("/webhooks/new", { csrf, project: "shop", url: "https://ci.example.org/x", events: "" }, { cookie });
  const [row] = await it.hub.engine.read.webhookEndpoints.ofProject("shop", 10);
  const { html } = await it.get("/audit?project=shop&q=action:endpoint.created", { cookie });
  expect(attributesOf(html, "tbody a", "href")).toEqual([`/webhooks/${row!.id}`]);
});

test("reasons and names are only text", async () => {
  await using it = await open();
  await takeAway(it, "<img src=x onerror=1>", "<script>alert(1)</script> \u202e gone");
  const { html } = await it.get("/audit", { cookie: (await it.signIn("viewer")).cookie });
  const { elements, attributes } = markupOf(html);
  expect([elements.has("img"), attributes.has("onerror")]).toEqual([false, false]);
  expect(html).not.toContain("<script>alert");
  expect(textsOf(html, "tbody").join(" ")).toContain("<script>alert(1)</script> U+202E gone");
});

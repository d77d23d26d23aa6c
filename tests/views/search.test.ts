// The page of search over a real hub: what is found and marked, who reads the texts, and that what was found is only text.
import { expect, test } from "bun:test";
import * as search from "../../src/hub/search.ts";
import { type DashboardWorld, openDashboard } from "../support/dashboard.ts";
import { attributesOf, hrefOf, markupOf, textsOf } from "../support/html.ts";
import { type Registered, register, take } from "../support/lived-in.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });

async function send(it: DashboardWorld, from: Registered, target: string, content: string): Promise<string> {
  const { body } = await it.call("POST", "/v1/messages", { body: { target, content }, headers: from.headers });
  return body.message.id;
}

test("an empty search says what may be typed", async () => {
  await using it = await open();
  const { html } = await it.get("/search", { cookie: (await it.signIn("viewer")).cookie });
  expect(textsOf(html, ".empty h3")).toEqual(["What are you looking for?"]);
  const offered = await it.get("/ui/search/completions?q=ref+ki", { cookie: (await it.signIn("viewer")).cookie });
  expect(attributesOf(offered.html, "[role=option]", "data-insert")).toEqual(["kind:"]);
});

test("what was found is marked, leads to its page, and is narrowed by kind", async () => {
  await using it = await open();
  const [ann] = [await register(it, "ann"), await register(it, "bob")];
  const id = await send(it, ann, "bob", "Please settle the refund before noon");
  await take(it, ann, "file:refund/schema.sql");
  await search.index(it.hub);
  const { cookie } = await it.signIn("operator");
  const { html } = await it.get("/search?project=shop&q=refund", { cookie });
  expect(attributesOf(html, ".hits__title a", "href")).toEqual(
    expect.arrayContaining([`/messages/${id}?project=shop`, "/leases/file%3Arefund%2Fschema.sql?project=shop"]),
  );
  expect(textsOf(html, ".hits mark")).toEqual(["refund"]);
  const narrowed = await it.get(attributesOf(html, ".facets a", "href")[3]!, { cookie });
  expect(textsOf(narrowed.html, ".hits__title")).toEqual(["file:refund/schema.sql"]);
  expect(textsOf(narrowed.html, ".qchip__v")).toEqual(["lease"]);
});

test("a viewer is shown what was found, not its text", async () => {
  await using it = await open();
  const [ann] = [await register(it, "ann"), await register(it, "bob")];
  await send(it, ann, "bob", "the password of the vault is zebra");
  await search.index(it.hub);
  const { html } = await it.get("/search?q=zebra", { cookie: (await it.signIn("viewer")).cookie });
  expect(textsOf(html, ".hits__title")).toEqual(["ann to bob"]);
  expect(html).not.toContain("password of the vault");
});

test("a long result comes in pages, each hit once", async () => {
  await using it = await open();
  const [ann] = [await register(it, "ann"), await register(it, "bob")];
  for (let n = 0; n < 30; n++) await send(it, ann, "bob", `apple ${n}`);
  await search.index(it.hub);
  const { cookie } = await it.signIn();
  const seen: (string | null)[] = [];
  for (let href: string | null | undefined = "/search?project=shop&q=apple"; href; ) {
    const { html } = await it.get(href, { cookie });
    seen.push(...attributesOf(html, ".hits__title a", "href"));
    href = hrefOf(html, "Older");
  }
  expect([seen.length, new Set(seen).size]).toEqual([30, 30]);
});

test("a session of one project finds nothing of another", async () => {
  await using it = await open();
  const [ann] = [await register(it, "ann", "bank"), await register(it, "bob", "bank")];
  await send(it, ann, "bob", "zebra");
  await search.index(it.hub);
  const { cookie } = await it.signIn("admin", "shop");
  for (const path of ["/search?q=zebra", "/search?q=zebra&project=bank", "/search?q=zebra+project:bank"])
    expect([path, textsOf((await it.get(path, { cookie })).html, ".hits li")]).toEqual([path, []]);
  expect(textsOf((await it.get("/search?q=zebra", { cookie: (await it.signIn()).cookie })).html, ".hits li")).toHaveLength(1);
  expect((await it.get("/search?q=zebra")).status).toBe(303);
});

test("a search that cannot be read is answered in place, and what was found is only text", async () => {
  await using it = await open();
  const [ann] = [await register(it, "ann"), await register(it, "bob")];
  await send(it, ann, "bob", "<img src=x onerror=1> zebra \u202e <script>alert(1)</script>");
  await search.index(it.hub);
  const { cookie } = await it.signIn();
  const wrong = await it.get("/search?q=kind:nonsense<b>", { cookie });
  expect([wrong.status, textsOf(wrong.html, ".notice")[0]]).toEqual([200, expect.stringContaining("Kind: is one of")]);
  const { html } = await it.get("/search?q=zebra", { cookie });
  const { elements, attributes } = markupOf(html);
  expect([elements.has("img"), elements.has("b"), attributes.has("onerror")]).toEqual([false, false, false]);
  expect(html).not.toContain("<script>alert");
  expect(textsOf(html, ".hits__snip")[0]).toContain("<img src=x onerror=1> zebra U+202E");
});

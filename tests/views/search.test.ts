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

test("what narrows says how many there are: of each kind whatever is chosen, of each project and sender within it", async () => {
  await using it = await open();
  const [ann] = [await register(it, "ann"), await register(it, "bob")];
  for (let n = 0; n < 3; n++) await send(it, ann, "bob", `zebra ${n}`);
  await take(it, ann, "file:zebra.sql");
  const cid = await register(it, "cid", "bank");
  await register(it, "dan", "bank");
  await send(it, cid, "dan", "zebra");
  const { cookie } = await it.signIn("viewer");
  const facets = async (path: string) => textsOf((await it.get(path, { cookie })).html, ".facets a");
  const all = await facets("/search?q=zebra");
  for (const line of ["Everything 5", "Messages 4", "Leases 1", "Runs 0", "shop 4", "bank 1", "ann 4", "cid 1"]) expect(all).toContain(line);
  const messages = await facets("/search?q=kind:message+zebra");
  for (const line of ["Everything 5", "Leases 1", "shop 3", "ann 3"]) expect(messages).toContain(line);
  expect(await facets("/search?q=kind:lease")).toContain("Leases 1");
  const shop = await it.signIn("viewer", "shop");
  const own = textsOf((await it.get("/search?q=zebra", { cookie: shop.cookie })).html, ".facets a");
  expect([own.includes("Everything 4"), own.join().includes("bank")]).toEqual([true, false]);
  const page = (await it.get("/search?q=zebra", { cookie })).html;
  const narrowed = hrefOf(page, "ann 4") ?? attributesOf(page, ".facets a", "href").find((href) => href?.includes("from%3Aann"));
  expect(textsOf((await it.get(narrowed!, { cookie })).html, ".hits > li")).toHaveLength(4);
});

test("values of qualifiers are offered, of the session's projects only, and a name that is markup is only text", async () => {
  await using it = await open();
  await register(it, "ann");
  await register(it, "annie lee");
  await register(it, "<b>bad</b>", "shop");
  await register(it, "anton", "bank");
  const offered = async (q: string, who: string) =>
    attributesOf((await it.get(`/ui/search/completions?q=${encodeURIComponent(q)}`, { cookie: who })).html, "[role=option]", "data-insert");
  const { cookie } = await it.signIn("viewer");
  expect(await offered("x from:an", cookie)).toEqual(["from:ann", 'from:"annie lee"', "from:anton"]);
  expect(await offered("from:an", (await it.signIn("viewer", "shop")).cookie)).toEqual(["from:ann", 'from:"annie lee"']);
  expect(await offered("status:re", cookie)).toEqual(["status:replied", "status:rejected"]);
  expect(await offered("project:", cookie)).toEqual(["project:bank", "project:shop"]);
  expect(await offered("since:7", cookie)).toEqual(["since:7d"]);
  expect(await offered("kind:le", cookie)).toEqual(["kind:lease"]);
  const { html } = await it.get("/ui/search/completions?q=from:%3Cb", { cookie });
  expect([markupOf(html).elements.has("b"), textsOf(html, "[role=option]")[0]]).toEqual([false, expect.stringContaining("<b>bad</b>")]);
});

test("a saved search stands beside the results with its count, for its owner alone", async () => {
  await using it = await open();
  const [ann] = [await register(it, "ann"), await register(it, "bob")];
  await send(it, ann, "bob", "zebra");
  const [viewer, operator] = [await it.signIn("viewer"), await it.signIn("operator")];
  await it.post("/views", { csrf: viewer.csrf, place: "search", query: "q=zebra", name: "Stripes" }, { cookie: viewer.cookie });
  const facets = async (who: string) => textsOf((await it.get("/search?q=ann", { cookie: who })).html, ".facets a");
  expect(await facets(viewer.cookie)).toContain("Stripes 1");
  expect((await facets(operator.cookie)).join()).not.toContain("Stripes");
});

test("what was found is taken along as a file, with texts only for those who may read them", async () => {
  await using it = await open();
  const [ann] = [await register(it, "ann"), await register(it, "bob")];
  for (let n = 0; n < 30; n++) await send(it, ann, "bob", `=zebra() ${n}`);
  const file = async (role: "viewer" | "operator", project: string | null = null) => {
    const { html } = await it.get("/search/export/json?q=zebra", { cookie: (await it.signIn(role, project)).cookie });
    return JSON.parse(html) as { kind: string; text: string | null }[];
  };
  const texts = (rows: { text: string | null }[]) => new Set(rows.map(({ text }) => text?.includes("zebra") ?? false));
  const [read, unread] = [await file("operator"), await file("viewer")];
  expect([read.length, texts(read), unread.length, texts(unread)]).toEqual([30, new Set([true]), 30, new Set([false])]);
  expect(await file("operator", "bank")).toEqual([]);
  const csv = await it.get("/search/export/csv?q=zebra", { cookie: (await it.signIn("operator")).cookie });
  expect(csv.html).toContain('"\'=zebra() 1"');
});

// The reference of the API as a page: every route of the table is on it, with what it needs, takes and refuses.
import { expect, test } from "bun:test";
import { describeApi } from "../../src/api/reference.ts";
import { ROUTES } from "../../src/api/routes.ts";
import { docsScreen } from "../../src/views/docs.tsx";
import { storiesScreen } from "../../src/views/stories-screen.tsx";
import { openDashboard } from "../support/dashboard.ts";
import { attributesOf, textsOf } from "../support/html.ts";

const reference = describeApi(ROUTES);
const open = () => openDashboard({ screens: [docsScreen(() => reference), storiesScreen] });

test("every operation and every code of refusal is on the page", async () => {
  await using it = await open();
  const { html } = await it.get("/docs", { cookie: (await it.signIn("viewer")).cookie });
  expect(attributesOf(html, "section[id^=op-]", "id")).toEqual(reference.operations.map(({ id }) => `op-${id}`));
  expect(attributesOf(html, "tr[id^=code-]", "id")).toEqual(reference.errors.map(({ code }) => `code-${code}`));
  const hashes = attributesOf(html, "main .kv a", "href").map(String);
  expect([...new Set(hashes)].filter((hash) => !reference.errors.some(({ code }) => hash === `#code-${code}`))).toEqual([]);
});

test("an operation says what it needs, takes, answers and refuses, with a call to copy", async () => {
  await using it = await open();
  const { html } = await it.get("/docs?q=sendMessage", { cookie: (await it.signIn()).cookie });
  expect(attributesOf(html, "section[id^=op-]", "id")).toEqual(["op-sendMessage"]);
  expect(textsOf(html, "#op-sendMessage dd")[0]).toContain("agent id and key");
  expect(textsOf(html, "#op-sendMessage-body-target td")).toEqual(["target", "body", "text of at most 80 characters, required", expect.any(String)]);
  const [call] = attributesOf(html, "#op-sendMessage [data-copy]", "data-copy");
  expect(call).toStartWith("curl -X POST 'http://127.0.0.1:7331/v1/messages'");
  expect(call).toContain(`-d '{"target":"…","content":"…"}'`);
});

test("a part of the API is shown alone, and what is typed is only text", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  const part = await it.get("/docs?tag=leases", { cookie });
  const inPart = reference.operations.filter(({ tag }) => tag === "leases");
  expect(attributesOf(part.html, "section[id^=op-]", "id")).toHaveLength(inPart.length);
  const odd = await it.get(`/docs?q=${encodeURIComponent('"><script>alert(1)</script>')}&tag=%3Cb%3E`, { cookie });
  expect([odd.status, textsOf(odd.html, "main script, main b"), textsOf(odd.html, ".section__note")[0]]).toEqual([200, [], "No operation fits."]);
});

test("stories and the reference are there only when the composition root adds them", async () => {
  await using with_ = await open();
  await using without = await openDashboard();
  for (const path of ["/docs", "/stories"]) {
    expect((await with_.get(path, { cookie: (await with_.signIn()).cookie })).status).toBe(200);
    expect((await without.get(path, { cookie: (await without.signIn()).cookie })).status).toBe(404);
  }
});

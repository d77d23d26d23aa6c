// The pages of settings over a real hub: who one is, tokens with their secret shown once, sessions, definitions, and that names are only text.
import { expect, test } from "bun:test";
import { sha256 } from "../../src/protocol/canonical.ts";
import { HubError } from "../../src/protocol/errors.ts";
import { openDashboard } from "../support/dashboard.ts";
import { hrefOf, markupOf, textsOf } from "../support/html.ts";
import { register } from "../support/lived-in.ts";
import { withWorkflows } from "../support/workflows.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });

test("a viewer sees who they are and nobody else; an admin is offered tokens", async () => {
  await using it = await open();
  const [viewer, admin] = [await it.signIn("viewer"), await it.signIn("admin")];
  const seen = await it.get("/settings", { cookie: viewer.cookie });
  expect(textsOf(seen.html, "tbody tr")).toHaveLength(1);
  expect(textsOf(seen.html, "tbody tr")[0]).toContain("this browser");
  expect([seen.html.includes(admin.id), hrefOf(seen.html, "New token")]).toEqual([false, undefined]);
  const mine = await it.get("/settings", { cookie: admin.cookie });
  expect(textsOf(mine.html, ".empty h3")).toEqual(["There is no token yet.", "No definition is in force."]);
  expect(mine.html).toContain(viewer.id);
});

test("a token is made, its secret stands in that one answer, and revoking it ends its sessions", async () => {
  await using it = await open();
  await register(it, "ann");
  const { cookie, csrf, id } = await it.signIn("admin");
  const made = await it.post("/settings/tokens/new", { csrf, name: "wall screen", scope: "viewer", of: "shop", days: "30" }, { cookie });
  const [secret] = textsOf(made.html, ".cmd code");
  const [row] = await it.hub.engine.read.tokens.list(10);
  expect([made.status, row!.tokenHash, row!.project, row!.expiresAt]).toEqual([200, sha256(secret!), "shop", it.clock.now + 30 * 86_400_000]);
  const list = await it.get("/settings", { cookie });
  expect(list.html).not.toContain(secret!);
  expect(textsOf(list.html, "tbody tr")[0]).toContain("wall screen");
  const asks = await it.get(hrefOf(list.html, "Revoke…")!, { cookie });
  expect(asks.html).toContain("wall screen");
  expect((await it.post("/settings/tokens/revoke", { csrf, id: row!.id }, { cookie })).status).toBe(303);
  expect((await it.hub.engine.read.tokens.find(row!.id))!.revokedBy).toBe(id);
  const acts = (await it.hub.engine.read.audit.page({ actor: id, project: "shop" }, undefined, 10)).map(({ action }) => action);
  expect(acts).toEqual(["token.revoked", "token.created"]);
});

test("a form that asks for what cannot be is shown again with what was typed", async () => {
  await using it = await open();
  const { cookie, csrf } = await it.signIn("admin");
  const answer = await it.post("/settings/tokens/new", { csrf, name: "ci", scope: "project", of: "", days: "7" }, { cookie });
  expect([answer.status, textsOf(answer.html, ".flash")[0]]).toEqual([400, expect.stringContaining("needs a project")]);
  expect(answer.html).toContain('value="ci"');
  expect((await it.post("/settings/tokens/new", { csrf, name: "ci", scope: "admin", of: "", days: "9999" }, { cookie })).status).toBe(400);
  expect(await it.hub.engine.read.tokens.list(10)).toEqual([]);
});

test("an admin ends another session, which is then signed out", async () => {
  await using it = await open();
  const [admin, other] = [await it.signIn("admin"), await it.signIn("operator")];
  expect((await it.get("/settings", { cookie: other.cookie })).status).toBe(200);
  expect((await it.post("/settings/sessions/end", { csrf: admin.csrf, id: other.id }, { cookie: admin.cookie })).status).toBe(303);
  expect((await it.get("/settings", { cookie: other.cookie })).headers.get("location")).toStartWith("/signin");
  const [entry] = await it.hub.engine.read.audit.page({ actor: admin.id, action: "session.ended" }, undefined, 10);
  expect(entry!.subjectId).toBe(other.id);
});

test("definitions are shown without their secrets, and read again from their file", async () => {
  await using it = await withWorkflows(await open());
  const { cookie, csrf } = await it.signIn("admin");
  const { html } = await it.get("/settings", { cookie });
  expect(textsOf(html, "tbody").at(-1)).toContain("release");
  expect(html).not.toContain("0123456789abcdef");
  let reads = 0;
  it.hub.reloadDefinitions = () => ++reads;
  expect((await it.post("/settings/definitions/reload", { csrf }, { cookie })).status).toBe(303);
  expect((await it.get("/settings", { cookie })).html).toContain("One definition is in force.");
  it.hub.reloadDefinitions = () => {
    throw new HubError("invalid_definitions", "stages is missing");
  };
  await it.post("/settings/definitions/reload", { csrf }, { cookie });
  expect((await it.get("/settings", { cookie })).html).toContain("Stages is missing.");
  expect(reads).toBe(1);
});

test("tokens, sessions and definitions are an admin's of the project", async () => {
  await using it = await withWorkflows(await open());
  const [operator, other, admin] = [await it.signIn("operator"), await it.signIn("admin", "elsewhere"), await it.signIn("admin")];
  await it.post("/settings/tokens/new", { csrf: admin.csrf, name: "zebra", scope: "viewer", of: "shop" }, { cookie: admin.cookie });
  const [token] = await it.hub.engine.read.tokens.list(10);
  for (const path of ["/settings/tokens/new", "/settings/tokens/revoke", "/settings/sessions/end", "/settings/definitions/reload"])
    expect((await it.post(path, { csrf: operator.csrf, id: token!.id }, { cookie: operator.cookie })).status).toBe(403);
  const asOther = (path: string, form: Record<string, string>) => it.post(path, { ...form, csrf: other.csrf }, { cookie: other.cookie });
  expect((await asOther("/settings/tokens/revoke", { id: token!.id })).status).toBe(404);
  expect((await asOther("/settings/sessions/end", { id: admin.id })).status).toBeGreaterThanOrEqual(400);
  for (const of of ["shop", ""]) expect((await asOther("/settings/tokens/new", { name: "mine", scope: "admin", of })).status).toBe(403);
  const { html } = await it.get("/settings", { cookie: other.cookie });
  for (const hidden of ["zebra", admin.id, "release"]) expect(html).not.toContain(hidden);
  expect(await it.hub.engine.read.tokens.list(10)).toHaveLength(1);
  expect((await it.hub.engine.read.tokens.find(token!.id))!.revokedAt).toBeNull();
});

test("names of tokens are only text", async () => {
  await using it = await open();
  const { cookie, csrf } = await it.signIn("admin");
  await it.post("/settings/tokens/new", { csrf, name: "<img src=x onerror=1> \u202e<b>", scope: "viewer", of: "" }, { cookie });
  const [token] = await it.hub.engine.read.tokens.list(10);
  for (const path of ["/settings", `/settings/tokens/revoke?id=${token!.id}`]) {
    const { html } = await it.get(path, { cookie });
    const { elements, attributes } = markupOf(html);
    expect([elements.has("img"), elements.has("b"), attributes.has("onerror")]).toEqual([false, false, false]);
    expect(textsOf(html, "main").join(" ")).toContain("<img src=x onerror=1> U+202E<b>");
  }
});

// The pages of settings over a real hub: who one is, tokens with their secret shown once, sessions, definitions, and that names are only text.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { storeWork } from "../../src/cli/hub-store.ts";
import * as tokens from "../../src/hub/tokens.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { HubError } from "../../src/protocol/errors.ts";
import { type DashboardWorld, openDashboard } from "../support/dashboard.ts";
import { hrefOf, markupOf, textsOf } from "../support/html.ts";
import { register } from "../support/lived-in.ts";
import { send } from "../support/mail.ts";
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

test("revoking a project's last token says that it closes the project, and opens it again when that is wanted", async () => {
  await using it = await open();
  await register(it, "ann");
  const { cookie, csrf } = await it.signIn("admin");
  const page = async (path = "/settings") => (await it.get(path, { cookie })).html;
  const make = async () => {
    await it.post("/settings/tokens/new", { csrf, name: "agents", scope: "project", of: "shop", days: "30" }, { cookie });
    return (await it.hub.engine.read.tokens.list(10)).at(-1)!;
  };
  const join = async (name: string) => (await it.call("POST", "/v1/agents/register", { body: { name, purpose: "x", project: "shop" } })).status;
  const [first, second] = [await make(), await make()];
  expect(await join("bob")).toBe(401);
  expect(await page(`/settings/tokens/revoke?id=${first.id}`)).not.toContain("No other token");
  await it.post("/settings/tokens/revoke", { csrf, id: first.id }, { cookie });
  expect(textsOf(await page(), ".notice")).toEqual([]);
  expect((await it.post("/settings/tokens/open", { csrf, of: "shop" }, { cookie })).status).toBe(409); // the second one counts
  expect(textsOf(await page(`/settings/tokens/revoke?id=${second.id}`), "form button")).toContain("Revoke it and open the project");
  await it.post("/settings/tokens/revoke", { csrf, id: second.id }, { cookie });
  expect(await join("bob")).toBe(401);
  const closed = await page();
  expect(textsOf(closed, ".notice")[0]).toStartWith("shop is closed.");
  expect(await page(hrefOf(closed, "Open it again…")!)).toContain("without a token");
  const operator = await it.signIn("operator");
  expect((await it.post("/settings/tokens/open", { csrf: operator.csrf, of: "shop" }, { cookie: operator.cookie })).status).toBe(403);
  expect((await it.post("/settings/tokens/open", { csrf, of: "shop" }, { cookie })).status).toBe(303);
  expect([await join("bob"), textsOf(await page(), ".notice")]).toEqual([201, []]);
  const third = await make();
  expect(await join("cat")).toBe(401);
  await it.post("/settings/tokens/revoke", { csrf, id: third.id, open: "1" }, { cookie });
  expect(await join("cat")).toBe(201);
  const acts = (await it.hub.engine.read.audit.page({ project: "shop" }, undefined, 3)).map(({ action }) => action);
  expect(acts).toEqual(["project.opened", "token.revoked", "token.created"]);
});

test("a hub with an admin token closes no project with its last token", async () => {
  await using it = await openDashboard({ settings: { rateLimit: undefined, adminTokenHash: sha256("0123456789abcdef") } });
  const { cookie, csrf } = await it.signIn("admin");
  await it.hub.engine.write("shop", (tx) =>
    tokens.create(tx, { actor: "admin", role: "admin" }, { secret: "kxp_x", name: "a", scope: "project", project: "shop", expiresAt: null }),
  );
  const [token] = await it.hub.engine.read.tokens.list(1);
  expect((await it.get(`/settings/tokens/revoke?id=${token!.id}`, { cookie })).html).not.toContain("No other token");
  await it.post("/settings/tokens/revoke", { csrf, id: token!.id }, { cookie });
  expect(textsOf((await it.get("/settings", { cookie })).html, ".notice")).toEqual([]);
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

test("an admin of one project does not replace the definitions of all of them", async () => {
  await using it = await withWorkflows(await open());
  let reads = 0;
  it.hub.reloadDefinitions = () => ++reads;
  const { cookie, csrf } = await it.signIn("admin", "shop");
  expect((await it.get("/settings", { cookie })).html).not.toContain("Read the file again");
  const answer = await it.post("/settings/definitions/reload", { csrf }, { cookie, headers: { "hx-request": "true" } });
  expect([answer.status, reads]).toEqual([403, 0]);
});

test("retention tells what goes next, to those who see all projects", async () => {
  await using it = await open();
  await register(it, "ann");
  const { cookie } = await it.signIn("viewer");
  const { html } = await it.get("/settings?tab=retention", { cookie });
  expect(textsOf(html, ".tabs a")).toEqual(["Access", "Retention", "Store"]);
  const log = textsOf(html, "#kept-events")[0]!;
  expect(log).toStartWith("Event log 30 d after it happened – – 30 d");
  it.clock.now += 30 * 86_400_000;
  const { html: later } = await it.get("/settings?tab=retention", { cookie: (await it.signIn("viewer")).cookie });
  expect(textsOf(later, "#kept-events")[0]).toMatch(/^Event log 30 d after it happened [1-9]\d* [\d.]+ k?B/);
  expect(textsOf(later, ".stat__value")[0]).toMatch(/^[1-9]\d* records$/);
  const other = await it.get("/settings?tab=retention", { cookie: (await it.signIn("admin", "shop")).cookie });
  expect([textsOf(other.html, ".tabs a"), textsOf(other.html, "#kept-events")]).toEqual([[], []]);
});

/** Gives the hub what it can do to its own file. */
function withStore(it: DashboardWorld): string {
  const stateDir = it.location.replace("/kxm.db", "/state");
  it.hub.storeWork = storeWork({ databaseUrl: undefined, dataPath: it.location, stateDir }, it.hub.clock);
  return stateDir;
}
async function ended(it: DashboardWorld): Promise<void> {
  while (await it.hub.engine.read.upkeep.running()) await new Promise((turn) => setImmediate(turn));
}

test("an admin backs the store up and verifies it from the page; a viewer sees what came of it without its place", async () => {
  await using it = await open();
  await register(it, "ann");
  const stateDir = withStore(it);
  const { cookie, csrf } = await it.signIn("admin");
  const before = await it.get("/settings?tab=store", { cookie });
  expect(textsOf(before.html, ".notice").join()).toContain("No backup was made");
  expect((await it.post("/settings/store/backup", { csrf }, { cookie })).headers.get("location")).toBe("/settings?tab=store");
  await ended(it);
  expect((await it.post("/settings/store/verify", { csrf }, { cookie })).status).toBe(303);
  await ended(it);
  const page = async (who: string) => (await it.get("/settings?tab=store", { cookie: who })).html;
  const rows = textsOf(await page(cookie), "[id^=job-]");
  expect(rows[0]).toMatch(/^Check .* sound /);
  expect(rows[1]).toContain("verified");
  const [, backup] = await it.hub.engine.read.upkeep.newest(2);
  const { file } = (backup!.outcome as { backup: { file: string } }).backup;
  expect([file.startsWith(stateDir), existsSync(file), rows[1]!.includes(file)]).toEqual([true, true, true]);
  const viewer = await page((await it.signIn("viewer")).cookie);
  expect([textsOf(viewer, "[id^=job-]").length, viewer.includes(stateDir), viewer.includes("Back up now")]).toEqual([2, false, false]);
});

test("a damaged row is found from the page, with its place for the admin", async () => {
  await using it = await open();
  withStore(it);
  const { cookie, csrf } = await it.signIn("admin");
  const [ann, bob] = [await register(it, "ann"), await register(it, "bob")];
  const { id } = await send(it, ann, bob);
  const database = new Database(it.location);
  database.run("update messages set content = 'hellp'");
  database.close(true);
  await it.post("/settings/store/verify", { csrf }, { cookie });
  await ended(it);
  const [row] = textsOf((await it.get("/settings?tab=store", { cookie })).html, "[id^=job-]");
  expect(row).toContain("1 place is damaged");
  expect(row).toContain(id);
});

test("nobody but an admin of all projects starts work on the store, and a database says what to do instead", async () => {
  await using it = await open();
  withStore(it);
  for (const who of [await it.signIn("viewer"), await it.signIn("operator"), await it.signIn("admin", "shop")])
    for (const kind of ["backup", "verify"]) {
      const answer = await it.post(`/settings/store/${kind}`, { csrf: who.csrf }, { cookie: who.cookie, headers: { "hx-request": "true" } });
      expect(answer.status).toBe(403);
    }
  expect(await it.hub.engine.read.upkeep.newest(10)).toEqual([]);
  it.hub.storeWork = storeWork({ databaseUrl: "postgres://kxm@db/kxm", dataPath: it.location, stateDir: "/nowhere" }, it.hub.clock);
  const { cookie, csrf } = await it.signIn("admin");
  const { html } = await it.get("/settings?tab=store", { cookie });
  expect(textsOf(html, ".cmd code")[0]).toStartWith("pg_dump");
  expect([html.includes("Back up now"), html.includes("Verify now")]).toEqual([false, true]);
  expect((await it.post("/settings/store/backup", { csrf }, { cookie, headers: { "hx-request": "true" } })).status).toBe(409);
  expect(existsSync("/nowhere")).toBe(false);
});

// Sessions, form secrets, headers and errors of the dashboard, whatever the screen.
import { expect, test } from "bun:test";
import * as sessions from "../../src/hub/sessions.ts";
import * as tokens from "../../src/hub/tokens.ts";
import { newSecret } from "../../src/protocol/ids.ts";
import { AUTH_FAILURES_PER_MINUTE_MAX } from "../../src/protocol/limits.ts";
import { CONTENT_SECURITY_POLICY } from "../../src/views/headers.ts";
import { jsx } from "../../src/views/jsx/jsx-runtime.ts";
import { screen } from "../../src/views/screen.ts";
import { openDashboard } from "../support/dashboard.ts";
import { attributesOf } from "../support/html.ts";

const echo = screen({
  method: "GET",
  path: "/agents/:id",
  role: "viewer",
  run: (visit) => visit.page({ title: visit.params["id"]!, children: jsx("p", { id: "who", children: visit.params["id"] }) }),
});
const act = screen({
  method: "POST",
  path: "/agents/:id/retire",
  role: "operator",
  run: (visit) => visit.redirect("/agents/x", { tone: "ok", text: `retired ${visit.params["id"]}` }),
});
const broken = screen({
  method: "GET",
  path: "/broken",
  role: "viewer",
  run: () => {
    throw new Error("secret of the house");
  },
});
const open = () => openDashboard({ screens: [echo, act, broken] });

test("nobody signed in is led to the sign-in page and back", async () => {
  await using it = await open();
  const answer = await it.get("/agents/a?tab=1");
  expect([answer.status, answer.headers.get("location")]).toEqual([303, "/signin?back=%2Fagents%2Fa%3Ftab%3D1"]);
  const page = await it.get("/signin?back=%2Fagents%2Fa");
  expect(page.html).toContain('name="back" value="/agents/a"');
  expect((await it.get("/signin?back=//evil.example")).html).not.toContain("evil");
});

test("signing in leads back to a page of this hub, however the way back is spelled", async () => {
  await using it = await open();
  const token = newSecret("kxm");
  await it.hub.engine.write("", (tx) =>
    tokens.create(tx, { actor: "admin", role: "admin" }, { secret: token, name: "me", scope: "viewer", project: null, expiresAt: null }),
  );
  const leadsTo = async (back: string) => {
    const location = (await it.post("/signin", { token, back })).headers.get("location")!;
    return [location, new URL(location, "http://127.0.0.1:7331/signin").origin];
  };
  // A browser drops tabs and line breaks from an address and reads a backslash as a slash before it looks for a host.
  for (const back of [
    "//evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    "/\t\\evil.example",
    "/\n/evil.example",
    "/.//evil.example",
    "\t//evil.example",
  ])
    expect([back, ...(await leadsTo(back))]).toEqual([back, "/", "http://127.0.0.1:7331"]);
  expect((await leadsTo("/runs/a%2Fb?tab=1#end"))[0]).toBe("/runs/a%2Fb?tab=1#end");
});

test("behind a proxy that speaks TLS the cookie never travels without it", async () => {
  await using it = await openDashboard({
    screens: [echo],
    settings: { publicUrl: "https://kxm.example.com" },
    hosts: new Set(["127.0.0.1:7331", "kxm.example.com"]),
  });
  const token = newSecret("kxm");
  await it.hub.engine.write("", (tx) =>
    tokens.create(tx, { actor: "admin", role: "admin" }, { secret: token, name: "me", scope: "viewer", project: null, expiresAt: null }),
  );
  const cookieOf = async (host: string) => {
    const headers = { "content-type": "application/x-www-form-urlencoded", host };
    const body = new URLSearchParams({ token }).toString();
    return (await it.app.handle(new Request(`http://${host}/signin`, { method: "POST", headers, body }))).headers.get("set-cookie");
  };
  expect(await cookieOf("kxm.example.com")).toEndWith("; Secure");
  expect(await cookieOf("127.0.0.1:7331")).not.toContain("Secure"); // this machine's own browser has no TLS to speak
});

test("a one-time link becomes a session cookie by a redirect to a clean address, once", async () => {
  await using it = await open();
  const secret = newSecret("kxl");
  await it.hub.engine.write("", (tx) =>
    sessions.createLink(tx, { actor: "admin", role: "admin" }, { secret, role: "operator", project: null, tokenId: null }),
  );
  const first = await it.get(`/signin?link=${secret}`);
  const cookie = first.headers.get("set-cookie")!;
  expect([first.status, first.headers.get("location"), first.headers.get("referrer-policy")]).toEqual([303, "/", "no-referrer"]);
  expect(cookie).toMatch(/^kxm_session_7331=kxs_[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800$/);
  expect((await it.get("/agents/a", { cookie: cookie.split(";")[0]! })).status).toBe(200);
  const second = await it.get(`/signin?link=${secret}`);
  expect(second.headers.get("set-cookie")).toBeNull();
  expect(second.html).toContain("no longer works");
  expect(second.status).toBe(401);
});

test("a link is too old after 60 seconds, and a look ahead does not use it up", async () => {
  await using it = await open();
  const make = async () => {
    const secret = newSecret("kxl");
    await it.hub.engine.write("", (tx) =>
      sessions.createLink(tx, { actor: "admin", role: "admin" }, { secret, role: "viewer", project: null, tokenId: null }),
    );
    return secret;
  };
  const late = await make();
  it.clock.now += 60_000;
  expect((await it.get(`/signin?link=${late}`)).status).toBe(401);
  const looked = await make();
  await it.app.handle(new Request(`http://127.0.0.1:7331/signin?link=${looked}`, { method: "HEAD" }));
  expect((await it.get(`/signin?link=${looked}`)).status).toBe(303);
});

test("a token signs in with its role; an agents' token, a wrong and a revoked one do not", async () => {
  await using it = await open();
  const make = async (scope: "viewer" | "project") => {
    const secret = newSecret("kxm");
    const row = await it.hub.engine.write("", (tx) =>
      tokens.create(
        tx,
        { actor: "admin", role: "admin" },
        { secret, name: scope, scope, project: scope === "project" ? "shop" : null, expiresAt: null },
      ),
    );
    return { secret, id: row.id };
  };
  const viewer = await make("viewer");
  const answer = await it.post("/signin", { token: viewer.secret, back: "/agents/a" });
  expect([answer.status, answer.headers.get("location")]).toEqual([303, "/agents/a"]);
  const cookie = answer.headers.get("set-cookie")!.split(";")[0]!;
  expect((await it.get("/agents/a", { cookie })).html).toContain("viewer");
  for (const token of ["", "kxm_wrong", (await make("project")).secret])
    expect(await it.post("/signin", { token })).toMatchObject({ status: 401, html: expect.stringContaining("not accepted") });
  await it.hub.engine.write("", (tx) => tokens.revoke(tx, { actor: "admin", role: "admin" }, viewer.id));
  expect((await it.get("/agents/a", { cookie })).status).toBe(303);
  expect((await it.post("/signin", { token: viewer.secret })).html).toContain("not accepted");
});

test("guessing at the sign-in is counted and told to wait, and what is right still signs in", async () => {
  await using it = await openDashboard({ settings: { commandName: "npx kxm" } });
  const counted = () => it.hub.metrics.read().get("credentials_refused");
  expect((await it.get("/signin")).html).toContain('data-copy="npx kxm open"');
  for (let n = 0; n < AUTH_FAILURES_PER_MINUTE_MAX; n++)
    expect((n % 2 === 0 ? await it.post("/signin", { token: `kxm_${n}` }) : await it.get(`/signin?link=kxl_${n}`)).status).toBe(401);
  expect(counted()).toBe(AUTH_FAILURES_PER_MINUTE_MAX);
  const held = await it.post("/signin", { token: "kxm_more" });
  expect([held.status, held.html.includes("Too many attempts"), held.html.includes("kxm_more")]).toEqual([429, true, false]);
  expect((await it.get("/signin?link=kxl_more")).status).toBe(429);
  expect(counted()).toBe(AUTH_FAILURES_PER_MINUTE_MAX + 2);
  const secret = newSecret("kxm");
  const viewer = { secret, name: "v", scope: "viewer" as const, project: null, expiresAt: null };
  await it.hub.engine.write("", (tx) => tokens.create(tx, { actor: "admin", role: "admin" }, viewer));
  expect((await it.post("/signin", { token: secret })).status).toBe(303);
  it.clock.now += 60_000;
  expect((await it.post("/signin", { token: "kxm_again" })).status).toBe(401);
});

test("an address that leads nowhere is a page with a way back for people, and JSON for programs", async () => {
  await using it = await openDashboard();
  const accept = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
  const { cookie } = await it.signIn();
  for (const path of ["/run", "/run/", "/no/such/%3Cscript%3Ealert(1)%3C%2Fscript%3E"]) {
    const page = await it.get(path, { cookie, headers: accept });
    expect([page.status, page.headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
    expect(page.html).toContain('href="/"');
    expect(page.html).not.toContain("<script>alert");
    expect(page.html.includes('Did you mean <a class="link" href="/runs">')).toBe(path.startsWith("/run"));
  }
  for (const [path, headers] of [
    ["/nowhere", {}],
    ["/nowhere", { accept: "application/json" }],
    ["/v1/nowhere", accept],
    ["/v1/leases/x/acquire", accept],
    ["/mcp/nowhere", accept],
  ] as const) {
    const answer = await it.get(path, { cookie, headers });
    expect([path, answer.status, JSON.parse(answer.html).code]).toEqual([path, 404, "route_not_found"]);
  }
});

test("every page carries the strict headers and nothing inline", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  for (const path of ["/agents/a", "/signin", "/broken", "/agents/%3Cscript%3Ealert(1)%3C%2Fscript%3E"]) {
    const { headers, html } = await it.get(path, { cookie });
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(headers.get("content-security-policy")).not.toContain("unsafe");
    for (const [name, value] of [
      ["x-content-type-options", "nosniff"],
      ["referrer-policy", "no-referrer"],
      ["cross-origin-opener-policy", "same-origin"],
      ["cross-origin-resource-policy", "same-origin"],
      ["cache-control", "no-store"],
    ])
      expect(headers.get(name!)).toBe(value!);
    expect(html).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=|javascript:/i);
  }
});

test("a form needs its session's secret, the right origin and the right role", async () => {
  await using it = await open();
  const [operator, other, viewer] = [await it.signIn(), await it.signIn(), await it.signIn("viewer")];
  const post = async (form: Record<string, string>, session: { cookie: string }, headers = {}) =>
    (await it.post("/agents/a/retire", form, { cookie: session.cookie, headers })).status;
  expect(await post({}, operator)).toBe(403);
  expect(await post({ csrf: other.csrf }, operator)).toBe(403);
  expect(await post({ csrf: viewer.csrf }, viewer)).toBe(403);
  expect(await post({ csrf: operator.csrf }, operator, { origin: "http://evil.example" })).toBe(403);
  expect(await post({ csrf: operator.csrf }, operator, { origin: "null" })).toBe(403);
  expect(await post({ csrf: operator.csrf }, operator, { "content-type": "text/plain" })).toBe(415);
  expect(await post({ csrf: operator.csrf }, operator, { origin: "http://127.0.0.1:7331" })).toBe(303);
});

test("the result of an act is shown once, on the next page of that session", async () => {
  await using it = await open();
  const [mine, other] = [await it.signIn(), await it.signIn()];
  await it.post("/agents/<b>/retire", { csrf: mine.csrf }, { cookie: mine.cookie });
  expect((await it.get("/agents/x", { cookie: other.cookie })).html).not.toContain("retired");
  expect((await it.get("/agents/x", { cookie: mine.cookie })).html).toContain("retired &lt;b&gt;");
  expect((await it.get("/agents/x", { cookie: mine.cookie })).html).not.toContain("retired");
});

test("an unknown error shows a request id and none of its text", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  const { status, html, headers } = await it.get("/broken", { cookie });
  expect(status).toBe(500);
  expect(html).not.toContain("secret of the house");
  expect(html).toContain(headers.get("x-request-id")!);
});

test("a page carries its form secret under a mask of its own each time; a mask with a changed byte opens nothing", async () => {
  await using it = await openDashboard();
  const { cookie, csrf } = await it.signIn();
  const carried = async () => attributesOf((await it.get("/start", { cookie })).html, "form[action='/signout'] input[name=csrf]", "value")[0]!;
  const [one, other] = [await carried(), await carried()];
  expect([one === other, one.includes(csrf), one.length]).toEqual([false, false, 86]);
  const post = async (sent: string) => (await it.post("/views", { csrf: sent, name: "n", place: "runs", query: "view=failed" }, { cookie })).status;
  expect([await post(one), await post(other), await post(csrf)]).toEqual([303, 303, 303]);
  const changed = Buffer.from(one, "base64url");
  changed[40]! ^= 1;
  for (const wrong of [changed.toString("base64url"), one.slice(0, 43), one.slice(43), "", "x".repeat(86)])
    expect([wrong, await post(wrong)]).toEqual([wrong, 403]);
});

test("whole pages are compressed for who reads that; fragments, forms' answers and streams are not", async () => {
  await using it = await openDashboard();
  const { cookie, csrf } = await it.signIn();
  const encoding = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await it.app.handle(
      new Request(`http://127.0.0.1:7331${path}`, { headers: { cookie, "accept-encoding": "gzip, br", ...headers } }),
    );
    const bytes = await answer.bytes();
    const isZipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
    return [answer.headers.get("content-encoding"), isZipped, answer.headers.get("vary"), answer.headers.get("content-security-policy")?.length];
  };
  const policy = CONTENT_SECURITY_POLICY.length;
  expect(await encoding("/start")).toEqual(["gzip", true, "accept-encoding", policy]);
  expect(await encoding("/start", { "accept-encoding": "br" })).toEqual([null, false, null, policy]);
  expect(await encoding("/ui/runs", { "hx-request": "true" })).toEqual([null, false, null, policy]);
  expect((await it.get("/start", { cookie })).html).toContain("</html>");
  const shown = await it.post("/views", { csrf, name: "", place: "runs", query: "view=failed" }, { cookie, headers: { "accept-encoding": "gzip" } });
  expect(shown.headers.get("content-encoding")).toBeNull();
});

test("a refusal answers htmx with a result for the region of results", async () => {
  await using it = await open();
  const { cookie, csrf } = await it.signIn("viewer");
  const { status, html, headers } = await it.post("/agents/a/retire", { csrf }, { cookie, headers: { "hx-request": "true" } });
  expect([status, headers.get("hx-retarget"), headers.get("hx-reswap")]).toEqual([
    403,
    "dialog:modal .told, body:not(:has(dialog:modal .told)) #flash",
    "beforeend",
  ]);
  expect(html).toContain("flash--bad");
});

test("somebody else's cookie of the same name neither signs in nor locks out", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  expect((await it.get("/agents/a", { cookie: "kxm_session_7331=attacker" })).status).toBe(303);
  expect((await it.get("/agents/a", { cookie: `kxm_session_7331=attacker; ${cookie}` })).status).toBe(200);
});

test("a session ends after 12 hours without use and after 7 days in all", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  const status = async () => (await it.get("/agents/a", { cookie })).status;
  it.clock.now += 12 * 3_600_000 - 1;
  expect(await status()).toBe(200);
  it.clock.now += 12 * 3_600_000;
  expect(await status()).toBe(303);
  const second = await it.signIn();
  for (let hours = 0; hours < 7 * 24; hours += 11) {
    it.clock.now += 11 * 3_600_000;
    const expected = hours + 11 < 7 * 24 ? 200 : 303;
    expect((await it.get("/agents/a", { cookie: second.cookie })).status).toBe(expected);
  }
});

test("a form with a NUL is refused before anything is done with it: not every store keeps one", async () => {
  await using it = await open();
  const { cookie, csrf } = await it.signIn();
  const sent = (reason: string) => it.post("/agents/a/retire", { csrf, reason }, { cookie });
  expect(await sent("a\0b")).toMatchObject({ status: 400, html: expect.stringContaining("NUL") });
  expect((await sent("a%00b")).status).toBe(303); // as typed
});

test("signing out ends the session and takes the cookie away", async () => {
  await using it = await open();
  const { cookie, csrf } = await it.signIn();
  expect((await it.post("/signout", {}, { cookie })).status).toBe(403);
  const answer = await it.post("/signout", { csrf }, { cookie });
  expect([answer.status, answer.headers.get("set-cookie")]).toEqual([303, "kxm_session_7331=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"]);
  expect((await it.get("/agents/a", { cookie })).status).toBe(303);
});

test("a project's session sees only that project", async () => {
  await using it = await openDashboard({
    screens: [
      screen({
        method: "GET",
        path: "/p",
        role: "viewer",
        run: (visit) => {
          visit.requireProject("other");
          return visit.page({ title: "x", children: "x" });
        },
      }),
    ],
  });
  expect((await it.get("/p?project=other", { cookie: (await it.signIn("admin", "shop")).cookie })).status).toBe(403);
  expect((await it.get("/p?project=other", { cookie: (await it.signIn("admin")).cookie })).status).toBe(200);
});

test("another host is refused on every page, file and stream", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  for (const path of ["/agents/a", "/signin", "/assets/app.css", "/ui/events"])
    expect((await it.app.handle(new Request(`http://evil.example:7331${path}`, { headers: { cookie } }))).status).toBe(403);
});

test("a stream of signals begins with the hub's time, names topics, and ends with its session", async () => {
  await using it = await open();
  const { cookie, csrf } = await it.signIn();
  await it.call("POST", "/v1/agents/register", { body: { name: "ann", project: "shop" } });
  const response = await it.app.handle(new Request("http://127.0.0.1:7331/ui/events?project=shop", { headers: { cookie } }));
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let seen = "";
  const until = async (text: string) => {
    while (!seen.includes(text)) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`the stream ended before ${text}: ${seen}`);
      seen += value;
    }
  };
  await until("event: beat");
  await it.call("POST", "/v1/agents/register", { body: { name: "bob\n\nevent: x", project: "shop" } });
  await until("event: agents");
  expect(seen).toMatch(/event: agents\nid: gen_[0-9a-f]{32}\.\d+\ndata: \{"at":\d+\}\n\n/);
  expect(seen).not.toContain("bob");
  await it.post("/signout", { csrf }, { cookie });
  for (;;) if ((await reader.read()).done) break;
});

test("a page of another origin hears no signals", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  const stream = async (headers: Record<string, string>) => {
    const response = await it.app.handle(new Request("http://127.0.0.1:7331/ui/events?project=shop", { headers: { cookie, ...headers } }));
    await response.body?.cancel();
    return response.status;
  };
  expect(await stream({ origin: "http://evil.example" })).toBe(403);
  expect(await stream({ "sec-fetch-site": "cross-site" })).toBe(403);
  expect(await stream({ origin: "http://127.0.0.1:7331" })).toBe(200);
});

test("an act leads on to a page of this hub, whatever its address is made of", async () => {
  const lead = screen({ method: "GET", path: "/lead", role: "viewer", run: (visit) => visit.redirect(visit.url.searchParams.get("to")!) });
  await using it = await openDashboard({ screens: [lead] });
  const { cookie } = await it.signIn();
  const leadsTo = async (to: string, headers = {}) => (await it.get(`/lead?to=${encodeURIComponent(to)}`, { cookie, headers })).headers;
  expect((await leadsTo("/runs/a?tab=1#end")).get("location")).toBe("/runs/a?tab=1#end");
  for (const to of ["https://evil.example/", "//evil.example", "/.//evil.example", "/\\evil.example"]) {
    expect([to, (await leadsTo(to)).get("location")]).toEqual([to, "/"]);
    expect([to, (await leadsTo(to, { "hx-request": "true" })).get("hx-redirect")]).toEqual([to, "/"]);
  }
});

test("a session holds six streams and no more", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  const stream = () => it.app.handle(new Request("http://127.0.0.1:7331/ui/events?project=shop", { headers: { cookie } }));
  const streams = await Promise.all(Array.from({ length: 6 }, stream));
  expect((await stream()).status).toBe(429);
  await Promise.all(streams.map((response) => response.body!.cancel()));
});

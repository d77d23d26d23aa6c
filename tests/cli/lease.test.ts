// Leases, tokens, sign-in links and the store from a terminal, against a hub that really listens.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openPlace } from "../support/program.ts";
import { type Served, serveHub } from "../support/served.ts";

let hub: Served;
beforeAll(async () => {
  hub = await serveHub();
});
afterAll(() => hub[Symbol.asyncDispose]());

describe("kxm lease", () => {
  const as = (name: string, ...args: string[]) => hub.kxm(["lease", "--as", name, ...args]);

  test("one holds, the other is told who and stands in line, and the token only rises", async () => {
    expect((await as("a", "acquire", "branch:main")).stdout).toMatch(/^acquired branch:main with token 1, until \d{4}-/);
    expect((await as("a", "acquire", "branch:main")).stdout).toStartWith("extended branch:main with token 1");
    const refused = await as("b", "acquire", "branch:main");
    expect([refused.code, refused.stderr.includes("held by a (lease_held)"), refused.stderr.includes("--wait")]).toEqual([1, true, true]);
    const inLine = as("b", "acquire", "branch:main", "--wait", "20s", "--json");
    for (;;) if ((await as("a", "list", "branch:main", "--json")).json.waiting.length === 1) break;
    expect((await as("a", "list", "branch:main")).stdout).toMatch(/IN LINE +SINCE\nb +\d+s\n/);
    expect((await as("a", "check", "branch:main", "--token", "1")).code).toBe(0);
    expect((await as("a", "release", "branch:main", "--token", "1")).stdout).toBe("released branch:main\n");
    expect((await inLine).json).toMatchObject({ renewed: false, lease: { holderAgentName: "b", fencingToken: 2 } });
    expect((await as("a", "check", "branch:main", "--token", "1")).stderr).toContain("lease_superseded");
    expect((await as("b", "renew", "branch:main", "--token", "2", "--ttl", "10m")).stdout).toStartWith("extended");
  });

  test("looking makes nobody an agent: without a name an operator looks, and the token may come from the environment", async () => {
    const project = ["--project", "looked-at"];
    const held = (await hub.kxm(["lease", "--as", "a", "acquire", "db", ...project, "--json"])).json.lease;
    expect((await hub.kxm(["lease", "list", ...project])).stdout).toContain("db");
    expect((await hub.kxm(["lease", "list", "db", ...project, "--json"])).json.lease.holderAgentName).toBe("a");
    const env = { KXM_FENCING_TOKEN: String(held.fencingToken) };
    expect((await hub.kxm(["lease", "check", "db", ...project], { env })).stdout).toContain(`token ${held.fencingToken} holds db`);
    expect(await hub.serving.hub.engine.read.agents.count("looked-at", 10)).toEqual(1);
    const bare = await hub.kxm(["lease", "check", "db", ...project]);
    expect([bare.code, bare.stderr.includes("kxm lease acquire NAME")]).toEqual([2, true]);
  });

  test("who stood in line in vain is told so, and not to stand in line", async () => {
    await as("a", "acquire", "busy");
    const late = await as("b", "acquire", "busy", "--wait", "50ms");
    expect([late.code, late.stderr.includes("still after 50ms"), late.stderr.includes("--wait 30s")]).toEqual([1, true, false]);
  });

  test("an operator takes one away, with a reason that is kept", async () => {
    await as("a", "acquire", "deploy");
    const taken = await hub.kxm(["lease", "force-release", "deploy", "--reason", "its machine is gone"]);
    expect(taken.stdout).toBe("took deploy away from a\n");
    expect((await hub.kxm(["lease", "force-release", "deploy", "--reason", "x"])).stderr).toContain("lease_not_found");
    const entries = await hub.serving.hub.engine.read.audit.page({}, undefined, 1);
    expect(entries[0]).toMatchObject({ actor: "admin", origin: "cli", reason: "its machine is gone" });
  });

  test("a name with a slash, a percent sign or spaces is one name", async () => {
    for (const name of ["a/b", "100%", "two words", "ünï", "...", "%2F"]) {
      expect((await as("a", "acquire", name, "--json")).json.lease.name).toBe(name);
      expect((await as("a", "list", name, "--json")).json.lease.name).toBe(name);
    }
    expect((await as("a", "acquire", "..")).code).toBe(2); // no address can hold it
  });
});

describe("kxm token and kxm open", () => {
  test("a token is printed once and alone, works, and is dead after its revocation", async () => {
    const made = await hub.kxm(["token", "create", "--scope", "operator", "--name", "laptop", "--expires", "1d"]);
    expect(made.stdout).toMatch(/^kxm_[\w-]{43}\n$/);
    expect(made.stderr).toContain("only time");
    const env = { KXM_TOKEN: made.stdout.trim() };
    expect((await hub.kxm(["open", "--print"], { env })).stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/signin\?link=kxl_[\w-]{43}\n$/);
    expect((await hub.kxm(["open", "--print", "--role", "admin"], { env })).stderr).toContain("role_forbidden");
    expect((await hub.kxm(["token", "list"], { env })).stderr).toContain("role_forbidden");
    const { tokens } = (await hub.kxm(["token", "list", "--json"])).json;
    expect((await hub.kxm(["token", "list"])).stdout).toContain("laptop");
    expect(JSON.stringify(tokens)).not.toContain(made.stdout.trim().slice(10));
    expect((await hub.kxm(["token", "revoke", tokens[0].id])).stdout).toStartWith("revoked laptop (tok_");
    expect((await hub.kxm(["open", "--print"], { env })).stderr).toContain("invalid_auth");
    expect((await hub.kxm(["token", "revoke", "tok_unknown"])).stderr).toContain("token_not_found");
  });

  test("a wrong scope or role is a mistake in the call", async () => {
    expect((await hub.kxm(["token", "create", "--scope", "root", "--name", "x"])).code).toBe(2);
    expect((await hub.kxm(["open", "--role", "root"])).code).toBe(2);
  });

  test("this machine's token is not shown to any other address", async () => {
    const seen: (string | null)[] = [];
    using other = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request) {
        seen.push(request.headers.get("authorization"));
        return Response.json({ error: "no", code: "invalid_auth", requestId: "x", hint: "y" }, { status: 401 });
      },
    });
    await hub.kxm(["open", "--print", "--hub", `http://127.0.0.1:${other.port}`]);
    await hub.kxm(["token", "list"], { env: { KXM_URL: `127.0.0.1:${other.port}` } });
    await hub.kxm(["peer", "list"], { env: { KXM_URL: `127.0.0.1:${other.port}` } });
    expect(seen).toEqual([null, null, null]);
  });

  test("something that is no hub is told apart from a refusal", async () => {
    using other = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("<h1>Welcome</h1>", { status: 200 }) });
    const ended = await hub.kxm(["token", "list", "--hub", `127.0.0.1:${other.port}`]);
    expect([ended.code, ended.stderr.includes("is not a KXM hub")]).toEqual([3, true]);
    expect((await hub.kxm(["token", "list", "--hub", "ftp://x"])).code).toBe(2);
    expect((await hub.kxm(["token", "list", "--hub", "http://user:pw@h"])).code).toBe(2);
  });
});

describe("kxm backup, verify, restore, doctor", () => {
  test("a backup of a running hub is verified, and comes back with cursors and fences renewed", async () => {
    await using place = await openPlace();
    const running = await place.startHub();
    const acquired = await place.run(["lease", "--as", "a", "acquire", "x", "--json"]);
    expect(JSON.parse(acquired.stdout).lease.fencingToken).toBe(1);
    const backup = await place.run(["backup", "--json"]);
    const { file, sha256 } = JSON.parse(backup.stdout);
    expect(sha256).toMatch(/^[0-9a-f]{64}$/);
    expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
    expect(readdirSync(join(place.folder, ".kxm/state/backups"))).toHaveLength(2);
    expect((await place.run(["verify"])).stdout).toContain("sound");
    expect((await place.run(["verify", file])).stdout).toContain("sound");
    const doctor = await place.run(["doctor"]);
    expect([doctor.code, doctor.stdout.includes(`The hub at ${running.url}`)]).toEqual([0, true]);
    const held = await place.run(["restore", file]);
    expect([held.code, held.stderr.includes(`process ${running.pid}`)]).toEqual([1, true]);
    await running.end();
    const restored = await place.run(["restore", file]);
    expect(restored.stdout).toContain("cursors begin anew");
    expect(existsSync(join(place.folder, ".kxm/state/kxm.db.before-restore"))).toBe(true);
    await place.startHub();
    const again = await place.run(["lease", "--as", "b", "acquire", "x", "--json"]);
    expect(JSON.parse(again.stdout).lease.fencingToken).toBeGreaterThan(2 ** 32);
  });

  test("rot in a stored text is found and named, and a backup of such a store says so", async () => {
    await using place = await openPlace();
    const running = await place.startHub();
    await place.run(["peer", "--as", "b", "list"]);
    await place.run(["peer", "--as", "a", "send", "b", "FINDME-in-the-file"]);
    await running.end();
    const path = join(place.folder, ".kxm/state/kxm.db");
    const bytes = readFileSync(path);
    const at = bytes.indexOf("FINDME-in-the-file");
    bytes[at] = bytes[at]! ^ 1;
    writeFileSync(path, bytes);
    const verdict = await place.run(["verify"]);
    expect([verdict.code, verdict.stdout.includes("damaged in 1 places"), verdict.stdout.includes("messages")]).toEqual([1, true, true]);
    const backup = await place.run(["backup"]);
    expect([backup.code, backup.stdout.includes("1 were damaged in the store already")]).toEqual([1, true]);
  });

  test("what cannot be done says what to do instead", async () => {
    await using place = await openPlace();
    expect((await place.run(["verify"])).stderr).toContain("there is no store at");
    expect((await place.run(["backup"])).stderr).toContain("there is no store at");
    expect((await place.run(["backup", "mine.db"])).stderr).toContain("there is no store at");
    expect((await place.run(["restore", "missing.db"])).stderr).toContain("there is no backup");
    expect(readdirSync(place.folder)).toEqual([]);
    expect((await place.run(["restore"])).code).toBe(2);
    expect((await place.run(["backup"], { env: { KXM_DATABASE_URL: "postgres://127.0.0.1:1/x" } })).stderr).toContain("pg_dump");
    const nothing = await place.run(["doctor"]);
    expect(nothing.stdout).toContain("There is no store yet");
    expect(nothing.stdout).toContain("No Runtime runs on this machine");
    const env = { KXM_URL: "http://127.0.0.1:1" };
    const doctor = await place.run(["doctor"], { env });
    expect([doctor.code, doctor.stdout.includes("The hub at http://127.0.0.1:1 (KXM_URL) does not answer")]).toEqual([1, true]);
    const status = await place.run(["hub", "status"], { env });
    expect([status.code, status.stderr.includes("http://127.0.0.1:1")]).toEqual([3, true]);
    expect((await place.run(["hub", "status"], { env: { KXM_URL: hub.url } })).stdout).toContain("writes  yes");
    expect((await place.run(["doctor"], { env: { KXM_URL: hub.url } })).stdout).toContain(`The hub at ${hub.url} (KXM_URL) writes.`);
  });
});

// Starting, finding and stopping a hub: real processes, real ports, real signals.
import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ask } from "../../src/client/http.ts";
import { contentsOf } from "../support/folders.ts";
import { openPlace, type Place } from "../support/program.ts";

const stateOf = ({ folder }: Place) => join(folder, ".kxm", "state");
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
const healthy = (url: string) =>
  ask(url.startsWith("http") ? { url } : { url: `http://${url}` }, "GET", "/health", { timeoutMs: 2_000 }).then(({ body }) => body);

/** Addresses that a process listens on, from the system's own table. */
function listenersOf(port: number): string[] {
  const wanted = port.toString(16).toUpperCase().padStart(4, "0");
  return ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((table) =>
    readFileSync(table, "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local, , state]) => state === "0A" && local?.endsWith(`:${wanted}`))
      .map(([, local]) => local!.split(":")[0]!),
  );
}

describe("the first start", () => {
  test("prints the address, a sign-in link and what to type, and leaves private files under any umask", async () => {
    await using place = await openPlace();
    const hub = await place.startHub({ prefix: ["sh", "-c", 'umask 000; exec "$@"', "sh"] });
    const link = await until(() => /dashboard +(\S+)/.exec(hub.stdout())?.[1]);
    expect(hub.stdout().split("\n")[0]).toBe(`KXM hub ${hub.url}`);
    expect(link).toStartWith(`${hub.url}/signin?link=kxl_`);
    expect(hub.stdout()).toContain("kxm peer --as alice inbox --follow");
    const state = stateOf(place);
    expect(readFileSync(join(state, "admin.token"), "utf8")).toMatch(/^kxm_[\w-]{43}\n$/);
    expect(modeOf(state)).toBe("700");
    expect(modeOf(join(place.folder, ".kxm", "logs"))).toBe("700");
    for (const name of readdirSync(state)) expect([name, modeOf(join(state, name))]).toEqual([name, "600"]);
    expect(modeOf(join(place.folder, ".kxm", "logs", "kxm-hub.jsonl"))).toBe("600");
    expect((await hub.end()).code).toBe(0);
    expect(hub.stdout()).not.toContain(readFileSync(join(state, "admin.token"), "utf8").trim());
    expect(readFileSync(join(place.folder, ".kxm", "logs", "kxm-hub.jsonl"), "utf8")).not.toMatch(/kx[aplms]_[\w-]{43}/);
  });

  test("keeps its state and its logs out of the repository around it", async () => {
    await using place = await openPlace();
    const git = (...args: string[]) => Bun.spawnSync(["git", ...args], { cwd: place.folder }).stdout.toString();
    git("init", "-q");
    const hub = await place.startHub();
    expect((await hub.end()).code).toBe(0);
    writeFileSync(join(place.folder, ".kxm", "project.yaml"), "schema: kxm.project.v1\n");
    git("add", "-A");
    expect(
      git("diff", "--cached", "--name-only")
        .split("\n")
        .filter((name) => name.startsWith(".kxm/")),
    ).toEqual([".kxm/project.yaml"]);
  });

  test("listens on the two loopback addresses and on nothing else", async () => {
    await using place = await openPlace();
    const hub = await place.startHub();
    const addresses = listenersOf(hub.port);
    expect(addresses).toContain("0100007F");
    for (const address of addresses) expect(["0100007F", "00000000000000000000000001000000"]).toContain(address);
    for (const host of ["127.0.0.1", "localhost", ...(addresses.length > 1 ? ["[::1]"] : [])])
      expect(await healthy(`${host}:${hub.port}`)).toEqual({ ok: true, agents: 0 });
  });

  test("keeps the operator's token over restarts, and the link of a used minute is dead", async () => {
    await using place = await openPlace();
    const first = await place.startHub();
    const token = readFileSync(join(stateOf(place), "admin.token"), "utf8");
    const link = (await until(() => /dashboard +(\S+)/.exec(first.stdout())?.[1])) as string;
    expect((await fetch(link, { redirect: "manual" })).status).toBe(303);
    expect((await fetch(link, { redirect: "manual" })).headers.has("set-cookie")).toBe(false);
    await first.end();
    await place.startHub();
    expect(readFileSync(join(stateOf(place), "admin.token"), "utf8")).toBe(token);
  });
});

describe("a hub that must not start says why, in one sentence, and leaves everything as it was", () => {
  const refused = async (place: Place, env: Record<string, string>, args: string[] = []) => {
    const before = contentsOf(place.folder);
    const ended = await place.run(["hub", ...args], { env });
    expect(contentsOf(place.folder)).toEqual(before);
    expect(ended.ms).toBeLessThan(5_000);
    expect(ended.stderr).not.toMatch(/\n\s+at /);
    return ended;
  };

  test("a port in use: by which hub of which folder", async () => {
    await using place = await openPlace();
    const hub = await place.startHub();
    await using other = await openPlace();
    mkdirSync(join(other.folder, ".kxm", "state"), { recursive: true });
    const ended = await other.run(["hub"], { env: { KXM_PORT: String(hub.port) } });
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain(`another KXM hub listens on port ${hub.port}: ${hub.url}, started in ${place.folder}, pid ${hub.pid}`);
    expect(ended.stderr).toContain(`--hub ${hub.url}`);
    expect(await healthy(hub.url)).toEqual({ ok: true, agents: 0 });
  });

  test("a port in use: by which other program", async () => {
    await using other = await openPlace();
    mkdirSync(join(other.folder, ".kxm", "state"), { recursive: true });
    const program = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("not a hub") });
    const { port } = program;
    const ended = await other.run(["hub"], { env: { KXM_PORT: String(port) } });
    await program.stop(true);
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(new RegExp(`port ${port} of 127\\.0\\.0\\.1 is in use by .*\\(pid ${process.pid}\\)`));
  });

  test("a data file in use: by which hub", async () => {
    await using place = await openPlace();
    const hub = await place.startHub();
    const ended = await place.run(["hub"]);
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain(`process ${hub.pid}`);
    expect(ended.stderr).toContain(hub.url);
    expect(ended.ms).toBeLessThan(4_000);
    expect(JSON.parse(readFileSync(join(stateOf(place), "hub.json"), "utf8")).pid).toBe(hub.pid);
  });

  test("a host beyond this machine without an admin token, and wrong settings all at once", async () => {
    await using place = await openPlace();
    const open = await refused(place, { KXM_HOST: "0.0.0.0" });
    expect([open.code, open.stderr.includes("KXM_AUTH_TOKEN is required")]).toEqual([1, true]);
    const wrong = await refused(place, { KXM_PORT: "99999", KXM_RATE_LIMIT_MAX: "many" });
    expect(wrong.stderr).toContain("KXM_PORT");
    expect(wrong.stderr).toContain("KXM_RATE_LIMIT_MAX");
  });

  test("a state folder that is a link, or a file", async () => {
    await using place = await openPlace();
    mkdirSync(join(place.folder, ".kxm"));
    mkdirSync(join(place.folder, "elsewhere"));
    symlinkSync(join(place.folder, "elsewhere"), stateOf(place));
    expect((await refused(place, {})).stderr).toContain("is a symbolic link");
    writeFileSync(join(place.folder, "file"), "");
    expect((await refused(place, { KXM_STATE_DIR: join(place.folder, "file") })).stderr).toContain("is not a folder");
  });

  test("a state folder that is open to others and holds what is not KXM's", async () => {
    await using place = await openPlace();
    const shared = join(place.folder, "shared");
    for (const folder of [shared, join(place.folder, ".kxm")]) mkdirSync(folder);
    writeFileSync(join(shared, "thesis.txt"), "");
    chmodSync(shared, 0o755);
    const ended = await refused(place, { KXM_STATE_DIR: shared });
    expect([ended.code, ended.stderr.includes("holds files that are not KXM's"), modeOf(shared)]).toEqual([1, true, "755"]);
  });

  test("a workspace that cannot be made", async () => {
    await using place = await openPlace();
    writeFileSync(join(place.folder, "file"), "");
    const ended = await refused(place, { KXM_WORKSPACE_DIR: join(place.folder, "file", "inside") });
    expect([ended.code, ended.stderr.includes("cannot be made")]).toEqual([1, true]);
  });

  test("a store that is not one", async () => {
    await using place = await openPlace();
    mkdirSync(stateOf(place), { recursive: true, mode: 0o700 });
    chmodSync(stateOf(place), 0o700);
    writeFileSync(join(stateOf(place), "kxm.db"), "this is a text file, not a database\n".repeat(50), { mode: 0o600 });
    const ended = await refused(place, {});
    expect([ended.code, ended.stderr.includes("kxm.db is not a SQLite database")]).toEqual([1, true]);
  });
});

describe("stopping", () => {
  test.each(["SIGTERM", "SIGINT"] as const)("%s ends streams with a retry, answers what runs, and leaves a clean store", async (signal) => {
    await using place = await openPlace();
    const hub = await place.startHub();
    const { agent, agentKey } = (await ask({ url: hub.url }, "POST", "/v1/agents/register", { body: { name: "a", project: "p" } })).body;
    const headers = { "x-kxm-agent-id": agent.id, "x-kxm-agent-key": agentKey };
    const stream = await fetch(`${hub.url}/v1/events?agentId=${agent.id}`, { headers });
    const raw = stream.body!.getReader();
    let text = new TextDecoder().decode((await raw.read()).value);
    const waiting = ask({ url: hub.url }, "POST", "/v1/leases/x/acquire", { body: {}, headers })
      .then(() => ask({ url: hub.url }, "POST", "/v1/agents/register", { body: { name: "b", project: "p" } }))
      .then(({ body }) =>
        ask({ url: hub.url }, "POST", "/v1/leases/x/acquire", {
          body: { waitMs: 30_000 },
          headers: { "x-kxm-agent-id": body.agent.id, "x-kxm-agent-key": body.agentKey },
        }),
      )
      .then(
        () => "granted",
        (error) => error.code as string,
      );
    await until(() =>
      ask({ url: hub.url }, "GET", "/v1/leases/x", { headers }).then(
        ({ body }) => body.waiting.length === 1,
        () => false,
      ),
    );
    const { code, ms } = await hub.end(signal);
    for (;;) {
      const { done, value } = await raw.read().catch(() => ({ done: true, value: undefined }));
      if (done) break;
      text += new TextDecoder().decode(value);
    }
    expect(code).toBe(0);
    expect(ms).toBeLessThan(5_000);
    expect(text).toContain("retry: ");
    expect(["lease_held", "shutting_down"]).toContain(await waiting);
    expect(existsSync(join(stateOf(place), "hub.json"))).toBe(false);
    expect(existsSync(join(stateOf(place), "kxm.db-wal"))).toBe(false); // brought into the data file
    expect((await place.run(["verify"])).code).toBe(0);
  });

  test("a second signal ends it at once", async () => {
    await using place = await openPlace();
    const hub = await place.startHub();
    // A request whose body never comes keeps the hub waiting for it.
    const socket = await Bun.connect({ hostname: "127.0.0.1", port: hub.port, socket: { data: () => {} } });
    socket.write(
      `POST /v1/agents/register HTTP/1.1\r\nHost: 127.0.0.1:${hub.port}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
    );
    await healthy(hub.url);
    process.kill(hub.pid, "SIGTERM");
    await until(() =>
      healthy(hub.url).then(
        () => false,
        () => true,
      ),
    ); // it has stopped accepting
    const { code, ms } = await hub.end("SIGTERM");
    expect(code).toBe(143);
    expect(ms).toBeLessThan(1_000);
    socket.end();
  });

  test("what was acknowledged before kill -9 is there when it comes back, and presence starts over", async () => {
    await using place = await openPlace();
    const hub = await place.startHub();
    const { agent, agentKey } = (await ask({ url: hub.url }, "POST", "/v1/agents/register", { body: { name: "a", project: "p" } })).body;
    const headers = { "x-kxm-agent-id": agent.id, "x-kxm-agent-key": agentKey };
    expect(await healthy(hub.url)).toEqual({ ok: true, agents: 1 });
    await hub.end("SIGKILL");
    const started = performance.now();
    const again = await place.startHub();
    expect(performance.now() - started).toBeLessThan(4_000);
    expect(await healthy(again.url)).toEqual({ ok: true, agents: 0 });
    expect((await ask({ url: again.url }, "GET", "/v1/agents", { headers })).body.agents).toMatchObject([{ name: "a", online: true }]);
  });
});

describe("in the background", () => {
  test("start returns once it answers; status and stop find it; a second start names it", async () => {
    await using place = await openPlace();
    const started = await place.run(["hub", "start", "--detach", "--json"]);
    const { url, pid, signIn } = JSON.parse(started.stdout);
    try {
      expect(await healthy(url)).toEqual({ ok: true, agents: 0 });
      expect(signIn).toStartWith(`${url}/signin?link=`);
      const status = await place.run(["hub", "status", "--json"]);
      expect(JSON.parse(status.stdout)).toMatchObject({ running: true, url, pid });
      const second = await place.run(["hub", "start", "--detach"]);
      expect([second.code, second.stderr.includes(`already at ${url} (pid ${pid})`)]).toEqual([1, true]);
      const stopped = await place.run(["hub", "stop"]);
      expect([stopped.code, stopped.stdout]).toEqual([0, `stopped the hub (pid ${pid})\n`]);
      expect((await place.run(["hub", "status"])).code).toBe(3);
      expect((await place.run(["hub", "stop"])).code).toBe(3);
    } finally {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // it has ended, as it should
      }
    }
  });

  test("a start that fails tells why", async () => {
    await using place = await openPlace();
    const ended = await place.run(["hub", "start", "--detach", "--host", "203.0.113.1"], { env: { KXM_AUTH_TOKEN: "secret-of-this-test" } });
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain("the hub cannot listen on 203.0.113.1");
  });

  test("a note of a hub that was killed does not count", async () => {
    await using place = await openPlace();
    const hub = await place.startHub();
    await hub.end("SIGKILL");
    expect(existsSync(join(stateOf(place), "hub.json"))).toBe(true);
    expect((await place.run(["hub", "status"])).code).toBe(3);
    await place.startHub();
  });
});

test("with an admin token of its own a hub asks agents for it and makes no other", async () => {
  await using place = await openPlace();
  const hub = await place.startHub({ env: { KXM_AUTH_TOKEN: "secret-of-this-test" } });
  expect(existsSync(join(stateOf(place), "admin.token"))).toBe(false);
  const register = (token?: string) =>
    ask({ url: hub.url, token }, "POST", "/v1/agents/register", { body: { name: "a", project: "p" } }).then(
      ({ status }) => status,
      (error) => error.status,
    );
  expect([await register(), await register("wrong"), await register("secret-of-this-test")]).toEqual([401, 401, 201]);
  expect((await place.run(["peer", "list"], { env: { KXM_AUTH_TOKEN: "secret-of-this-test" } })).code).toBe(0);
  expect((await place.run(["peer", "list"])).stderr).toContain("invalid_auth");
  expect((await place.run(["open", "--print"], { env: { KXM_TOKEN: "secret-of-this-test" } })).stdout).toStartWith(`${hub.url}/signin?link=`);
});

/** Asks again until something is there. @throws after ten seconds */
async function until<T>(look: () => T | Promise<T>): Promise<NonNullable<T>> {
  const deadline = performance.now() + 10_000;
  for (;;) {
    const found = await look();
    if (found) return found as NonNullable<T>;
    if (performance.now() > deadline) throw new Error("it did not happen within ten seconds");
    await new Promise((resolve) => setImmediate(resolve));
  }
}

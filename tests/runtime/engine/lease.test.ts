// Gates under a lease, against a real hub: no start without it, a token in the environment, renewal while it runs, uncertainty when it is lost.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ask } from "../../../src/client/http.ts";
import { markedProcesses, waitFor } from "../../../src/runtime/harness/process.ts";
import { serveHub } from "../../support/served.ts";
import { gates, openWorld, workflow } from "./world.ts";

const step = { id: "deliver", kind: "gate", gate: "deliver", on: { passed: "$terminal", "implementation-failure": "$terminal" }, maxAttempts: 1 };
const files = (script: string, more: object = {}) => ({
  ".kxm/gates.yaml": gates({
    deliver: { argv: ["/bin/sh", "-c", script], env: ["OUT"], lease: "branch:{{branch}}", effect: "external-non-idempotent", ...more },
  }),
  ".kxm/workflows/main.yaml": workflow([step]),
});
const TOKEN = "operator-token-0123456789";
const leasesOf = async (url: string) =>
  (await ask({ url, token: TOKEN }, "GET", "/v1/leases", { query: { project: "demo", state: "held" } })).body.leases as {
    name: string;
    fencingToken: number;
    holderAgentName: string;
  }[];

test("the command runs under the lease, knows its fence, and gives it back", async () => {
  await using hub = await serveHub({ KXM_AUTH_TOKEN: TOKEN });
  await using world = await openWorld(
    files('printf "%s %s" "$KXM_LEASE_RESOURCE" "$KXM_FENCING_TOKEN" >"$OUT"; while [ ! -f "$OUT.go" ]; do sleep 0.02; done'),
    { hub: () => ({ url: hub.url, project: "demo", token: TOKEN }) },
  );
  process.env["OUT"] = join(world.base, "out");
  for (const fence of [1, 2]) {
    const runId = await world.start();
    await waitFor(() => Bun.file(process.env["OUT"]!).size > 0, 10_000);
    const held = await leasesOf(hub.url);
    expect(readFileSync(process.env["OUT"], "utf8")).toBe(`${held[0]!.name} ${fence}`);
    expect(held).toMatchObject([
      { name: expect.stringMatching(/^branch:[0-9a-f]{40}$/), fencingToken: fence, holderAgentName: expect.stringMatching(/^runtime-/) },
    ]);
    world.put("../out.go", "");
    expect((await world.finished(runId)).status).toBe("completed");
    const types = world.events(runId).map(({ eventType }) => eventType);
    const at = (type: string) => types.indexOf(type as never);
    expect(at("lease.acquired")).toBeLessThan(at("effect.intent_recorded"));
    expect(at("effect.intent_recorded")).toBeLessThan(at("effect.dispatched"));
    expect(at("lease.released")).toBeGreaterThan(at("effect.settled"));
    expect(await leasesOf(hub.url)).toEqual([]);
    Bun.spawnSync(["rm", process.env["OUT"], `${process.env["OUT"]}.go`]);
  }
  expect(world.outbox().filter(({ problem }) => problem)).toEqual([]);
});

test("without a hub, and while somebody else holds it, the command does not start", async () => {
  const script = 'echo ran >"$OUT"';
  {
    await using world = await openWorld(files(script));
    process.env["OUT"] = join(world.base, "out");
    expect(await world.finished(await world.start())).toMatchObject({
      status: "failed",
      reason: "lease_unavailable: this machine is bound to no hub (step deliver)",
    });
    expect(Bun.file(process.env["OUT"]).size).toBe(0);
  }
  await using hub = await serveHub();
  const other = (await ask({ url: hub.url }, "POST", "/v1/agents/register", { body: { name: "other", project: "demo" } })).body;
  const as = { "x-kxm-agent-id": other.agent.id, "x-kxm-agent-key": other.agentKey };
  await using world = await openWorld(files(script, { lease: "the-server" }), { hub: () => ({ url: hub.url, project: "demo" }) });
  process.env["OUT"] = join(world.base, "out");
  const held = (await ask({ url: hub.url }, "POST", "/v1/leases/the-server/acquire", { body: {}, headers: as })).body.lease;
  const runId = await world.start();
  await waitFor(() => world.events(runId).some(({ eventType }) => eventType === "attempt.created"), 5000);
  expect(Bun.file(process.env["OUT"]).size).toBe(0);
  await ask({ url: hub.url }, "POST", "/v1/leases/the-server/release", { body: { fencingToken: held.fencingToken }, headers: as });
  expect((await world.finished(runId)).status).toBe("completed");
  expect(readFileSync(process.env["OUT"], "utf8")).toBe("ran\n");
});

test("two runs of one machine hold the same lease one after the other", async () => {
  await using hub = await serveHub();
  const script = 'echo in >>"$OUT"; sleep 0.2; echo out >>"$OUT"';
  await using world = await openWorld(files(script, { lease: "the-server" }), { hub: () => ({ url: hub.url, project: "demo" }) });
  process.env["OUT"] = join(world.base, "out");
  const runs = [await world.start(), await world.start(), await world.start()];
  for (const runId of runs) expect((await world.finished(runId)).status).toBe("completed");
  expect(readFileSync(process.env["OUT"], "utf8").trim().split("\n")).toEqual(["in", "out", "in", "out", "in", "out"]);
});

test("a lease that is taken away ends the command, and what it did is uncertain", async () => {
  await using hub = await serveHub({ KXM_AUTH_TOKEN: TOKEN });
  const token = TOKEN;
  await using world = await openWorld(files("sleep 60", { lease: "the-server" }), {
    hub: () => ({ url: hub.url, project: "demo", token }),
    leaseRenewMs: 50,
  });
  const runId = await world.start();
  const { current } = await world.until(runId, (run) => run.current?.attempts[0]?.status === "executing");
  await ask({ url: hub.url, token }, "POST", "/v1/leases/the-server/force-release", { body: { project: "demo", reason: "maintenance" } });
  const run = await world.until(runId, ({ status }) => status === "blocked_uncertain");
  expect(run.uncertain[0]!.reason).toStartWith("the lease the-server was lost while the command ran: ");
  expect(markedProcesses(current!.attempts[0]!.attemptId)).toEqual([]);
  expect(world.events(runId).map(({ eventType }) => eventType)).toContain("lease.lost");
  expect(world.outbox().filter(({ problem }) => problem)).toEqual([]);
});

test("a hub that goes away while the command runs: the lease is lost when its time is over, not before", async () => {
  const hub = await serveHub();
  await using world = await openWorld(files("sleep 60", { lease: "the-server" }), {
    hub: () => ({ url: hub.url, project: "demo" }),
    leaseRenewMs: 100,
    leaseTtlMs: 5000,
  });
  const runId = await world.start();
  await world.until(runId, (run) => run.current?.attempts[0]?.status === "executing");
  const gone = performance.now();
  await hub[Symbol.asyncDispose]();
  const run = await world.until(runId, ({ status }) => status === "blocked_uncertain", 20_000);
  expect(performance.now() - gone).toBeGreaterThan(2000);
  expect(performance.now() - gone).toBeLessThan(6000);
  expect(run.uncertain[0]!.reason).toContain("lost while the command ran");
});

test("after a restart a lease that never ran out is kept; one that did makes the outcome uncertain", async () => {
  await using hub = await serveHub();
  const script = 'while [ ! -f "$OUT.go" ]; do sleep 0.02; done';
  for (const lapse of [false, true]) {
    await using world = await openWorld(files(script, { lease: "the-server" }), {
      hub: () => ({ url: hub.url, project: `p${lapse}` }),
      leaseTtlMs: lapse ? 5000 : 60_000,
      leaseRenewMs: 60_000,
    });
    process.env["OUT"] = join(world.base, "out");
    const runId = await world.start();
    await world.until(runId, (run) => run.current?.attempts[0]?.status === "executing");
    world.vanish();
    if (lapse) await waitFor(() => false, 5200);
    world.reopen();
    world.put("../out.go", "");
    const run = await world.until(runId, ({ status }) => status === "completed" || status === "blocked_uncertain", 20_000);
    expect(run.status).toBe(lapse ? "blocked_uncertain" : "completed");
  }
}, 60_000);

test("a run that is cancelled while it waits for a lease ends at once, and its command never starts", async () => {
  await using hub = await serveHub();
  const other = (await ask({ url: hub.url }, "POST", "/v1/agents/register", { body: { name: "other", project: "demo" } })).body;
  const as = { "x-kxm-agent-id": other.agent.id, "x-kxm-agent-key": other.agentKey };
  await using world = await openWorld(files('echo ran >"$OUT"', { lease: "the-server" }), { hub: () => ({ url: hub.url, project: "demo" }) });
  process.env["OUT"] = join(world.base, "out");
  const held = (await ask({ url: hub.url }, "POST", "/v1/leases/the-server/acquire", { body: {}, headers: as })).body.lease;
  const waits = async () =>
    (await ask({ url: hub.url }, "GET", "/v1/leases", { query: { project: "demo" }, headers: as })).body.leases[0]?.waiters > 0;
  const runId = await world.start();
  while (!(await waits()));
  world.apply("cancel", { reason: "not now" }, runId);
  expect(await world.finished(runId, 5000)).toMatchObject({ status: "cancelled", reason: "not now" });
  // Whoever stood in the line gives the place on once it comes.
  await ask({ url: hub.url }, "POST", "/v1/leases/the-server/release", { body: { fencingToken: held.fencingToken }, headers: as });
  const next = await ask({ url: hub.url }, "POST", "/v1/leases/the-server/acquire", { body: { waitMs: 10_000 }, headers: as, timeoutMs: 15_000 });
  expect(next.body.lease.holderAgentId).toBe(other.agent.id);
  expect(Bun.file(process.env["OUT"]).size).toBe(0);
  expect(world.events(runId).map(({ eventType }) => eventType)).not.toContain("effect.dispatched");
});

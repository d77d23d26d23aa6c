// Hub workflows, context, journal, search, webhooks and the checks' watcher from a terminal, against a hub that really listens.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readMemory } from "../../src/runtime/project/memory.ts";
import type { Problem } from "../../src/runtime/project/problems.ts";
import { type Served, serveHub } from "../support/served.ts";
import { DEFINITION, SECRET, SIGNAL_SECRET } from "../support/workflows.ts";

let hub: Served;
let file: string;
const PROJECT = { KXM_PROJECT: "shop" };
const START = { ...PROJECT, KXM_WEBHOOK_SECRET: SECRET };
const SIGNAL = { ...PROJECT, KXM_WEBHOOK_SECRET: SIGNAL_SECRET };
const kxm = (args: string[], env: Record<string, string> = PROJECT, stdin?: string) => hub.kxm(args, { env, ...(stdin !== undefined && { stdin }) });
const as = (name: string, ...args: string[]) => kxm(["workflow", "--as", name, ...args]);

beforeAll(async () => {
  file = join(mkdtempSync(join(tmpdir(), "kxm-definitions-")), "workflows.json");
  writeFileSync(file, "[]");
  hub = await serveHub({ KXM_WEBHOOK_WORKFLOWS_FILE: file, KXM_RATE_LIMIT_MAX: "100000" });
}, 20_000);
afterAll(async () => {
  await hub[Symbol.asyncDispose]();
  rmSync(dirname(file), { recursive: true });
});

/** Each step stands on those before it, in whatever order tests run. */
const steps: { name: string; run: () => Promise<void> }[] = [];
const step = (name: string, run: () => Promise<void>) => steps.push({ name, run });

describe("kxm workflow", () => {
  let runId: string;

  step("definitions are checked without a hub, then read by a running one", async () => {
    writeFileSync(file, JSON.stringify([{ ...DEFINITION, stages: [] }]));
    const bad = await kxm(["workflow", "validate", file]);
    expect([bad.code, bad.stdout]).toEqual([1, "line 1: $[0].stages must be a list of 1 to 32 stages\n"]);
    const refused = await kxm(["workflow", "reload"]);
    expect([refused.code, refused.stderr.includes("invalid_definitions")]).toEqual([1, true]);
    writeFileSync(file, JSON.stringify([DEFINITION]));
    expect((await kxm(["workflow", "validate", file, "--json"])).json).toEqual({
      ok: true,
      definitions: ["release"],
      problems: [],
      remarks: [],
    });
    writeFileSync(file, JSON.stringify([{ ...DEFINITION, projct: "shop" }]));
    const remarked = await kxm(["workflow", "validate", file]);
    expect([remarked.code, remarked.stderr]).toEqual([
      0,
      expect.stringContaining("line 1: $[0].projct is not read by anything: did you mean project?"),
    ]);
    writeFileSync(file, JSON.stringify([DEFINITION]));
    expect((await kxm(["workflow", "reload"])).stdout).toBe("1 definitions in force\n");
    const listed = await kxm(["workflow", "definitions"]);
    expect(listed.stdout).toContain("release");
    expect(JSON.stringify((await kxm(["workflow", "definitions", "--json"])).json)).not.toContain(SECRET);
  });

  step("a delivery signed from the environment starts a run, once, whatever is typed twice", async () => {
    for (const name of ["lead", "ann", "bob", "cid"]) await kxm(["peer", "--as", name, "list"]);
    expect((await kxm(["workflow", "start", "release", "--payload", "{}"])).stderr).toContain("KXM_WEBHOOK_SECRET");
    const payload = JSON.stringify({ issue: { key: "SHOP-1" } });
    const started = await kxm(["workflow", "start", "release"], START, payload);
    expect(started.stdout).toMatch(/^started run_[0-9a-f]{32}\n$/);
    runId = started.stdout.trim().split(" ")[1]!;
    expect((await kxm(["workflow", "start", "release", "--payload", payload], START)).stdout).toBe(`already started ${runId}\n`);
    expect((await kxm(["workflow", "start", "release", "--payload", payload], SIGNAL)).stderr).toContain("webhook_signature_invalid");
  });

  step("its coordinator sees what is missing, records, waits, and goes on after a signal", async () => {
    expect((await as("lead", "list")).stdout).toContain(runId);
    const shown = await as("lead", "show", runId);
    expect(shown.stdout).toContain("missing: test log");
    expect((await as("ann", "show", runId)).stderr).toContain("workflow_forbidden");
    const entry = await as(
      "lead",
      "record",
      runId,
      "--category",
      "lesson",
      "--summary",
      "Pin the zebra clock",
      "--evidence",
      "class:flaky_clock",
      "--stage",
      "build",
    );
    expect(entry.stdout).toMatch(/^journal_/);
    expect((await as("lead", "wait", runId, "--stage", "build", "--signal", "ci", "--summary", "CI runs")).stdout).toContain(
      "waits for the signal ci",
    );
    const signalled = await kxm(
      ["workflow", "signal", "release", runId, "ci", "--status", "passed", "--summary", "All green", "--evidence", "test log=https://ci/42"],
      SIGNAL,
    );
    expect(signalled.stdout).toBe("stage build passed; the coordinator goes on\n");
    expect((await as("lead", "show", runId, "--json")).json.run.currentStage).toBe("review");
    const incomplete = await as(
      "lead",
      "checkpoint",
      runId,
      "--stage",
      "review",
      "--status",
      "passed",
      "--summary",
      "ok",
      "--evidence",
      "review=trust me",
    );
    expect([incomplete.code, incomplete.stderr.includes("workflow_evidence_incomplete")]).toEqual([1, true]);
    expect((await as("lead", "checkpoint", runId, "--stage", "review", "--status", "passed", "--summary", "ok", "--evidence", "nonsense")).code).toBe(
      2,
    );
  });

  step("the admin degrades with a reason, and the story can be exported", async () => {
    expect((await kxm(["workflow", "degrade", runId, "--stage", "review", "--key", "review", "--reason", "bob is away"])).stdout).toContain(
      "now needs 1 instead of 2",
    );
    const markdown = await kxm(["workflow", "export", runId]);
    expect(markdown.stdout).toContain("# release: running");
    expect(markdown.stdout).toContain("- Pin the zebra clock");
    expect((await kxm(["workflow", "export", runId, "--format", "Markdown"])).stdout).toBe(markdown.stdout);
    const refused = await kxm(["workflow", "export", runId, "--format", "toString"]);
    expect([refused.code, refused.stderr.includes("--format is md, markdown, json")]).toEqual([2, true]);
    expect((await kxm(["workflow", "export", runId, "--format", "json"])).json.schema).toBe("kxm.retrospective.v1");
  });

  step("a peer is asked for what the current stage needs, and its answer passes it", async () => {
    const asked = await kxm(["peer", "--as", "lead", "send", "ann", "is it safe?", "--for", runId, "--offline", "--json"]);
    const { id, workflowContext } = asked.json.message;
    expect(workflowContext).toMatchObject({ runId, stageId: "review", requirementKey: "review", attempt: 1 });
    await kxm(["peer", "--as", "ann", "reply", id, "yes"]);
    const passed = await as("lead", "checkpoint", runId, "--stage", "review", "--status", "passed", "--summary", "ok", "--ref", `review=${id}`);
    expect(passed.code).toBe(0);
    const again = await kxm(["peer", "--as", "lead", "send", "ann", "and now?", "--for", runId, "--offline"]);
    expect([again.code, again.stderr.includes("needs nothing from peers")]).toEqual([2, true]);
  });
});

describe("kxm watch github", () => {
  type Check = { name: string; status: string; conclusion: string | null };
  /** A stand-in of the checks' server; each look gets the next list. */
  function checksServer(looks: (Check[] | number)[]) {
    const asked: string[] = [];
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch(request) {
        const url = new URL(request.url);
        asked.push(`${url.pathname} ${url.searchParams.get("page")} ${request.headers.get("authorization")}`);
        const page = Number(url.searchParams.get("page"));
        const look = looks.length > 1 && page === 1 ? looks.shift()! : looks[0]!;
        if (typeof look === "number") return new Response("no", { status: look });
        return Response.json({ total_count: look.length, check_runs: look.slice((page - 1) * 100, page * 100) });
      },
    });
    return { api: `http://127.0.0.1:${server.port}`, asked, [Symbol.dispose]: () => void server.stop(true) };
  }
  const check = (name: string, conclusion: string | null): Check => ({ name, status: conclusion === null ? "in_progress" : "completed", conclusion });

  async function waitingRun(key: string) {
    const { json } = await kxm(["workflow", "start", "release", "--payload", JSON.stringify({ issue: { key } }), "--json"], START);
    await as("lead", "wait", json.runId, "--stage", "build", "--signal", "ci", "--summary", "CI runs");
    return json.runId as string;
  }
  const watch = (api: string, runId: string, ...more: string[]) =>
    kxm(
      [
        "watch",
        "github",
        "acme/shop",
        "4f2c1e",
        "--definition",
        "release",
        "--run",
        runId,
        "--signal",
        "ci",
        "--api",
        api,
        "--every",
        "10ms",
        "--evidence-key",
        "test log",
        ...more,
      ],
      { ...SIGNAL, GITHUB_TOKEN: "gh-token" },
    );

  step("every page of checks is read until all have ended, and the run is told that they passed", async () => {
    const many = Array.from({ length: 150 }, (_, n) => check(`check ${n}`, n % 3 === 0 ? "success" : n % 3 === 1 ? "skipped" : "neutral"));
    using server = checksServer([[], [check("build", null)], 503, many]);
    const runId = await waitingRun("W-1");
    const watched = await watch(server.api, runId);
    expect([watched.code, watched.stdout]).toEqual([0, "passed: All 150 checks of 4f2c1e passed\n"]);
    expect(server.asked.at(-1)).toBe("/repos/acme/shop/commits/4f2c1e/check-runs 2 Bearer gh-token");
    expect((await as("lead", "show", runId, "--json")).json.run).toMatchObject({
      currentStage: "review",
      stages: [{ evidence: { "test log": ["All 150 checks of 4f2c1e passed"] } }, {}],
    });
  });

  step("a failed check fails the stage by name", async () => {
    using server = checksServer([[check("build", "success"), check("lint <b>", "failure"), check("old", "cancelled")]]);
    const runId = await waitingRun("W-2");
    const watched = await watch(server.api, runId);
    expect([watched.code, watched.stdout]).toEqual([1, "failed: 2 of 3 checks of 4f2c1e failed: lint <b>, old\n"]);
    expect((await as("lead", "show", runId, "--json")).json.run.stages[0]).toMatchObject({ attempts: 1, status: "in_progress" });
  });

  step("checks that do not end in time fail with what still runs", async () => {
    using server = checksServer([[check("slow", null)]]);
    const runId = await waitingRun("W-3");
    const watched = await watch(server.api, runId, "--timeout", "100ms");
    expect([watched.code, watched.stdout]).toEqual([1, "failed: 1 of 1 checks of 4f2c1e had not ended in time: slow\n"]);
  });
});

describe("what was learned and said", () => {
  step("the journal is listed and improvements are ranked", async () => {
    expect((await kxm(["journal", "list", "--category", "lesson"])).stdout).toContain("Pin the zebra clock");
    expect((await kxm(["improvements", "--json"])).json.signals.length).toBeGreaterThan(0);
    const { json } = await kxm(["journal", "list", "--category", "lesson", "--json"]);
    expect((await kxm(["journal", "promote", json.entries[0].id, "--to", "approved", "--evidence", "x", "--reason", "y"])).stderr).toContain(
      "journal_promotion_invalid",
    );
  });

  step("search finds soon after, and says so with its exit code", async () => {
    for (;;) if ((await kxm(["search", "zebra"])).code === 0) break;
    const found = await kxm(["search", "zebra kind:journal", "--json"]);
    expect(found.json.hits[0]).toMatchObject({ kind: "journal", title: "lesson" });
    expect((await kxm(["search", "nobody-ever-wrote-this"])).code).toBe(1);
    expect((await kxm(["search", "kind:dream"])).stderr).toContain("invalid_search_query");
  });

  step("state is proposed, promoted by another, and its history is kept", async () => {
    const proposed = await kxm(["context", "propose", "db.engine", "SQLite", "--evidence", "commit 1"]);
    const id = proposed.stdout.trim();
    expect((await kxm(["context", "state", "db.engine"])).code).toBe(1);
    expect((await kxm(["context", "promote", id, "--evidence", "PR 7"])).stderr).toContain("state_promotion_invalid");
    expect((await kxm(["context", "promote", id, "--evidence", "PR 7", "--by", "reviewer"])).stdout).toContain("SQLite");
    expect((await kxm(["context", "state", "db.engine"])).stdout).toContain("SQLite");
    expect((await kxm(["context", "state", "db.engine", "--history", "--json"])).json.history).toHaveLength(2);
    const second = (await kxm(["context", "propose", "db.engine", "Files", "--evidence", "a thought"])).stdout.trim();
    expect((await kxm(["context", "reject", second, "--reason", "no"])).stdout).toBe(`rejected ${second}\n`);
    expect((await kxm(["context", "get", "--role", "planner", "which", "engine"])).stdout).toContain("SQLite");
    expect((await kxm(["context", "recall", "SQLite"])).stdout).toContain("promoted-by:reviewer");
    expect((await kxm(["context", "explain", id])).code).toBe(0);
    expect((await kxm(["context", "episode"])).stdout).toContain("Pin the zebra clock");
  });

  step("memory is a file of the repository that the hub serves, and the wiki is written beside it", async () => {
    const noted = await kxm(["memory", "note", "--title", "Clock Rules!", "Only the hub's", "clock counts."]);
    expect(noted.stdout).toBe(".kxm/memory/clock-rules.md\n");
    const problems: Problem[] = []; // a run starts only when the project's files are fine, this one among them
    const bytes = readFileSync(join(hub.folder, ".kxm/memory/clock-rules.md"));
    expect(readMemory("clock-rules", "clock-rules.md", bytes, problems)).toMatchObject({ title: "Clock Rules!", confidence: "probable" });
    expect(problems).toEqual([]);
    expect((await kxm(["memory", "note", "--title", "Clock rules", "again"])).stderr).toContain("is there already");
    expect((await kxm(["memory", "brief"])).stdout).toContain("Only the hub's clock counts.");
    for (;;)
      if ((await kxm(["context", "recall", "hub", "clock", "--json"])).json.items.some(({ id }: { id: string }) => id === "memory_clock_rules"))
        break;
    expect((await kxm(["memory", "sync"])).stdout).toMatch(/^1 fact, 4 pages written\n$/);
    expect(readFileSync(join(hub.folder, ".kxm/knowledge/wiki/knowledge/shop.md"), "utf8")).toContain("clock counts");
    writeFileSync(join(hub.folder, ".kxm/memory/proud.md"), "---\nauthority: policy\n---\nObey.");
    const broken = await kxm(["memory", "sync"]);
    expect([broken.code, broken.stdout.includes("proud.md: a file in Git may not claim")]).toEqual([1, true]);
    expect(existsSync(join(hub.folder, ".kxm/knowledge/wiki/index.md"))).toBe(true);
    expect(readdirSync(join(hub.folder, ".kxm/memory")).sort()).toEqual(["clock-rules.md", "proud.md"]);
  });
});

test("kxm webhook: a receiver on this machine gets a signed delivery, and the log tells", async () => {
  const seen: { id: string; body: string; signature: string; seconds: string }[] = [];
  using receiver = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const header = (name: string) => request.headers.get(name)!;
      seen.push({
        id: header("webhook-id"),
        signature: header("webhook-signature"),
        seconds: header("webhook-timestamp"),
        body: await request.text(),
      });
      return new Response("ok");
    },
  });
  const url = `http://127.0.0.1:${receiver.port}/hook`;
  expect((await kxm(["webhook", "add", url])).stderr).toContain("invalid_webhook_url");
  const added = await kxm(["webhook", "add", url, "--allow-private", "--event", "leases.*", "--json"]);
  const { endpoint, secret } = added.json;
  await kxm(["lease", "--as", "ann", "acquire", "deploy"]);
  while (seen.length === 0) await new Promise((resolve) => setImmediate(resolve));
  const [{ id, body, signature, seconds }] = seen as [(typeof seen)[0]];
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  expect(signature).toBe(`v1,${new Bun.CryptoHasher("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64")}`);
  expect(JSON.parse(body)).toMatchObject({ type: "leases.acquired", data: { project: "shop" } });
  for (;;) if ((await kxm(["webhook", "log", endpoint.id, "--json"])).json.deliveries[0]?.state === "delivered") break;
  await kxm(["webhook", "replay", id]);
  while (seen.length < 2) await new Promise((resolve) => setImmediate(resolve));
  expect(seen[1]!.id).toBe(id);
  expect((await kxm(["webhook", "rotate", endpoint.id])).stdout).toStartWith("whsec_");
  expect((await kxm(["webhook", "list"])).stdout).toContain("active");
  expect((await kxm(["webhook", "remove", endpoint.id])).code).toBe(0);
  expect((await kxm(["webhook", "list"])).stdout).toContain("Nobody is told");
}, 20_000);

test("a run, its journal, context and webhooks, all from a terminal", async () => {
  for (const { name, run } of steps)
    await run().catch((error: Error) => {
      throw new Error(`${name}: ${error.message}`, { cause: error });
    });
}, 120_000);

// R20: the Runtime's own store, killed at every write to disk and between the hub's answer and the mark: each event reaches the hub once, and no
// planted secret is in any file.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hubStandIn, type StandIn } from "../runtime/hub-stand-in.ts";
import { corpus, seeded } from "../runtime/redact/corpus.ts";
import { temporaryFolder } from "../runtime/support.ts";
import type { CrashSetup } from "./runtime-crash-process.ts";

const STRACE = Bun.which("strace");
const FULL = process.env["KXM_FAULTS"] === "full";
const PROCESS = join(import.meta.dir, "runtime-crash-process.ts");
const EVENTS = 12;
const CALLS = ["pwrite64", "fsync", "ftruncate"] as const;
const SECRET = `Planted-${"v4lue"}-${seeded(99)().toString(36).slice(2)}`;
const TOKEN = corpus(seeded(98)).find(({ shape }) => shape === "github-ghp")!.text;

type Ended = { killed: boolean; runId?: string };
async function runOnce(setup: CrashSetup, strace: string[] = []): Promise<Ended> {
  const command = strace.length > 0 ? [STRACE!, "-f", "-qq", ...strace] : [];
  const child = Bun.spawn([...command, process.execPath, PROCESS, JSON.stringify(setup)], { stdout: "pipe", stderr: "pipe" });
  const [said, wrong, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  if (said === "" && strace.length === 0) throw new Error(`the process ended with ${code}: ${wrong}`);
  return said ? { killed: false, ...(JSON.parse(said) as { runId: string }) } : { killed: true };
}

const setupIn = (folder: string, hub: StandIn, mutant?: CrashSetup["mutant"]): CrashSetup => ({
  folder,
  hub: hub.url,
  events: EVENTS,
  secret: SECRET,
  token: TOKEN,
  ...(mutant && { mutant }),
});

/** How often each call is made in a run that nothing disturbs. */
async function countCalls(): Promise<Record<string, number>> {
  using folder = temporaryFolder();
  using hub = hubStandIn();
  const trace = folder.file("trace");
  await runOnce(setupIn(folder.path, hub), ["-o", trace, "-e", `trace=${CALLS.join(",")}`]);
  const text = readFileSync(trace, "utf8");
  return Object.fromEntries(CALLS.map((call) => [call, text.split(`${call}(`).length - 1]));
}

/** What is wrong after the process was started again and ended well. */
function wrongs(folder: string, hub: StandIn, runId: string): string[] {
  const wrong: string[] = [];
  const db = new Database(join(folder, "run-events.db"), { readonly: true });
  const sequences = (db.query("select sequence from events where run_id = ? order by sequence").all(runId) as any[]).map(({ sequence }) => sequence);
  const expected = Array.from({ length: EVENTS }, (_, index) => index + 1);
  if (JSON.stringify(sequences) !== JSON.stringify(expected)) wrong.push(`events ${sequences}`);
  const outbox = db.query("select count(*) as n, count(acked_at) as acked from outbox").get() as any;
  if (outbox.n !== EVENTS || outbox.acked !== EVENTS) wrong.push(`outbox ${outbox.n}, acked ${outbox.acked}`);
  const state = db.query("select last_sequence as last from run_state where run_id = ?").get(runId) as any;
  if (state?.last !== EVENTS) wrong.push(`projection at ${state?.last}`);
  if ((db.query("select count(*) as n from runs").get() as any).n !== 1) wrong.push("more than one run");
  if ((db.query("pragma integrity_check").get() as any).integrity_check !== "ok") wrong.push("integrity");
  db.close();
  if (JSON.stringify(hub.sequences(runId)) !== JSON.stringify(expected)) wrong.push(`the hub has ${hub.sequences(runId)}`);
  if (hub.events.size !== EVENTS) wrong.push(`the hub has ${hub.events.size} events in all`);
  return [
    ...wrong,
    ...planted(folder),
    ...[...hub.events.values()].filter(({ text }) => text.includes(SECRET) || text.includes(TOKEN)).map(() => "a secret at the hub"),
  ];
}

/** Planted secrets in any file, in any form that is not encryption. */
function planted(folder: string): string[] {
  const forms = [SECRET, TOKEN].flatMap((value) => [value, Buffer.from(value).toString("hex"), Buffer.from(value).toString("base64").slice(0, 20)]);
  return readdirSync(folder).flatMap((name) => {
    const bytes = readFileSync(join(folder, name), "latin1");
    return forms.filter((form) => bytes.includes(form)).map(() => `a secret in ${name}`);
  });
}

describe.skipIf(!STRACE)("R20: the Runtime dies at a write", () => {
  test("each event is at the hub once and no secret is in any file", async () => {
    const counts = await countCalls();
    const all = CALLS.flatMap((call) => Array.from({ length: counts[call]! }, (_, index) => ({ call, when: index + 1 })));
    expect(all.length).toBeGreaterThan(60);
    const points = FULL ? all : all.filter((_, index) => index % Math.ceil(all.length / 24) === 0);
    let kills = 0;
    for (const { call, when } of points) {
      using folder = temporaryFolder();
      using hub = hubStandIn();
      const setup = setupIn(folder.path, hub);
      const first = await runOnce(setup, ["-o", "/dev/null", "-e", `trace=${call}`, "-e", `inject=${call}:signal=KILL:when=${when}`]);
      if (first.killed) kills++;
      expect([call, when, planted(folder.path)]).toEqual([call, when, []]);
      const second = await runOnce(setup);
      expect([call, when, wrongs(folder.path, hub, second.runId!)]).toEqual([call, when, []]);
    }
    expect(kills).toBeGreaterThan(points.length / 2);
  }, 1_800_000);
});

describe("R20: the Runtime dies between the hub's answer and its own mark", () => {
  test("what was sent is sent again and is still there once", async () => {
    for (let at = 1; at <= 4; at++) {
      using folder = temporaryFolder();
      using hub = hubStandIn();
      let pushes = 0;
      let victim: Bun.Subprocess | undefined;
      hub.failWith(async ({ path, body }) => {
        if (path !== "/v1/sync/events" || ++pushes !== at || !victim) return undefined;
        hub.ingest(body); // stored, and the answer never arrives
        victim.kill("SIGKILL");
        await victim.exited;
        return new Response(null, { status: 500 });
      });
      const setup = setupIn(folder.path, hub);
      victim = Bun.spawn([process.execPath, PROCESS, JSON.stringify(setup)], { stdout: "ignore", stderr: "ignore" });
      await victim.exited;
      victim = undefined;
      hub.failWith(undefined);
      const { runId } = await runOnce(setup);
      expect([at, wrongs(folder.path, hub, runId!)]).toEqual([at, []]);
    }
  }, 60_000);

  test("the check sees a Runtime that writes its secrets down", async () => {
    using folder = temporaryFolder();
    using hub = hubStandIn();
    const { runId } = await runOnce(setupIn(folder.path, hub, "raw"));
    expect(wrongs(folder.path, hub, runId!)).toContain("a secret in run-events.db");
  }, 30_000);
});

if (!STRACE) test.skip("R20: install strace (apt-get install strace) to run the sweep", () => {});

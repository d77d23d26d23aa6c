// The supervisor vanishes at every commit of a run, before it and after it; another one takes over. Programs go on meanwhile, as they do after kill -9.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { markedProcesses, waitFor } from "../../../src/runtime/harness/process.ts";
import { fold } from "../../../src/runtime/store/projection.ts";
import { gates, describe as inShort, openWorld, script, type World, workflow } from "./world.ts";

const END = ["completed", "failed", "cancelled", "blocked_uncertain"];
/** Says that it ran, works a moment, declares. */
const noisy = (name: string, more: object = {}) =>
  script(`cat >/dev/null; echo ${name} >>"$LEDGER"; sleep 0.05; echo '{"outcome":"passed","summary":"${name}"}'`, { env: ["LEDGER"], ...more });
const effect = (effectClass: string) => ({ argv: ["/bin/sh", "-c", 'echo effect >>"$LEDGER"; sleep 0.05'], env: ["LEDGER"], effect: effectClass });
const toEnd = { passed: "$terminal", "implementation-failure": "$terminal" };

const KINDS: Record<string, { files: Record<string, object>; steps: object[] }> = {
  "an agent that reads": { files: { ".kxm/agents/a.yaml": noisy("a") }, steps: [{ id: "work", kind: "agent", agent: "a", maxAttempts: 5 }] },
  "an agent that writes": {
    files: {
      ".kxm/agents/a.yaml": script(`cat >/dev/null; echo a >>"$LEDGER"; echo line >>made.txt; sleep 0.05; echo '{"outcome":"passed"}'`, {
        env: ["LEDGER"],
        tools: "workspace-writer",
      }),
    },
    steps: [{ id: "work", kind: "agent", agent: "a", maxAttempts: 5 }],
  },
  "a panel": {
    files: { ".kxm/agents/a.yaml": noisy("a"), ".kxm/agents/b.yaml": noisy("b") },
    steps: [{ id: "work", kind: "moa", assignments: { allowedAgents: ["a", "b"], maxAttemptsPerAssignment: 5 }, join: { strategy: "all" } }],
  },
  "a gate that may be repeated": {
    files: { ".kxm/gates.yaml": gates({ g: effect("workspace-mutation") }) },
    steps: [{ id: "work", kind: "gate", gate: "g", on: toEnd, maxAttempts: 5 }],
  },
  "a gate with an effect outside": {
    files: { ".kxm/gates.yaml": gates({ g: effect("external-non-idempotent") }) },
    steps: [{ id: "work", kind: "gate", gate: "g", on: toEnd, maxAttempts: 5 }],
  },
  "an approval": { files: {}, steps: [{ id: "work", kind: "approval" }] },
  "a wait": { files: {}, steps: [{ id: "work", kind: "wait", signal: "go" }] },
};

/** Answers what a run asks for, as an operator would, until it ends. */
async function attend(world: World, runId: string): Promise<void> {
  for (;;) {
    const run = await world.until(runId, ({ asked, waitsFor, status }) => asked !== undefined || waitsFor !== undefined || END.includes(status));
    if (END.includes(run.status)) return;
    try {
      if (run.asked) world.apply("approve", { approvalId: run.asked.approvalId, contentHash: run.asked.contentHash }, runId);
      else world.apply("signal", { signal: run.waitsFor! }, runId);
    } catch (error) {
      if (world.gone) throw error;
      // Decided a moment ago; the run has not gone on yet.
    }
    await world.until(runId, (now) => now.asked?.approvalId !== run.asked?.approvalId || now.waitsFor !== run.waitsFor || END.includes(now.status));
  }
}

async function crashOnce(kind: (typeof KINDS)[string], at: number, phase: "before" | "after") {
  await using world = await openWorld({ ...kind.files, ".kxm/workflows/main.yaml": workflow(kind.steps) });
  process.env["LEDGER"] = join(world.base, "ledger");
  const gone = world.crashAt(at, phase).then(() => "gone" as const);
  let runId: string | undefined;
  const life = (async () => {
    runId = await world.start({ intakeKey: "the-work" });
    await attend(world, runId);
    return "ended" as const;
  })().catch((error) => (world.gone ? gone : Promise.reject(error)));
  const how = await Promise.race([gone, life]);
  const commits = world.noCrash();
  if (how === "gone") {
    world.project.store.close();
    world.reopen();
    runId = await world.start({ intakeKey: "the-work" });
    await attend(world, runId);
  }
  const run = await world.view(runId!);
  const events = world.events(runId!);
  const attempts = events.flatMap(({ eventType, payload }) => (eventType === "attempt.created" ? [payload.attemptId!] : []));
  await waitFor(() => attempts.flatMap(markedProcesses).length === 0, 3000);
  const ledger = existsSync(process.env["LEDGER"]) ? readFileSync(process.env["LEDGER"], "utf8").trim().split("\n") : [];
  return {
    how,
    commits,
    run,
    events,
    orphans: attempts.flatMap(markedProcesses),
    ledger,
    outbox: world.outbox(),
    rebuilt: rebuilt(world, runId!),
    runs: world.project.store.read.runs.list().length,
  };
}

/** The stored projection, and the same folded again from the events. */
function rebuilt(world: World, runId: string) {
  const stored = world.project.store.read.runs.state(runId);
  let state: ReturnType<typeof fold> | undefined;
  for (const event of world.events(runId)) state = fold(state, event);
  return [stored, state];
}

for (const [name, kind] of Object.entries(KINDS))
  test(`${name}: a supervisor that vanishes at any commit loses nothing and repeats no effect`, async () => {
    const seen: string[] = [];
    for (const phase of name.startsWith("an agent that reads") || name.startsWith("a gate with")
      ? (["after", "before"] as const)
      : (["after"] as const)) {
      for (let at = 1; ; at++) {
        const {
          how,
          run,
          events,
          orphans,
          ledger,
          outbox,
          rebuilt: [stored, folded],
          runs,
        } = await crashOnce(kind, at, phase);
        const where = `${phase} commit ${at}: ${run.status} ${run.reason ?? ""}\n${inShort(events)}`;
        expect(["completed", "blocked_uncertain"], where).toContain(run.status);
        if (name !== "a gate with an effect outside") expect(run.status, where).toBe("completed");
        else expect(ledger.length, where).toBeLessThanOrEqual(1);
        if (run.status === "completed" && kind.files[".kxm/gates.yaml"]) expect(ledger.length, where).toBeGreaterThanOrEqual(1);
        expect(orphans, where).toEqual([]);
        expect(
          events.map(({ sequence }) => sequence),
          where,
        ).toEqual(events.map((_, i) => i + 1));
        expect(
          outbox.map(({ sequence, problem }) => `${sequence} ${problem ?? "ok"}`),
          where,
        ).toEqual(events.map(({ sequence }) => `${sequence} ok`));
        expect(stored, where).toEqual(folded);
        expect(runs, where).toBe(1);
        seen.push(run.status);
        if (how === "ended") break;
      }
    }
    // The sweep really crashed at several points.
    expect(seen.length).toBeGreaterThan(3);
  }, 120_000);

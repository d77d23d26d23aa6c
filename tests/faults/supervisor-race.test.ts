// R12: several supervisors on one machine, started at once, stopped and continued in the middle: one owner, one agent process, no write of a loser
// behind a winner's, no orphan.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/runtime/clock.ts";
import { newId } from "../../src/runtime/ids.ts";
import { canonicalRoot, prepareStateRoot, privateFolder, projectKey } from "../../src/runtime/paths.ts";
import { isSameProcess, startOf } from "../../src/runtime/process-identity.ts";
import { knownSecrets } from "../../src/runtime/redact/known-secrets.ts";
import { createRedactor } from "../../src/runtime/redact/redactor.ts";
import { openRegistry } from "../../src/runtime/registry.ts";
import { openEventStore } from "../../src/runtime/store/event-store.ts";
import { until } from "../runtime/runtime-process.ts";
import { aRun, PROJECT_ID, temporaryFolder } from "../runtime/support.ts";
import type { RaceSetup } from "./racing-runtime.ts";

const ROUNDS = process.env["KXM_FAULTS"] === "full" ? 500 : 8;
const FIXTURE = join(import.meta.dir, "racing-runtime.ts");
const TIMING = { staleMs: 250, heartbeatMs: 40 };

type Said = { serving?: number; pid?: number; lost?: string; refused?: string; ended?: string };

/** A supervisor of the race, and everything it said. */
function racer(setup: RaceSetup) {
  const child = Bun.spawn([process.execPath, FIXTURE, JSON.stringify(setup)], { stdout: "pipe", stderr: "pipe" });
  const said: Said[] = [];
  const reading = (async () => {
    let held = "";
    const decoder = new TextDecoder();
    for await (const piece of child.stdout as unknown as AsyncIterable<Uint8Array>) {
      held += decoder.decode(piece, { stream: true });
      const lines = held.split("\n");
      held = lines.pop()!;
      said.push(...lines.map((line) => JSON.parse(line)));
    }
  })();
  return { child, said, ended: () => Promise.all([child.exited, reading]), serving: () => said.some(({ serving }) => serving !== undefined) };
}

/** A state root with one registered checkout that has one run. */
function prepare(folder: string): { root: string; events: string; runId: string } {
  const [root, checkout] = [join(folder, "state"), join(folder, "checkout")];
  mkdirSync(checkout);
  const paths = prepareStateRoot(root);
  const registry = openRegistry(paths.registry, { clock: systemClock });
  const projectRoot = canonicalRoot(checkout);
  const key = projectKey(projectRoot);
  registry.register({
    projectKey: key,
    projectId: PROJECT_ID,
    name: "Demo",
    projectRoot,
    homeRuntimeId: registry.runtimeId,
    configRevision: null,
    hubProject: null,
  });
  const { folder: stores, events } = paths.project(key);
  privateFolder(stores);
  const store = openEventStore({
    path: events,
    projectId: PROJECT_ID,
    runtimeId: registry.runtimeId,
    generation: 0,
    redactor: createRedactor(knownSecrets()),
    clock: systemClock,
    newId,
  });
  const { runId } = store.commit((tx) => tx.createRun(aRun()));
  store.close();
  registry.close();
  return { root, events, runId };
}

/** Who wrote each event, in order, and the process of the agent. Reads beside the owner, without a lock. */
function read(events: string, runId: string) {
  const db = new Database(events, { readonly: true });
  const rows = db.query("select sequence, payload from events where run_id = ? and sequence > 1 order by sequence").all(runId) as {
    sequence: number;
    payload: string;
  }[];
  const attempt = db.query("select pid, pid_started as pidStarted from attempt_capabilities where run_id = ?").get(runId) as {
    pid: number | null;
    pidStarted: string | null;
  } | null;
  db.close();
  return { sequences: rows.map(({ sequence }) => sequence), writers: rows.map(({ payload }) => JSON.parse(payload).local.writer as number), attempt };
}

/** Times a writer came back after another one had written. */
function comebacks(writers: number[]): number {
  const turns = writers.filter((writer, index) => writer !== writers[index - 1]);
  return turns.length - new Set(turns).size;
}

async function round(stopFirst: boolean) {
  using folder = temporaryFolder();
  const { root, events, runId } = prepare(folder.path);
  const setup = { root, agentLog: folder.file("agents"), ...TIMING };
  const racers = stopFirst ? [racer(setup)] : [racer(setup), racer(setup), racer(setup)];
  if (stopFirst) {
    await until(racers[0]!.serving, "the first to serve");
    await until(() => existsSync(setup.agentLog), "its agent to start");
    racers[0]!.child.kill("SIGSTOP");
    await until(() => {
      racers.filter(({ child }) => child.exitCode === 3).forEach((lost) => racers.splice(racers.indexOf(lost), 1));
      if (racers.length === 1) racers.push(racer(setup)); // refused while the first is not silent yet: somebody tries again
      return racers[1]!.serving();
    }, "the second to serve");
    racers[0]!.child.kill("SIGCONT");
    await racers[0]!.ended();
  } else {
    await until(() => racers.filter(({ child }) => child.exitCode !== null).length === 2 && racers.some((one) => one.serving()), "one to win");
    await until(() => existsSync(setup.agentLog), "its agent to start");
  }
  const alive = racers.filter(({ child }) => child.exitCode === null);
  const owner = alive[0]!;
  const before = read(events, runId).writers.length;
  await until(() => read(events, runId).writers.length > before, "the owner to write");
  owner.child.kill("SIGTERM");
  await owner.ended();
  const { sequences, writers, attempt } = read(events, runId);
  await until(() => attempt!.pid === null || !isSameProcess(attempt!.pid, attempt!.pidStarted), "the agent to be gone");
  return {
    owners: alive.length,
    agents: readFileSync(setup.agentLog, "utf8").trim().split("\n").length,
    gaps: sequences.filter((sequence, index) => sequence !== index + 2).length,
    comebacks: comebacks(writers),
    lastWriter: writers.at(-1) === owner.child.pid,
    superseded: stopFirst ? racers[0]!.said.some(({ ended }) => ended === "superseded") : true,
    wrongRefusals: racers.flatMap(({ said }) =>
      said.filter(({ refused }) => refused !== undefined && !["store_fenced", "store_unavailable"].includes(refused)),
    ),
  };
}

const RIGHT = { owners: 1, agents: 1, gaps: 0, comebacks: 0, lastWriter: true, superseded: true, wrongRefusals: [] };

describe("R12: supervisors race", () => {
  test(`${ROUNDS} rounds, half of them with the first one stopped and continued`, async () => {
    for (let index = 0; index < ROUNDS; index++) expect([index, await round(index % 2 === 1)]).toEqual([index, RIGHT]);
  }, 1_800_000);

  test("the check sees a loser that writes behind the winner", () => {
    expect(comebacks([1, 1, 2, 2])).toBe(0);
    expect(comebacks([1, 2, 1])).toBe(1);
    expect(startOf(process.pid)).toBeString();
    expect(isSameProcess(process.pid, "another start")).toBeFalse();
  });
});

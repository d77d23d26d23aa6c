// `kxm doctor`: looks at the hub, its store, its disk and this machine's sync, and says what needs attention.
import { existsSync } from "node:fs";
import type { Command } from "commander";
import { askReady } from "../client/http.ts";
import type { Figures } from "../db/figures.ts";
import { RuntimeRefusal } from "../protocol/runtime-errors.ts";
import { DAY_MS } from "../protocol/time.ts";
import { ago } from "./ago.ts";
import { hubInstead, knownHub } from "./binding.ts";
import { define } from "./command.ts";
import { connect } from "./local.ts";
import { EXIT, type Output, type World } from "./output.ts";
import type { RuntimeStatus } from "./runtime.ts";
import { readSettings, type ServeSettings } from "./settings.ts";
import { isAlive, readNote } from "./state-dir.ts";
import { size } from "./store.ts";
import { namedHub } from "./target.ts";

/** Adds `kxm doctor`. */
export function addDoctor(program: Command): void {
  define(program, {
    usage: "doctor",
    summary: "look at the hub, its store, its disk and this machine's sync, and say what needs attention",
    details:
      "Ends with 1 when something does. With KXM_URL the hub at that address is looked at, too; the store is always that of this workspace. A Runtime is asked only when it runs.",
    examples: ["kxm doctor", "kxm doctor --json"],
    run: async ({ out, world }) => examine(world, out),
  });
}

type Finding = { good: boolean; what: string };

async function examine(world: World, out: Output): Promise<number> {
  const [settings, named] = [readSettings(world.env, world.cwd), namedHub(world)];
  const findings: Finding[] = [await examineHub(settings)];
  const note = readNote(settings.stateDir);
  if (named !== undefined && named !== note?.url) findings.push(await examineNamed(named));
  let figures: Figures | undefined;
  if (settings.databaseUrl !== undefined || existsSync(settings.dataPath)) {
    const { figuresOfDatabase, figuresOfFile } = await import("../db/figures.ts");
    const kept = { messagesMs: settings.hub.messageRetentionMs };
    figures =
      settings.databaseUrl === undefined
        ? await figuresOfFile(settings.dataPath, Date.now(), kept)
        : await figuresOfDatabase(settings.databaseUrl, Date.now(), kept);
    findings.push(...figures.warnings.map((what) => ({ good: false, what })));
    if (figures.warnings.length === 0) findings.push({ good: true, what: "The store has room, and its schema fits this kxm." });
  } else findings.push({ good: true, what: `There is no store yet at ${settings.dataPath}; the first start of a hub makes one.` });
  findings.push(...(await examineSync(world)));
  const good = findings.every((finding) => finding.good);
  out.result({ good, findings, ...(figures && { store: figures }) }, () => showExamination(out, findings, figures));
  return good ? EXIT.ok : EXIT.failed;
}

/** Whether the hub of this workspace runs and can write. A hub that is not running is no finding against it. */
async function examineHub({ stateDir }: ServeSettings): Promise<Finding> {
  const note = readNote(stateDir);
  if (!note || !isAlive(note.pid)) return { good: true, what: "No hub of this workspace runs; `kxm hub` starts one." };
  return examineAt(note.url, `The hub at ${note.url} (pid ${note.pid}, ${note.version})`);
}

const examineNamed = (url: string): Promise<Finding> => examineAt(url, `The hub at ${url} (KXM_URL)`);

async function examineAt(url: string, name: string): Promise<Finding> {
  try {
    const { ok, message } = await askReady(url);
    return ok ? { good: true, what: `${name} writes.` } : { good: false, what: `${name} does not write: ${message}` };
  } catch (error) {
    return { good: false, what: `${name} does not answer: ${(error as Error).message}` };
  }
}

/** Where this machine's Runtime reports to, and what did not get there. */
async function examineSync(world: World): Promise<Finding[]> {
  let sync: RuntimeStatus["sync"];
  try {
    ({ sync } = (await (await connect(world)).status()) as RuntimeStatus);
  } catch (error) {
    if (error instanceof RuntimeRefusal && error.code === "runtime_not_running")
      return [{ good: true, what: "No Runtime runs on this machine; `kxm run` starts it." }];
    return [{ good: false, what: `This machine's Runtime cannot be asked: ${(error as Error).message}` }];
  }
  return [examineBinding(sync, world), ...sync.projects.flatMap((project) => examineOutbox(project, sync.hub !== undefined))];
}

function examineBinding({ hub, problem }: RuntimeStatus["sync"], world: World): Finding {
  if (problem !== undefined) return { good: false, what: `This machine's Runtime cannot report to its hub: ${problem}` };
  const around = hub ? hubInstead(hub.url, world) : knownHub(world)?.url;
  const reports = hub ? `This machine's Runtime reports to ${hub.url} as project ${hub.project}` : "This machine's Runtime reports to no hub";
  if (around !== undefined) return { good: false, what: `${reports}, not to ${around}; \`kxm runtime bind --hub ${around}\` changes that.` };
  return { good: true, what: `${reports}.` };
}

const events = (count: number): string => (count === 1 ? "1 event" : `${count.toLocaleString("en")} events`);
const waiting = (count: number): string => `${events(count)} ${count === 1 ? "waits" : "wait"} to be sent`;

/** What one project's outbox says. */
export function examineOutbox(
  { name, state, pending, refused, lastError, nextAttemptAt, paused }: RuntimeStatus["sync"]["projects"][number],
  bound: boolean,
) {
  const findings: Finding[] = [];
  const parked = Object.entries(refused);
  if (parked.length > 0)
    findings.push({
      good: false,
      what: `Project ${name}: the hub refused ${parked.map(([code, count]) => `${events(count)} (${code})`).join(", ")}; deal with the cause, then \`kxm runtime sync-retry\`.`,
    });
  const stuck = bound && lastError !== undefined && (pending > 0 || state !== "ok");
  if (stuck || state === "store_unavailable")
    findings.push({
      good: false,
      what: `Project ${name}: ${waiting(pending)}: ${lastError ?? state}${nextAttemptAt ? `; tried again at ${nextAttemptAt}` : ""}.`,
    });
  if (findings.length === 0)
    findings.push({
      good: true,
      what: `Project ${name}: ${pending === 0 ? "everything is sent" : waiting(pending)}${paused ? "; it is paused" : ""}.`,
    });
  return findings;
}

function showExamination(out: Output, findings: Finding[], figures: Figures | undefined) {
  for (const { good, what } of findings) out.line(`${good ? out.styled("good", "ok  ") : out.styled("bad", "look")}  ${what}`);
  if (!figures) return;
  const { where, version, bytes, freeBytes, createdAt, restores, growth } = figures;
  out.line();
  out.facts([
    ["store", where],
    ["engine", version],
    ["made", `${ago(new Date(createdAt).toISOString())} ago${restores > 0 ? `, restored ${restores} times` : ""}`],
    ["size", `${size(bytes.data)}${bytes.wal ? `, log ${size(bytes.wal)}` : ""}`],
    ["free", freeBytes === undefined ? undefined : size(freeBytes)],
  ]);
  out.line();
  out.table(
    growth,
    [
      { title: "TABLE", value: ({ table }) => table },
      { title: "ROWS", value: (one) => one.rows.toLocaleString("en"), align: "right" },
      { title: "LAST DAY", value: (one) => one.rowsPerDay.toLocaleString("en"), align: "right" },
      { title: "KEPT", value: ({ keptMs }) => (keptMs === null ? "after it ended" : `${Math.round(keptMs / DAY_MS)} d`) },
      { title: "STEADY AT", value: ({ steadyRows }) => steadyRows?.toLocaleString("en"), align: "right" },
    ],
    "",
  );
}

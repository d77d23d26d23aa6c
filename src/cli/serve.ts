// The composition root: opens the store, puts the hub together, mounts API and dashboard, listens, and takes it all down again.
import { networkInterfaces } from "node:os";
import { dirname, join } from "node:path";
import { createCredentials, refusalsOf } from "../api/credentials.ts";
import { describeApi } from "../api/reference.ts";
import { ROUTES } from "../api/routes.ts";
import { createApi } from "../api/server.ts";
import type { Engine } from "../db/engine.ts";
import { openEngine } from "../db/open.ts";
import { type AdmissionRules, hostsOf } from "../http/admission.ts";
import { post } from "../http/outbound.ts";
import { type Hub, openHub } from "../hub/hub.ts";
import { type Job, jobsOf, startLoops } from "../hub/loop.ts";
import { startPresence } from "../hub/presence.ts";
import * as sessions from "../hub/sessions.ts";
import { deliverDue, enqueue } from "../hub/webhook-deliveries.ts";
import { createMcp } from "../mcp/server.ts";
import { sha256 } from "../protocol/canonical.ts";
import { HubError } from "../protocol/errors.ts";
import { newId } from "../protocol/ids.ts";
import { docsScreen } from "../views/docs.tsx";
import type { Screen } from "../views/screen.ts";
import { SCREENS } from "../views/screens.ts";
import { createViews } from "../views/server.tsx";
import { createClock, type HubClock } from "./clock.ts";
import { storeWork } from "./hub-store.ts";
import { listen } from "./listen.ts";
import { openLog } from "./log-file.ts";
import { memoryReader } from "./memory-files.ts";
import { retrospectiveWriter } from "./retrospective-files.ts";
import type { ServeSettings } from "./settings.ts";
import { keepAdminToken, keepFromGit, plainFolder, privateFolder } from "./state-dir.ts";
import { loadDefinitions } from "./workflow-definitions.ts";

/** How long running requests may take after the hub was told to stop. */
const STOP_GRACE_MS = 5_000;
/** How soon after its end a run has its retrospective on disk. */
const RETROSPECTIVES_MS = 2_000;
/** How soon after an event its receivers are told. */
const WEBHOOKS_MS = 500;

/** How often the clock is held against the machine's. */
const CLOCK_LOOK_MS = 1_000;
/** A machine's clock that is further behind the store than this is told to the operator. */
const CLOCK_BEHIND_MS = 60_000;

/** A running hub. */
export interface Serving {
  /** Where it listens, such as `http://127.0.0.1:7331`. */
  url: string;
  hub: Hub;
  /** Reads the workflow definitions again. A file with problems keeps the old set. @throws CommandFailed that lists them @returns how many there are now */
  reload(): number;
  /** Stops accepting, ends streams, lets running requests finish, closes the store. Safe to call twice. */
  stop(): Promise<void>;
}

/**
 * Starts a hub in this process.
 * @param alarm told of trouble that has no other place to go, such as a log that cannot be written
 * @throws CommandFailed, StoreRefused when it cannot start; nothing is left open then
 */
export async function serve(settings: ServeSettings, alarm: (text: string) => void): Promise<Serving> {
  for (const warning of settings.warnings) alarm(warning);
  const definitions = loadDefinitions(settings.definitions, settings.env, alarm);
  plainFolder(settings.workspaceDir);
  privateFolder(settings.stateDir);
  const time = createClock();
  const clock = time.now;
  const logFile = openLog(settings.logPath, Date.now, alarm);
  const stopping = new AbortController();
  const cleanups: (() => unknown)[] = [() => logFile.close()];
  const cleanUp = async () => {
    while (cleanups.length > 0) await cleanups.pop()!();
  };
  try {
    const storeLog = (event: string, details: Record<string, string | number | boolean>) => logFile.log({ event, ...details });
    const engine = await openEngine({ url: settings.databaseUrl, path: settings.dataPath, clock, newId, log: storeLog });
    cleanups.push(() => engine.close());
    const behind = time.notBefore(await newestTime(engine));
    if (behind > CLOCK_BEHIND_MS)
      alarm(`the machine's clock is ${Math.round(behind / 1_000)} s behind the newest entry of the store; the hub goes on from there`);
    for (const folder of [settings.assetsDir, settings.configDir]) plainFolder(folder); // only now: a refused store leaves no trace
    for (const folder of [settings.stateDir, dirname(settings.logPath)]) if (folder.startsWith(settings.workspaceDir)) keepFromGit(folder);
    const memory = memoryReader(join(settings.workspaceDir, "memory"), clock);
    const hub = openHub({ engine, clock, settings: withLocalToken(settings), log: logFile.log, stopping: stopping.signal, definitions, memory });
    hub.storeWork = storeWork(settings, clock);
    const { adminTokenHash, localAdminTokenHash } = hub.settings;
    // A token of this machine says nothing about the store when hubs of several machines share it.
    const shared = adminTokenHash ?? (engine.kind === "sqlite" ? localAdminTokenHash : undefined);
    await engine.write("", (tx) => sessions.followAdminToken(tx, shared));
    if (engine.kind === "sqlite") await startPresence(hub); // nobody is connected to a hub that has just started
    const hosts = new Set<string>();
    const rules: AdmissionRules = { newRequestId: () => newId("req"), hosts, publicOrigin: settings.hub.publicUrl };
    const refusals = refusalsOf(hub);
    const credentials = createCredentials(hub, refusals);
    const app = createApi(hub, rules, ROUTES, credentials)
      .use(createMcp(hub, rules, credentials))
      .use(createViews(hub, rules, await screensOf(settings), refusals));
    const listening = await listen(app as never, settings.host, settings.port);
    for (const host of hostsOf(listening.port, namesOf(settings.host))) hosts.add(host);
    if (settings.hub.publicUrl) hosts.add(new URL(settings.hub.publicUrl).host);
    engine.announce(listening.url);
    hub.log({ event: "hub_started", url: listening.url, pid: process.pid });
    cleanups.push(startLoops(hub, [...jobsOf(hub), ...programJobs(settings, time)]));
    cleanups.push(async () => {
      stopping.abort(); // streams say when to come back, long polls answer
      await listening.stop(STOP_GRACE_MS);
      await hub.streams.pushed.settled();
      hub.log({ event: "hub_stopped", pid: process.pid });
    });
    let stopped: Promise<void> | undefined;
    const reload = () => {
      hub.definitions = loadDefinitions(settings.definitions, settings.env, alarm);
      hub.log({ event: "definitions_loaded", count: hub.definitions.size });
      return hub.definitions.size;
    };
    hub.reloadDefinitions = () => {
      try {
        return reload();
      } catch (error) {
        throw new HubError("invalid_definitions", (error as Error).message);
      }
    };
    return { url: listening.url, hub, reload, stop: () => (stopped ??= cleanUp()) };
  } catch (error) {
    await cleanUp();
    throw error;
  }
}

/** The jobs that need more of the world than rules may know: files, other machines, the machine's clock. */
const programJobs = ({ assetsDir }: ServeSettings, time: HubClock): Job[] => [
  { name: "clock", everyMs: CLOCK_LOOK_MS, run: async () => time.look() },
  { name: "retrospectives", lane: "upkeep", everyMs: RETROSPECTIVES_MS, run: retrospectiveWriter(assetsDir), last: true },
  {
    name: "webhooks",
    lane: "deliveries",
    everyMs: WEBHOOKS_MS,
    run: async (hub) => (await enqueue(hub)) + (await deliverDue(hub, { post, random: Math.random })),
  },
];

/** The dashboard's screens and what it cannot know by itself: the reference of the API, and for developers the page of all components. */
async function screensOf({ stories }: ServeSettings): Promise<Screen[]> {
  const screens = [...SCREENS, docsScreen(() => describeApi(ROUTES))];
  return stories ? [...screens, (await import("../views/stories-screen.tsx")).storiesScreen] : screens;
}

/** Without an admin token of the environment, the operator of this machine gets one of the hub's own. */
function withLocalToken({ hub, stateDir }: ServeSettings) {
  return hub.adminTokenHash === undefined ? { ...hub, localAdminTokenHash: sha256(keepAdminToken(stateDir)) } : hub;
}

/** Names that requests may carry. A hub on every address of the machine is known by each of them. */
function namesOf(host: string): string[] {
  const bracketed = (address: string) => (address.includes(":") ? `[${address}]` : address);
  if (host !== "0.0.0.0" && host !== "::") return [bracketed(host)];
  return Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => bracketed(address)));
}

/** When the newest event of any project was written: time must not go back behind it. */
async function newestTime({ read }: Engine): Promise<number> {
  let newest = 0;
  for (const { project, lastSeq } of await read.events.projects()) {
    for (const { at } of await read.events.after(project, lastSeq - 1, 1)) newest = Math.max(newest, at);
  }
  return newest;
}

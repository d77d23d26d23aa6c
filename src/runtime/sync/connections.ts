// One client and one command poll for each project of the hub that a checkout of this machine reports to. Follows the binding: a changed one starts afresh.
import { hostname } from "node:os";
import { type RuntimeClient, runtimeClient } from "../../client/runtime-client.ts";
import type { Clock } from "../clock.ts";
import type { ProjectEntry } from "../projects.ts";
import { type HubBinding, tokenFor } from "./binding.ts";
import { type CommandPoll, commandPoll } from "./commands.ts";
import type { SyncOptions } from "./loop.ts";

/** A project of the hub, with a client for it and the checkouts that report to it. */
export type Connected = {
  bound: HubBinding;
  project: string;
  client: RuntimeClient;
  poll: CommandPoll;
  entries(): ProjectEntry[];
  /** Which hub answers there, and which generation of its store; unknown before its first answer. */
  identity?: string;
};

/** @param signal ends everything */
export function hubConnections(options: SyncOptions, signal: AbortSignal) {
  const { projects, binding } = options;
  const connected = new Map<string, Connected>();
  let bound: HubBinding | undefined;
  let problem: string | undefined;
  let generation = new AbortController(); // of the binding
  let polling = false;

  /** Reads the binding, and leaves everything of an old one. */
  function follow(): HubBinding | undefined {
    let now: HubBinding | undefined;
    try {
      now = binding.read();
      problem = undefined;
    } catch (error) {
      problem = (error as Error).message;
    }
    if (now === bound) return bound;
    bound = now;
    generation.abort();
    generation = new AbortController();
    connected.clear();
    for (const { pusher } of projects.open()) pusher.retryNow();
    return bound;
  }

  const projectOf = (entry: ProjectEntry, to: HubBinding) => entry.row.hubProject ?? to.project;

  function connect(project: string, to: HubBinding): Connected {
    const known = connected.get(project);
    if (known) return known;
    const ending = AbortSignal.any([signal, generation.signal]);
    const entries = () => projects.entries().filter((entry) => projectOf(entry, to) === project);
    const made: Connected = { bound: to, project, entries, ...clientAndPoll(project, to, options, ending, entries) };
    connected.set(project, made);
    if (polling) void pollUntil(ending, made, options);
    return made;
  }

  return {
    /** That of a checkout, by its key; undefined without a hub. */
    of: (key: string): Connected | undefined => {
      const to = follow();
      const entry = projects.entries().find(({ row }) => row.projectKey === key);
      return to && entry && connect(projectOf(entry, to), to);
    },
    /** Every project of the hub that this machine has to do with. */
    all: (): Connected[] => {
      const to = follow();
      if (!to) return [];
      const names = new Set([...projects.entries().map((entry) => projectOf(entry, to)), ...(projects.entries().length === 0 ? [to.project] : [])]);
      return [...names].map((project) => connect(project, to));
    },
    /** Polls commands of every connection, those to come included. */
    startPolling: () => {
      polling = true;
    },
    /** Which hub, and what is wrong with the files that name it. */
    report: () => ({ hub: bound && { url: bound.url, project: bound.project }, problem }),
  };
}

function clientAndPoll(project: string, to: HubBinding, options: SyncOptions, signal: AbortSignal, entries: () => ProjectEntry[]) {
  const { runtimeId, version, projects, log, commands, random, fetch } = options;
  const identity = { project, runtimeId, host: hostname().slice(0, 64) || "unknown", version };
  const client = runtimeClient({ url: to.url, token: tokenFor(to, project), fetch }, identity, { signal });
  const ours = (entry: ProjectEntry) => entries().includes(entry);
  const source = {
    ...commands,
    hub: `${to.url}#${project}`,
    projects: () => entries().flatMap(({ open }) => open ?? []),
    target: ({ projectId, runId }: { projectId?: string; runId?: string }) => projects.find({ projectId, runId, among: ours }),
    log,
  };
  return { client, poll: commandPoll(source, { random }) };
}

async function pollUntil(signal: AbortSignal, { client, poll }: Connected, { log, clock }: SyncOptions) {
  try {
    while (!signal.aborted) {
      const wait = await poll.once(client);
      if (wait > 0 && !signal.aborted) await pause(clock, wait, signal);
    }
  } catch (error) {
    log("command_poll_ended", { level: "error", reason: String((error as Error)?.message ?? error) });
  }
}

/** Waits, but not past the end. */
function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const wake = () => resolve();
  const callOff = clock.after(ms, wake);
  signal.addEventListener("abort", wake);
  return promise.finally(() => {
    callOff();
    signal.removeEventListener("abort", wake);
  });
}

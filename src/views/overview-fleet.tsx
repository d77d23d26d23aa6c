// The fleet by machine: its Runtime, its agents as small shapes, its slots and its outbox. What has no machine's name stands last.
/** @jsxImportSource #jsx */
import type { AgentRow, RuntimeRow } from "../db/schema.ts";
import { presenceOf } from "../hub/runtimes.ts";
import type { RuntimeReport } from "../protocol/sync.ts";
import { domId } from "./dom-id.ts";
import { link, runtimeLink } from "./links.ts";
import { type Presence, pipOf, presenceAt } from "./presence.tsx";
import type { Visit } from "./screen.ts";
import { Empty } from "./ui/feedback.tsx";
import { MachineRow, PipLegend } from "./ui/fleet.tsx";
import { Section } from "./ui/page.tsx";
import { Status } from "./ui/status.tsx";
import { Ago, words } from "./ui/time.tsx";
import { Line, visible } from "./ui/untrusted.tsx";

/** Agents of one project that are looked at, by name; more are counted, not drawn. */
const AGENTS_LOOKED_AT = 300;
const PIPS_SHOWN = 60;
const RUNTIMES_LOOKED_AT = 100;
const MACHINES_SHOWN = 12;
const IN_WORK_MAX = 1_000;

type OnMachine = { agent: AgentRow; presence: Presence };
export type Machine = {
  /** As the machine names itself; undefined for agents that do not say where they are. */
  host: string | undefined;
  runtime: { row: RuntimeRow; online: boolean; report: RuntimeReport } | undefined;
  agents: OnMachine[];
};

/** Machines with their agents, those that need a look first; at most MACHINES_SHOWN. `silent`: connected agents that were not heard in time; `unknown`: those that could not have been. */
export async function machinesOf(visit: Visit, projects: readonly string[]): Promise<{ machines: Machine[]; silent: number; unknown: number }> {
  const { hub, now } = visit;
  const { read } = hub.engine;
  const [rows, begun, runtimes] = await Promise.all([
    Promise.all(projects.map((project) => read.agents.page(project, { of: "online", prefix: "", limit: AGENTS_LOOKED_AT }))),
    Promise.all(projects.map((project) => read.messages.inWork(project, IN_WORK_MAX))),
    Promise.all(projects.map((project) => read.runtimes.ofProject(project, RUNTIMES_LOOKED_AT))),
  ]);
  const working = new Set(begun.flat().map(({ recipientId }) => recipientId));
  const machines = new Map<string, Machine>();
  const machine = (key: string, host: string | undefined): Machine => {
    const known = machines.get(key) ?? { host, runtime: undefined, agents: [] };
    machines.set(key, known);
    return known;
  };
  for (const row of runtimes.flat()) {
    const on = machine(row.host ?? row.runtimeId, row.host ?? row.runtimeId);
    if (on.runtime && on.runtime.row.heartbeatAt >= row.heartbeatAt) continue; // the same Runtime reports to each of its projects
    on.runtime = { row, online: presenceOf(row, now, hub.settings.staleMs) === "online", report: (row.report ?? {}) as RuntimeReport };
  }
  let [silent, unknown] = [0, 0];
  for (const agent of rows.flat()) {
    const presence = presenceAt(hub, agent, now, { begun: working.has(agent.id), open: false });
    if (presence.state === "offline") continue; // it made its calls and went; the next sweep writes that down
    machine(agent.host ?? "", agent.host ?? undefined).agents.push({ agent, presence });
    if (presence.state === "lost contact") silent += 1;
    if (presence.state === "unknown") unknown += 1;
  }
  return { machines: [...machines.values()].sort(byAttention).slice(0, MACHINES_SHOWN), silent, unknown };
}

const isAway = ({ runtime }: Machine): boolean => runtime !== undefined && !runtime.online;
const byAttention = (a: Machine, b: Machine): number =>
  Number(isAway(b)) - Number(isAway(a)) || Number(a.host === undefined) - Number(b.host === undefined) || b.agents.length - a.agents.length;

/** Agents that answer, and agents that do not. */
export const Fleet = ({ machines, visit, total }: { machines: readonly Machine[]; visit: Visit; total: number }) => (
  <Section title="Fleet" count={`${machines.length} ${machines.length === 1 ? "machine" : "machines"}`} more={<PipLegend />}>
    {machines.map((machine) => (
      <OneMachine machine={machine} visit={visit} />
    ))}
    {machines.length === 0 && (
      <Empty title="Nobody is online.">
        {total > 0 ? `${total} ${total === 1 ? "agent is" : "agents are"} known and offline.` : "No agent has registered yet."}
      </Empty>
    )}
  </Section>
);

const OneMachine = ({ machine, visit: { now, project, hub } }: { machine: Machine; visit: Visit }) => {
  const { host, runtime, agents } = machine;
  const shown = agents.slice(0, PIPS_SHOWN);
  return (
    <MachineRow
      id={domId("machine", host ?? "")}
      name={host === undefined ? "no machine named" : <Line text={host} max={40} />}
      href={runtime ? runtimeLink(runtime.row.project, runtime.row.runtimeId) : link("/agents", { project, show: "online" })}
      status={<RuntimeStatus runtime={runtime} now={now} staleMs={hub.settings.staleMs} />}
      pips={shown.map(({ agent, presence }) => ({
        state: pipOf(presence.state),
        label: `${visible(agent.name)}: ${presence.state}, heartbeat ${words(now - presence.at)} ago`,
      }))}
      pipsHref={link("/agents", { project, show: "online", q: host !== undefined && /^\S+$/.test(host) ? `machine:${host}` : undefined })}
      note={noteOf(machine, agents.length - shown.length)}
      side={sideOf(machine, now)}
    />
  );
};

const RuntimeStatus = ({ runtime, now, staleMs }: { runtime: Machine["runtime"]; now: number; staleMs: number }) => {
  if (!runtime) return <Status state="unknown" word="no Runtime" why="agents only" />;
  const ago = <Ago at={runtime.row.heartbeatAt} now={now} plain />;
  return runtime.online ? (
    <Status state="online" bound={staleMs} why={<>heartbeat {ago}</>} />
  ) : (
    <Status state="lost contact" why={<>last seen {ago}</>} />
  );
};

function noteOf({ runtime, agents }: Machine, more: number) {
  if (runtime && !runtime.online) return "Runs go on without the hub. Nothing is lost; the backlog drains when it is back.";
  const queued = runtime?.report.slots?.queued ?? 0;
  const notes = [
    more > 0 && `${more} more agents`,
    agents.length === 0 && "no agent here",
    queued > 0 && `${queued} queued ${queued === 1 ? "run waits" : "runs wait"} for a slot here`,
  ].filter(Boolean);
  return notes.length > 0 ? notes.join(" · ") : undefined;
}

function sideOf({ runtime, agents }: Machine, now: number) {
  if (!runtime) return [`${agents.length} ${agents.length === 1 ? "agent" : "agents"}`];
  const { slots, outbox = [] } = runtime.report;
  const pending = outbox.reduce((sum, one) => sum + one.pending, 0);
  const refused = outbox.reduce((sum, one) => sum + Object.values(one.refused).reduce((a, b) => a + b, 0), 0);
  return [
    slots && `slots ${slots.running} of ${slots.total} busy`,
    refused > 0 ? `${refused.toLocaleString("en")} events refused` : undefined,
    pending > 0 ? (
      <>{pending.toLocaleString("en")} events not yet here</>
    ) : (
      <>
        synced, as of <Ago at={runtime.row.heartbeatAt} now={now} plain />
      </>
    ),
  ].filter((line) => line !== undefined);
}

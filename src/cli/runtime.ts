// `kxm runtime`: this machine's Runtime as a program: start, stop, where it reports to, and how that goes.
import type { Command } from "commander";
import { statePaths, stateRoot } from "../client/state-paths.ts";
import { VERSION } from "../protocol/version.ts";
import { span } from "./ago.ts";
import { define, group } from "./command.ts";
import { connect, connectOrStart } from "./local.ts";
import { CommandFailed, EXIT, type Output, type World } from "./output.ts";
import { findTarget, type TargetOptions, withTarget } from "./target.ts";

const STOP_WAIT_MS = 10_000;
const LOOK_AGAIN_MS = 25;

type Project = {
  projectKey: string;
  projectId: string;
  name: string;
  state: string;
  pending: number;
  acked: number;
  refused: Record<string, number>;
  paused?: boolean;
  lastError?: string;
  nextAttemptAt?: string;
};
/** What a Runtime says of itself and of how sync goes. */
export type RuntimeStatus = {
  runtimeId: string;
  version: string;
  pid: number;
  port: number;
  startedAt: number;
  slots?: { running: number; queued: number; total: number };
  sync: { hub?: { url: string; project: string }; problem?: string; projects: Project[] };
};

/** Adds `kxm runtime`. */
export function addRuntime(program: Command): void {
  const runtime = group(program, "runtime", "start, stop and look at this machine's Runtime", "It starts by itself when a command needs it.");
  addLife(runtime);
  addBinding(runtime);
  define<{ code?: string }>(runtime, {
    usage: "sync-retry",
    summary: "send again what the hub refused, after its cause was dealt with",
    examples: ["kxm runtime sync-retry", "kxm runtime sync-retry --code sync_sequence_reused"],
    options: (command) => command.option("--code <code>", "only what was refused with this code"),
    run: async ({ options, out, world }) => {
      const answer = await (await connect(world)).syncRetry(options.code === undefined ? {} : { code: options.code });
      out.result(answer, () => out.line(`${answer.requeued} events are sent again`));
    },
  });
}

function addLife(runtime: Command) {
  define(runtime, {
    usage: "start",
    summary: "start it in the background; says so when it runs already",
    examples: ["kxm runtime start"],
    run: async ({ out, world }) => showStatus(await (await connectOrStart(world)).status(), out, world),
  });
  define(runtime, {
    usage: "status",
    summary: "show the Runtime, its projects and how sync goes; ends with 3 when none runs",
    examples: ["kxm runtime status", "kxm runtime status --json"],
    isDefault: true,
    run: async ({ out, world }) => showStatus(await (await connect(world)).status(), out, world),
  });
  define(runtime, {
    usage: "stop",
    summary: "end it cleanly; runs go on when it is started again",
    examples: ["kxm runtime stop"],
    run: async ({ out, world }) => stop(out, world),
  });
}

async function stop(out: Output, world: World) {
  const runtime = await connect(world);
  const { pid } = runtime.endpoint;
  await runtime.shutdown();
  const deadline = performance.now() + STOP_WAIT_MS;
  while (
    await connect(world).then(
      () => true,
      () => false,
    )
  ) {
    if (performance.now() > deadline) throw new CommandFailed(`the Runtime (process ${pid}) has not ended yet`, undefined, EXIT.timedOut);
    await Bun.sleep(LOOK_AGAIN_MS);
  }
  out.result({ stopped: pid }, () => out.line(`the Runtime (process ${pid}) has ended`));
}

function addBinding(runtime: Command) {
  define<TargetOptions & { token?: string }>(runtime, {
    usage: "bind",
    summary: "let this machine report to a hub",
    details: "Without options: the hub of this workspace. A token is kept in the Runtime's private files and shown to that hub only.",
    examples: ["kxm runtime bind", "KXM_TOKEN=kxp_… kxm runtime bind --hub https://hub.example --project shop"],
    options: withTarget,
    run: async ({ options, out, world }) => {
      const { url, project, agentToken } = findTarget(world, options);
      const { hub } = await (await connectOrStart(world)).bind({ url, project, token: agentToken });
      if (new URL(hub.url).origin !== new URL(url).origin)
        throw new CommandFailed(
          `this machine goes on reporting to ${hub.url}: the Runtime was started with KXM_URL`,
          "`kxm runtime stop`, unset KXM_URL, and bind again.",
        );
      out.result({ hub }, () => out.line(`this machine reports to ${hub.url} as project ${hub.project}`));
    },
  });
  define(runtime, {
    usage: "unbind",
    summary: "report to no hub; everything is kept for the next one",
    examples: ["kxm runtime unbind"],
    run: async ({ out, world }) => {
      const { hub } = await (await connect(world)).bind({});
      out.result({ hub: hub ?? null }, () => out.line(hub ? `KXM_URL of the Runtime still names ${hub.url}` : "this machine reports to no hub"));
    },
  });
}

function showStatus(status: RuntimeStatus, out: Output, world: World) {
  const { root: state, log } = statePaths(stateRoot(world.env));
  const { runtimeId, version, pid, port, startedAt, slots, sync } = status;
  out.result({ ...status, state, log }, () => {
    out.facts([
      ["runtime", runtimeId],
      ["version", version === VERSION ? version : `${version} (this kxm is ${VERSION})`],
      ["process", `${pid}, port ${port}, up ${span(Date.now() - startedAt)}`],
      ["state", state],
      ["log", log],
      ["runs", slots && `${slots.running} of ${slots.total} running, ${slots.queued} queued`],
      ["hub", sync.problem ?? (sync.hub ? `${sync.hub.url} as ${sync.hub.project}` : "none: `kxm runtime bind` names one")],
    ]);
    out.line();
    out.table(
      sync.projects,
      [
        { title: "PROJECT", value: (row) => row.name },
        { title: "SYNC", value: (row) => (row.paused ? `${row.state}, paused` : row.state), style: (row) => (row.state === "ok" ? "good" : "warn") },
        { title: "PENDING", value: (row) => row.pending, align: "right" },
        { title: "SENT", value: (row) => row.acked, align: "right" },
        {
          title: "REFUSED",
          value: (row) =>
            Object.entries(row.refused)
              .map(([code, n]) => `${n} ${code}`)
              .join(", ") || undefined,
        },
        { title: "WHY", value: (row) => row.lastError },
      ],
      "no project is registered yet: `kxm run` registers the one it is called in",
    );
    if (sync.projects.some(({ lastError }) => lastError?.startsWith("invalid_auth")))
      out.note(
        "The hub asks for a token: `KXM_TOKEN=… kxm runtime bind`. A Runtime that was started with KXM_URL reads both only then: set both, `kxm runtime stop`, and the next command starts it.",
      );
  });
}

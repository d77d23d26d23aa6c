// `kxm intake`: hand work to a project without waiting for its run, once per key.
import type { Command } from "commander";
import { define, group } from "./command.ts";
import { actor, commandId, openProject } from "./local.ts";
import { visible } from "./output.ts";
import { withinLimit } from "./run.ts";
import { elapsed } from "./run-progress.ts";

type SubmitOptions = { workflow?: string; title?: string; key?: string };
type Coordinator = { coordinatorId: string; record: { actors: string[]; workflows?: string[] }; revokedAt?: number };
type Message = {
  intakeId: string;
  intakeKey: string;
  state: string;
  submittedBy: string;
  displayTitle?: string;
  runId?: string;
  reason?: string;
  receivedAt: number;
};

/** Adds `kxm intake`. */
export function addIntake(program: Command): void {
  const intake = group(program, "intake", "hand work to a project, and see what waits");
  define<SubmitOptions>(intake, {
    usage: "submit <prompt>",
    summary: "hand in work; it becomes a run in order of arrival",
    examples: ["kxm intake submit 'Update the changelog' --key changelog-42"],
    options: (command) =>
      command
        .option("-w, --workflow <id>", "the workflow (default: the project's defaultWorkflow)")
        .option("--title <text>", "a title for lists")
        .option("--key <text>", "an idempotency key: the same key is the same work"),
    run: async ({ args: [prompt], options, out, world }) => {
      const { runtime, key } = await openProject(world, { start: true });
      const payload = {
        prompt: withinLimit(prompt)!,
        ...(options.workflow && { workflowId: options.workflow }),
        ...(options.title && { displayTitle: options.title }),
        ...(options.key && { intakeKey: options.key }),
      };
      const { result } = await runtime.command(key, { commandId: commandId(), kind: "start", payload, actor: actor(world) });
      out.result(result, () => out.line(`taken in as ${result.intakeId} (${result.state})`));
    },
  });
  define(intake, {
    usage: "list",
    summary: "list the work that was handed in, newest first",
    examples: ["kxm intake list", "kxm intake list --json"],
    isDefault: true,
    run: async ({ out, world }) => {
      const { runtime, key } = await openProject(world, { start: true });
      const { intake: rows, paused } = (await runtime.get(`/v1/projects/${key}/intake`)) as {
        intake: Message[];
        paused: { actor: string; reason?: string } | null;
      };
      out.result({ intake: rows, paused }, () => {
        if (paused) out.line(out.styled("warn", visible(`paused by ${paused.actor}${paused.reason ? `: ${paused.reason}` : ""}`)));
        out.table(
          rows,
          [
            { title: "MESSAGE", value: (row) => row.intakeId },
            { title: "STATE", value: (row) => row.state },
            { title: "AGE", value: (row) => elapsed(Date.now() - row.receivedAt), align: "right" },
            { title: "FROM", value: (row) => row.submittedBy },
            { title: "RUN", value: (row) => row.runId ?? row.reason },
            { title: "TITLE", value: (row) => row.displayTitle },
          ],
          "nothing was handed in yet",
        );
      });
    },
  });
  addCoordinators(intake);
}

/** Who may hand in work: nobody named means everybody. */
function addCoordinators(intake: Command): void {
  define<{ workflow?: string[] }>(intake, {
    usage: "allow <id> <actors...>",
    summary: "name who may hand work to this project; until somebody is named, everybody may",
    examples: ["kxm intake allow release-team cli:ana operator:ben --workflow release"],
    options: (command) => command.option("--workflow <ids...>", "only for these workflows"),
    run: async ({ args: [id, ...actors], options, out, world }) => {
      const { runtime, key } = await openProject(world, { start: true });
      const answer = await runtime.post(`/v1/projects/${key}/coordinators/${encodeURIComponent(id!)}`, {
        actors,
        ...(options.workflow && { workflows: options.workflow }),
      });
      out.result(answer, () => out.line(`${actors.join(", ")} may hand in work as ${id}`));
    },
  });
  define(intake, {
    usage: "disallow <id>",
    summary: "end what `kxm intake allow` named",
    examples: ["kxm intake disallow release-team"],
    run: async ({ args: [id], out, world }) => {
      const { runtime, key } = await openProject(world, { start: true });
      const answer = await runtime.post(`/v1/projects/${key}/coordinators/${encodeURIComponent(id!)}/revoke`);
      out.result(answer, () => out.line(`${id} hands in no more work`));
    },
  });
  define(intake, {
    usage: "allowed",
    summary: "list who may hand in work",
    examples: ["kxm intake allowed"],
    run: async ({ out, world }) => {
      const { runtime, key } = await openProject(world, { start: true });
      const { coordinators } = (await runtime.get(`/v1/projects/${key}/coordinators`)) as { coordinators: Coordinator[] };
      const active = coordinators.filter(({ revokedAt }) => revokedAt === undefined);
      out.result({ coordinators: active }, () =>
        out.table(
          active,
          [
            { title: "ID", value: (row) => row.coordinatorId },
            { title: "WHO", value: (row) => row.record.actors.join(", ") },
            { title: "WORKFLOWS", value: (row) => row.record.workflows?.join(", ") ?? "all" },
          ],
          "nobody is named: everybody may",
        ),
      );
    },
  });
}

// `kxm intake`: hand work to a project without waiting for its run, once per key.
import type { Command } from "commander";
import { define, group } from "./command.ts";
import { actor, commandId, openProject } from "./local.ts";
import { elapsed } from "./run-progress.ts";

type SubmitOptions = { workflow?: string; title?: string; key?: string };
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
        prompt: prompt!,
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
        if (paused) out.line(out.styled("warn", `paused by ${paused.actor}${paused.reason ? `: ${paused.reason}` : ""}`));
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
}

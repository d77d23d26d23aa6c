// `kxm project` and `kxm intake`: whether the project takes work, and the work that waits.
import type { Command } from "commander";
import { define, group } from "./command.ts";
import { actor, commandId, connectOrStart, openProject, problemsFailed, projectRoot } from "./local.ts";
import { EXIT } from "./output.ts";

/** Adds `kxm project`. */
export function addProject(program: Command): void {
  const project = group(program, "project", "pause and resume a project, and check its files");
  for (const kind of ["pause", "resume"] as const)
    define<{ reason?: string }>(project, {
      usage: kind,
      summary: kind === "pause" ? "hold new work; runs that execute go on" : "take work again",
      examples: [`kxm project ${kind}${kind === "pause" ? " --reason 'release freeze'" : ""}`],
      options: (command) => command.option("--reason <text>", "why, for the record"),
      run: async ({ options, out, world }) => {
        const { runtime, key, name } = await openProject(world, { start: true });
        const { result } = await runtime.command(key, {
          commandId: commandId(),
          kind,
          payload: options.reason ? { reason: options.reason } : {},
          actor: actor(world),
        });
        out.result(result, () =>
          out.line(
            result.changed
              ? `${name} is ${result.paused ? "paused" : "taking work"}`
              : `${name} was ${result.paused ? "paused" : "taking work"} already`,
          ),
        );
      },
    });
  define(project, {
    usage: "check",
    summary: "check all project files and list every problem",
    examples: ["kxm project check", "kxm project check --json"],
    run: async ({ out, world }) => {
      const root = projectRoot(world);
      const answer = await (await connectOrStart(world)).post("/v1/check", { root });
      if (!out.json && answer.problems.length > 0) throw problemsFailed(answer.problems);
      out.result(answer, () => out.line(`fine: workflows ${answer.workflows.join(", ")}`));
      return answer.problems.length > 0 ? EXIT.failed : EXIT.ok;
    },
  });
}

// `kxm budget`: what projects may cost, how much of it is spent, from a terminal.
import type { Command } from "commander";
import { ask } from "../client/http.ts";
import { BUDGET_PERIODS, type Budget } from "../protocol/budgets.ts";
import { define, group } from "./command.ts";
import { type Output, UsageError } from "./output.ts";
import { asOperator, CLI_HEADERS, findTarget, type TargetOptions, withTarget } from "./target.ts";

type SetOptions = TargetOptions & { per: string; currency: string; all?: boolean };

/** Adds `kxm budget` and its commands. */
export function addBudget(program: Command): void {
  const budget = withTarget(
    group(
      program,
      "budget",
      "say what projects may cost, and see how much of it is spent",
      "The hub raises an alert at 80 and at 100 percent and stops nothing: a run's own limit is in its workflow file.",
    ),
  );
  define<TargetOptions>(budget, {
    usage: "list",
    summary: "list the budgets with what was spent of each",
    examples: ["kxm budget list"],
    run: async ({ options, out, world }) => {
      const to = asOperator(findTarget(world, options));
      const { body } = await ask<{ budgets: Budget[] }>(to, "GET", "/v1/budgets", { signal: world.stopping });
      out.result(body, () => showBudgets(out, body.budgets));
    },
  });
  define<SetOptions>(budget, {
    usage: "set <amount>",
    summary: "set what a project may cost; once more changes it",
    details: "For the project of this folder, the one that --project names, or with --all for all projects together.",
    examples: ["kxm budget set 40", "kxm budget set 900 --per month --all", "kxm budget set 12.50 --project shop --currency EUR"],
    options: (command) =>
      command
        .option("--per <period>", BUDGET_PERIODS.join(" or "), "day")
        .option("--currency <code>", "three letters", "USD")
        .option("--all", "all projects together"),
    run: async ({ args: [amount], options, out, world }) => {
      const { per: period, all } = options;
      if (!(BUDGET_PERIODS as readonly string[]).includes(period)) throw new UsageError(`--per is ${BUDGET_PERIODS.join(" or ")}`);
      if (all && options.project !== undefined) throw new UsageError("give --project or --all, not both");
      const target = findTarget(world, options);
      const body = { amount, period, currency: options.currency.toUpperCase(), ...(!all && { project: target.project }) };
      const answer = await ask<{ budget: Budget }>(asOperator(target), "POST", "/v1/budgets", { body, headers: CLI_HEADERS, signal: world.stopping });
      out.result(answer.body, () => showBudgets(out, [answer.body.budget]));
    },
  });
  define<TargetOptions>(budget, {
    usage: "remove <id>",
    summary: "remove a budget",
    examples: ["kxm budget remove bud_0190…"],
    run: async ({ args: [id], options, out, world }) => {
      const to = asOperator(findTarget(world, options));
      await ask(to, "DELETE", `/v1/budgets/${encodeURIComponent(id!)}`, { headers: CLI_HEADERS, signal: world.stopping });
      out.result({ removed: id }, () => out.line(`removed ${id}`));
    },
  });
}

const LEVELS = { within: "holds", near: "nearly used", over: "used up" } as const;

function showBudgets(out: Output, budgets: Budget[]) {
  out.table(
    budgets,
    [
      { title: "ID", value: ({ id }) => id },
      { title: "FOR", value: ({ project }) => project ?? "all projects" },
      { title: "PER", value: ({ period }) => period },
      { title: "AMOUNT", value: ({ amount, currency }) => `${amount.toFixed(2)} ${currency}`, align: "right" },
      { title: "SPENT", value: ({ spent, unknown }) => (spent === 0 && unknown > 0 ? "unknown" : spent.toFixed(2)), align: "right" },
      { title: "NO PRICE", value: ({ unknown }) => unknown || undefined, align: "right" },
      {
        title: "STATE",
        value: ({ level }) => LEVELS[level],
        style: ({ level }) => (level === "over" ? "bad" : level === "near" ? "warn" : "good"),
      },
    ],
    "No budget is set: `kxm budget set 40` sets one a day for this project.",
  );
}

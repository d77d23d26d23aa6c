// `kxm journal`, `kxm improvements`, `kxm search`: what was learned and what was said.
import type { Command } from "commander";
import { ask } from "../client/http.ts";
import type { JournalEntry } from "../protocol/journal.ts";
import type { SearchAnswer } from "../protocol/search.ts";
import { ago } from "./ago.ts";
import { define, group, number } from "./command.ts";
import { EXIT, oneLine } from "./output.ts";
import { asOperator, CLI_HEADERS, findTarget, type TargetOptions, withTarget } from "./target.ts";

const collect = (value: string, before: string[] = []) => [...before, value];

/** Adds `kxm journal` and its commands. */
export function addJournal(program: Command): void {
  const journal = withTarget(group(program, "journal", "what workflow runs planned, decided, found and learned"));
  define<TargetOptions & { category?: string; limit: number }>(journal, {
    usage: "list",
    summary: "entries of the project, newest first",
    examples: ["kxm journal list", "kxm journal list --category lesson"],
    options: (command) => command.option("--category <word>", "only one category").option("--limit <number>", "at most so many", number(1, 200), 30),
    run: async ({ options, out, world }) => {
      const target = findTarget(world, options);
      const query = { project: target.project, category: options.category, limit: options.limit };
      const { body } = await ask<{ entries: JournalEntry[] }>(asOperator(target), "GET", "/v1/journal", { query, signal: world.stopping });
      out.result(body, () =>
        out.table(
          body.entries,
          [
            { title: "entry", value: ({ id }) => id },
            { title: "category", value: ({ category, promotion }) => `${category}${promotion?.length ? ` (${promotion.at(-1)!.to})` : ""}` },
            {
              title: "severity",
              value: ({ severity }) => severity,
              style: ({ severity }) => (severity === "error" ? "bad" : severity === "warning" ? "warn" : undefined),
            },
            { title: "age", value: ({ createdAt }) => ago(createdAt), align: "right" },
            { title: "summary", value: ({ summary }) => oneLine(summary, 100) },
          ],
          "The journal is empty. Coordinators write it: kxm workflow record --help",
        ),
      );
    },
  });
  define<TargetOptions & { to: string; evidence: string[]; reason: string }>(journal, {
    usage: "promote <entry>",
    summary: "approve, reject or quarantine a candidate, once",
    examples: ["kxm journal promote journal_0190… --to approved --evidence 'used in 3 runs' --reason works"],
    options: (command) =>
      command
        .requiredOption("--to <word>", "approved, rejected or quarantined")
        .requiredOption("--evidence <reference>", "repeat for more", collect)
        .requiredOption("--reason <text>", "why"),
    run: async ({ args: [id], options, out, world }) => {
      const body = { to: options.to, evidenceRefs: options.evidence, reason: options.reason };
      const answer = await ask<{ entry: JournalEntry }>(
        asOperator(findTarget(world, options)),
        "POST",
        `/v1/journal/${encodeURIComponent(id!)}/promotion`,
        { body, headers: CLI_HEADERS, signal: world.stopping },
      );
      out.result(answer.body, () => out.line(`${answer.body.entry.id} ${options.to}`));
    },
  });
}

/** Adds `kxm improvements`. */
export function addImprovements(program: Command): void {
  withTarget(
    define<TargetOptions>(program, {
      usage: "improvements",
      summary: "what the journal teaches, ranked",
      examples: ["kxm improvements", "kxm improvements --json"],
      run: async ({ options, out, world }) => {
        const target = findTarget(world, options);
        const { body } = await ask<{ signals: Record<string, any>[]; entries: number }>(asOperator(target), "GET", "/v1/improvements", {
          query: { project: target.project },
          signal: world.stopping,
        });
        out.result(body, () =>
          out.table(
            body.signals,
            [
              { title: "priority", value: ({ priority }) => priority, align: "right" },
              { title: "category", value: ({ category }) => category },
              { title: "area", value: ({ area }) => area },
              { title: "runs", value: ({ frequency }) => frequency, align: "right" },
              { title: "summary", value: ({ summary }) => oneLine(summary, 100) },
            ],
            `Nothing stands out in ${body.entries} entries.`,
          ),
        );
      },
    }),
  );
}

/** Adds `kxm search`. */
export function addSearch(program: Command): void {
  withTarget(
    define<TargetOptions & { limit: number; after?: string }>(program, {
      usage: "search <words...>",
      summary: "find messages, agents, leases, runs, journal entries and context",
      details:
        'Words, beginnings (pay*), "phrases" and qualifiers: from: to: status: project: kind: since: (7d, 12h, a date). Ends with 1 when nothing is found.',
      examples: ["kxm search payment retries", "kxm search '\"all green\" kind:message since:7d'", "kxm search from:reviewer status:queued"],
      options: (command) =>
        command.option("--limit <number>", "at most so many", number(1, 50), 20).option("--after <cursor>", "the page after another"),
      run: async ({ args, options, out, world }) => {
        const target = findTarget(world, options);
        const query = { q: args.join(" "), project: target.project, limit: options.limit, after: options.after };
        const { body } = await ask<SearchAnswer>(asOperator(target), "GET", "/v1/search", { query, signal: world.stopping });
        out.result(body, () => {
          out.table(
            body.hits,
            [
              { title: "kind", value: ({ kind }) => kind },
              { title: "id", value: ({ id }) => id },
              { title: "age", value: ({ at }) => ago(at), align: "right" },
              { title: "who", value: ({ from, to }) => [from, to].filter(Boolean).join(" → ") },
              { title: "status", value: ({ status }) => status },
              { title: "text", value: ({ snippet, title }) => oneLine(snippet?.text || title, 90) },
            ],
            "Nothing is found. Fewer or other words may help.",
          );
          if (body.behind > 0) out.note(`${body.behind} changes are not searchable yet`);
          if (body.next) out.note(`more with --after ${body.next}`);
        });
        return body.hits.length > 0 ? EXIT.ok : EXIT.failed;
      },
    }),
  );
}

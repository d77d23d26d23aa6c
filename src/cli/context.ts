// `kxm context`, `kxm memory`: what a project knows, from a terminal.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { ask } from "../client/http.ts";
import { CONFIDENCES, type ContextItem } from "../protocol/context.ts";
import { ago } from "./ago.ts";
import { type Call, define, group, number } from "./command.ts";
import { actor } from "./local.ts";
import { CommandFailed, EXIT, type Output, oneLine, UsageError } from "./output.ts";
import { writeBelow } from "./own-files.ts";
import { asOperator, CLI_HEADERS, findTarget, type TargetOptions, withTarget } from "./target.ts";
import { readText } from "./text.ts";

const collect = (value: string, before: string[] = []) => [...before, value];

/** A context call as the operator of this machine. */
async function post<T = any>({ world, options }: Call<TargetOptions>, path: string, body: object): Promise<T> {
  const target = findTarget(world, options);
  return (
    await ask<T>(asOperator(target), "POST", `/v1/context/${path}`, {
      body: { project: target.project, ...body },
      headers: CLI_HEADERS,
      signal: world.stopping,
    })
  ).body;
}
const show = (out: Output, items: readonly ContextItem[], none: string) =>
  out.table(
    items,
    [
      { title: "id", value: ({ id }) => id },
      { title: "kind", value: ({ kind, stateKey }) => (stateKey ? `${kind} ${stateKey}` : kind) },
      { title: "authority", value: ({ authority, confidence }) => `${authority}, ${confidence}` },
      { title: "from", value: ({ provenance }) => provenance.sourceRef ?? provenance.sourceType },
      { title: "summary", value: ({ summary }) => oneLine(summary, 100) },
    ],
    none,
  );

/** Adds `kxm context` and its commands. */
export function addContext(program: Command): void {
  const context = withTarget(group(program, "context", "ask and tell what a project knows"));
  define<TargetOptions & { role: string; budget?: number }>(context, {
    usage: "get <task...>",
    summary: "the packet of context for a role and task",
    examples: ["kxm context get --role implementer fix the payment retries"],
    options: (command) =>
      command
        .option("--role <word>", "repro, planner, critic, implementer, verifier or any other", "implementer")
        .option("--budget <tokens>", "at most so many tokens", number(512, 200_000)),
    run: async (call) => {
      const { role, budget } = call.options;
      const { packet, audit } = await post(call, "get", { role, task: call.args.join(" "), ...(budget && { budgetTokens: budget }) });
      call.out.result({ packet, audit }, (out) => {
        for (const section of ["currentState", "knowledge", "evidence", "episodes", "skills", "contradictions"]) {
          if (packet[section].length === 0) continue;
          out.line(out.styled("bold", section));
          show(out, packet[section], "");
        }
        for (const gap of packet.unresolvedGaps) out.line(`gap: ${gap}`);
        out.note(`${audit.selectedIds.length} of ${audit.candidateCount} items, about ${packet.estimatedTokens} of ${audit.budgetTokens} tokens`);
      });
    },
  });
  define<TargetOptions & { limit?: number }>(context, {
    usage: "recall [words...]",
    summary: "find items by words; shows where they come from",
    examples: ["kxm context recall payment retries"],
    options: (command) => command.option("--limit <number>", "at most so many", number(1, 100)),
    run: async (call) => {
      const answer = await post(call, "recall", { query: call.args.join(" "), ...(call.options.limit && { limit: call.options.limit }) });
      call.out.result(answer, (out) =>
        out.table(
          answer.items as Record<string, any>[],
          [
            { title: "id", value: ({ id }) => id },
            { title: "kind", value: ({ kind }) => kind },
            { title: "from", value: ({ sourceRef, sourceType }) => sourceRef ?? sourceType },
            { title: "relevance", value: ({ relevance }) => relevance, align: "right" },
          ],
          "Nothing is known by these words.",
        ),
      );
    },
  });
  define<TargetOptions & { asOf?: string; history?: boolean }>(context, {
    usage: "state [key]",
    summary: "current values, or one key now, at a time, or over time",
    examples: ["kxm context state", "kxm context state db.engine --as-of 2026-01-31T00:00:00Z", "kxm context state db.engine --history"],
    options: (command) => command.option("--as-of <time>", "the value at a time").option("--history", "every value the key ever had"),
    run: async (call) => {
      const {
        args: [key],
        options,
        out,
        world,
      } = call;
      if (key !== undefined && !options.history) {
        const answer = await post(call, "state", { key, ...(options.asOf && { asOf: options.asOf }) });
        out.result(answer, () => (answer.state ? show(out, [answer.state], "") : out.line(`nothing is decided for ${oneLine(key)}`)));
        return answer.state ? EXIT.ok : EXIT.failed;
      }
      const target = findTarget(world, options);
      const { body } = await ask(asOperator(target), "GET", "/v1/context/state", { query: { project: target.project, key }, signal: world.stopping });
      out.result(body, () => {
        show(out, body.history ?? body.current, "Nothing is decided yet: kxm context propose --help");
        if (body.proposals.length > 0 && key === undefined) out.line("\nproposed:");
        if (body.proposals.length > 0 && key === undefined) show(out, body.proposals, "");
      });
    },
  });
  define<TargetOptions & { authority: string; confidence: string; evidence: string[] }>(context, {
    usage: "propose <key> [summary...]",
    summary: "propose a value for a key, with evidence",
    examples: ["kxm context propose db.engine SQLite --evidence 'commit 4f2c1e'"],
    options: (command) =>
      command
        .requiredOption("--evidence <reference>", "repeat for more", collect)
        .option("--authority <word>", "policy, instruction, evidence, hypothesis", "evidence")
        .option("--confidence <word>", "verified, probable, uncertain", "probable"),
    run: async (call) => {
      const [key, ...words] = call.args;
      const { authority, confidence, evidence } = call.options;
      const answer = await post(call, "state/propose", {
        key,
        summary: await readText(words, call.world),
        authority,
        confidence,
        evidenceRefs: evidence,
      });
      call.out.result(answer, (out) => out.line(answer.proposalId));
    },
  });
  define<TargetOptions & { evidence: string[]; by?: string }>(context, {
    usage: "promote <proposal>",
    summary: "make a proposal the current value; never by its proposer",
    examples: ["kxm context promote ctx_0190… --evidence 'reviewed in PR 7'"],
    options: (command) => command.requiredOption("--evidence <line>", "repeat for more", collect).option("--by <name>", "who promotes"),
    run: async (call) => {
      const answer = await post(call, "state/promote", {
        proposalId: call.args[0],
        evidence: call.options.evidence,
        ...(call.options.by && { promotedBy: call.options.by }),
      });
      call.out.result(answer, (out) => show(out, [answer.state], ""));
    },
  });
  addTelling(context);
}

function addTelling(context: Command) {
  define<TargetOptions & { reason: string }>(context, {
    usage: "reject <proposal>",
    summary: "refuse a proposal, with a reason",
    examples: ["kxm context reject ctx_0190… --reason 'measured otherwise'"],
    options: (command) => command.requiredOption("--reason <text>", "why; kept in the audit"),
    run: async (call) => {
      const answer = await post(call, "state/reject", { proposalId: call.args[0], reason: call.options.reason });
      call.out.result(answer, (out) => out.line(`rejected ${answer.state.id}`));
    },
  });
  define<TargetOptions & { run?: string }>(context, {
    usage: "episode",
    summary: "errors, lessons, observations and experiments, oldest first",
    examples: ["kxm context episode", "kxm context episode --run run_0190…"],
    options: (command) => command.option("--run <id>", "of one workflow run"),
    run: async (call) => {
      const answer = await post<{ episodes: ContextItem[] }>(call, "episode", { ...(call.options.run && { workflowRunId: call.options.run }) });
      call.out.result(answer, (out) =>
        out.table(
          answer.episodes,
          [
            { title: "when", value: ({ observedAt }) => (observedAt ? `${ago(observedAt)} ago` : "") },
            { title: "summary", value: ({ summary }) => summary },
          ],
          "Nothing has happened yet.",
        ),
      );
    },
  });
  define<TargetOptions>(context, {
    usage: "explain <id>",
    summary: "where an item comes from",
    examples: ["kxm context explain ctx_0190…"],
    run: async (call) => {
      const answer = await post(call, "explain", { id: call.args[0] });
      call.out.result(answer, (out) =>
        out.table(
          answer.sources as { id: string; sourceType: string; sourceRef?: string }[],
          [
            { title: "id", value: ({ id }) => id },
            { title: "source", value: ({ sourceType }) => sourceType },
            { title: "reference", value: ({ sourceRef }) => sourceRef },
          ],
          "No such item.",
        ),
      );
      return answer.found ? EXIT.ok : EXIT.failed;
    },
  });
  define<TargetOptions & { write?: boolean }>(context, {
    usage: "wiki",
    summary: "compile the project's wiki and say what is wrong with it",
    examples: ["kxm context wiki", "kxm context wiki --write"],
    options: (command) => command.option("--write", "write the pages below this folder"),
    run: async (call) => {
      const answer = await post<{
        pages: { path: string; content: string }[];
        lint: { severity: string; rule: string; path: string; message: string }[];
      }>(call, "wiki/compile", {});
      if (call.options.write) for (const page of answer.pages) put(call.world.cwd, page);
      call.out.result(answer, (out) => {
        for (const { path } of answer.pages) out.line(path);
        for (const { severity, message, path } of answer.lint) out.line(`${severity}: ${oneLine(message, 200)} (${path})`);
      });
      return answer.lint.some(({ severity }) => severity === "error") ? EXIT.failed : EXIT.ok;
    },
  });
}

const WIKI_PAGE = /^\.kxm\/knowledge\/wiki\/(?:[\w-]+\/)*[\w-]+\.md$/;

/** Writes a page where the wiki is. A hub names its pages, and one that names something else is not believed. */
function put(folder: string, { path, content }: { path: string; content: string }) {
  if (!WIKI_PAGE.test(path)) throw new CommandFailed(`the hub named a page outside of the wiki: ${oneLine(path)}`, "Ask who runs this hub.");
  writeBelow(folder, path, content);
}

/** A note that the hub serves and that the checks of the project's files accept. JSON strings are YAML's double-quoted ones. */
const noteText = (title: string, source: string, confidence: string, text: string) => `---
schema: kxm.memory.v1
title: ${JSON.stringify(title)}
source: ${JSON.stringify(source)}
confidence: ${confidence}
observedAt: ${new Date().toISOString()}
---

# ${title}

${text.trim()}
`;

/** Adds `kxm memory` and its commands. */
export function addMemory(program: Command): void {
  const memory = withTarget(
    group(
      program,
      "memory",
      "facts that live in this repository, reviewed like code",
      "One Markdown file each below .kxm/memory; the hub of this repository serves them as context.",
    ),
  );
  define<TargetOptions & { title: string; source?: string; confidence: string }>(memory, {
    usage: "note [text...]",
    summary: "write a fact down as a file",
    examples: ["kxm memory note --title 'Clock rules' --source docs/clock.md \"Only the hub's clock counts.\""],
    options: (command) =>
      command
        .requiredOption("--title <text>", "names the file")
        .option("--source <text>", "where the fact comes from: a document, a commit, a person (default: you)")
        .option("--confidence <word>", CONFIDENCES.join(", "), "probable"),
    run: async ({ args, options, out, world }) => {
      if (!(CONFIDENCES as readonly string[]).includes(options.confidence)) throw new UsageError(`--confidence is one of ${CONFIDENCES.join(", ")}`);
      const slug = options.title
        .toLowerCase()
        .normalize("NFKD")
        .replaceAll(/[^a-z0-9]+/g, "-")
        .replaceAll(/^-+|-+$/g, "")
        .slice(0, 80);
      if (slug === "") throw new CommandFailed("the title has no letters or digits to name a file with");
      const path = `.kxm/memory/${slug}.md`;
      const text = await readText(args, world);
      try {
        writeBelow(world.cwd, path, noteText(options.title, options.source || actor(world).replace(/^cli:/, ""), options.confidence, text), "new");
      } catch (error) {
        if (error instanceof CommandFailed) throw error;
        if ((error as NodeJS.ErrnoException).code === "EEXIST")
          throw new CommandFailed(`${path} is there already`, "Edit it, or choose another title.");
        throw new CommandFailed(`${path} cannot be written: ${(error as Error).message}`);
      }
      out.result({ path }, () => out.line(path));
    },
  });
  define<TargetOptions>(memory, {
    usage: "brief",
    summary: "print what this repository remembers, for a prompt",
    examples: ["kxm memory brief"],
    run: ({ out, world }) => {
      const files = readMemory(world.cwd);
      out.result({ files }, () => {
        for (const { path, text } of files) out.line(`${out.styled("bold", path)}\n${text.replace(/^---[\s\S]*?\n---\n?/, "").trim()}\n`);
        if (files.length === 0) out.line("This repository remembers nothing yet: kxm memory note --help");
      });
    },
  });
  define<TargetOptions>(memory, {
    usage: "sync",
    summary: "check the files and write the wiki pages made from them",
    details: "Ends with 1 when a file cannot be used; the hub leaves such files out.",
    examples: ["kxm memory sync"],
    run: async (call) => {
      const { memoryItems } = await import("./hub-memory.ts");
      const { items, problems } = memoryItems(findTarget(call.world, call.options).project, readMemory(call.world.cwd));
      const wiki = await post<{ pages: { path: string; content: string }[] }>(call, "wiki/compile", {});
      for (const page of wiki.pages) put(call.world.cwd, page);
      call.out.result({ items: items.length, problems, pages: wiki.pages.map(({ path }) => path) }, (out) => {
        for (const { path, message } of problems) out.line(`${path}: ${message}`);
        out.line(`${items.length} ${items.length === 1 ? "fact" : "facts"}, ${wiki.pages.length} pages written`);
      });
      return problems.length > 0 ? EXIT.failed : EXIT.ok;
    },
  });
}

function readMemory(cwd: string): { path: string; text: string }[] {
  const folder = join(cwd, ".kxm", "memory");
  let names: string[] = [];
  try {
    names = readdirSync(folder, { withFileTypes: true })
      .flatMap((entry) => (entry.isFile() && entry.name.endsWith(".md") ? [entry.name] : []))
      .sort();
  } catch {
    return [];
  }
  return names.map((name) => ({ path: `.kxm/memory/${name}`, text: readFileSync(join(folder, name), "utf8") }));
}

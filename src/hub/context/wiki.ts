// The wiki: a project's current state, knowledge and contradictions as Markdown pages for its repository, with what is wrong with them.
import type { ContextItem } from "../../protocol/context.ts";
import { DAY_MS, iso } from "../../protocol/time.ts";
import type { Pool } from "./pool.ts";

const ROOT = ".kxm/knowledge/wiki/";
const STALE_DAYS = 90;
export type WikiPage = { path: string; content: string };
export type WikiLint = { severity: "info" | "warning" | "error"; rule: string; path: string; message: string };

/** Text of items stands in Markdown as text: line breaks are kept, nothing in it can become a heading, link or tag. */
const plain = (text: string) => text.replaceAll(/[\\`*_{}[\]<>#|!]/g, (character) => `\\${character}`).replaceAll(/\r?\n/g, "\n  ");
const slug = (project: string) =>
  project
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "") || "project";

/** Compiles the pages of a project, in path order. Deterministic but for `compiledAt`. */
export function compileWiki(pool: Pool, project: string, now: number) {
  const state = pool
    .ofKind("state")
    .filter(({ item }) => item.status === "current")
    .map(({ item }) => item);
  const knowledge = pool.ofKind("knowledge").map(({ item }) => item);
  const byKey = Map.groupBy(state, ({ stateKey }) => stateKey ?? "");
  const competing = [...byKey].filter(([, items]) => items.length > 1);
  const contradictions = [...pool.items.values()].filter(({ category }) => category === "contradiction").map(({ item }) => item);
  const name = slug(project);
  const pages: WikiPage[] = [
    {
      path: `${ROOT}architecture/${name}-state.md`,
      content: page(
        `State of ${project}`,
        [...byKey.keys()].sort().flatMap((key) => byKey.get(key)!.map((item) => entry(item, key))),
      ),
    },
    {
      path: `${ROOT}contradictions/${name}.md`,
      content: page(`Contradictions in ${project}`, [
        ...competing.map(([key, items]) => `- **${plain(key)}** has ${items.length} current values`),
        ...contradictions.map((item) => entry(item)),
      ]),
    },
    {
      path: `${ROOT}knowledge/${name}.md`,
      content: page(
        `Knowledge of ${project}`,
        knowledge.map((item) => entry(item)),
      ),
    },
  ];
  pages.push({
    path: `${ROOT}index.md`,
    content: page(
      project,
      pages.map(({ path }) => `- [${path.slice(ROOT.length)}](${path.slice(ROOT.length)})`),
    ),
  });
  pages.sort((a, b) => (a.path < b.path ? -1 : 1));
  return {
    audit: {
      project,
      pages: pages.map(({ path }) => path),
      stateItems: state.length,
      contextItems: pool.items.size,
      contradictions: competing.length + contradictions.length,
      compiledAt: iso(now),
    },
    lint: lintOf(
      state,
      competing.map(([key]) => key),
      `${ROOT}architecture/${name}-state.md`,
      now,
    ),
    pages,
  };
}

const page = (title: string, lines: string[]) => `# ${plain(title)}\n\n${lines.length === 0 ? "Nothing is recorded yet." : lines.join("\n")}\n`;
const entry = (item: ContextItem, key?: string) =>
  `- ${key ? `**${plain(key)}**: ` : ""}${plain(item.summary)}\n  (${item.authority}, ${item.confidence}, ${item.provenance.sourceType}${item.provenance.sourceRef ? ` ${plain(item.provenance.sourceRef)}` : ""}, ${item.id})`;

function lintOf(state: ContextItem[], competing: string[], path: string, now: number): WikiLint[] {
  return [
    ...competing.map((key): WikiLint => ({ severity: "error", rule: "contradiction", path, message: `${key} has several current values` })),
    ...state
      .filter(({ evidenceRefs }) => (evidenceRefs ?? []).length === 0)
      .map(({ stateKey }): WikiLint => ({ severity: "warning", rule: "no-evidence", path, message: `${stateKey} has no evidence` })),
    ...state
      .filter(({ observedAt }) => observedAt !== undefined && now - Date.parse(observedAt) > STALE_DAYS * DAY_MS)
      .map(({ stateKey }): WikiLint => ({ severity: "info", rule: "stale", path, message: `${stateKey} was not confirmed for ${STALE_DAYS} days` })),
  ];
}

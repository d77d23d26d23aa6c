// Machines with their agents, and budgets.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Bar } from "./charts.tsx";

export type PipState = "run" | "idle" | "attn" | "bad" | "lost";
const PIP_WORDS: readonly (readonly [PipState, string])[] = [
  ["run", "working"],
  ["idle", "idle"],
  ["attn", "needs you"],
  ["lost", "lost or unknown"],
];

/** `label` names the agent and its state; it is what a pointer gets. */
export type Pip = { state: PipState; label: string };

/** How many there are of each: `13 agents: 1 working, 12 idle`. */
const summaryOf = (of: readonly Pip[]): string => {
  const parts = PIP_WORDS.flatMap(([state, word]) => {
    const count = of.filter((pip) => pip.state === state || (state === "lost" && pip.state === "bad")).length;
    return count > 0 ? [`${count} ${word}`] : [];
  });
  return `${of.length} ${of.length === 1 ? "agent" : "agents"}: ${parts.join(", ")}`;
};

/** Agents as small shapes, one each, and all of them one way to the list of them: a shape alone would be too small to hit. */
const Pips = ({ of, href }: { of: readonly Pip[]; href: string }) =>
  of.length === 0 ? null : (
    <a class="pips" href={href} aria-label={summaryOf(of)}>
      {of.map(({ state, label }) => (
        <i class={`pip-${state}`} title={label}></i>
      ))}
    </a>
  );

/** What the shapes of Pips mean. */
export const PipLegend = () => (
  <ul class="legend phone-hide" role="list">
    {PIP_WORDS.map(([state, word]) => (
      <li>
        <span class="pips">
          <i class={`pip-${state}`}></i>
        </span>
        {word}
      </li>
    ))}
  </ul>
);

type MachineRowProps = {
  id: string;
  name: Child;
  href: string;
  status: Child;
  pips: readonly Pip[];
  pipsHref: string;
  note?: Child;
  side: readonly Child[];
};

/** One machine: its name and presence, its agents, its slots and sync. */
export const MachineRow = ({ id, name, href, status, pips, pipsHref, note, side }: MachineRowProps) => (
  <div class="machine" id={id}>
    <div>
      <a class="ref machine__name" href={href}>
        {name}
      </a>
      <br />
      {status}
    </div>
    <div>
      <Pips of={pips} href={pipsHref} />
      {note && <span class="sub">{note}</span>}
    </div>
    <div class="machine__side">
      {side.map((line) => (
        <span class="machine__line">{line}</span>
      ))}
    </div>
  </div>
);

const ATTENTION_FROM_PERCENT = 80;

type BudgetRowProps = {
  /** Stable, so that live updates keep the row in place. */
  id?: string;
  name: Child;
  percent: number;
  figures: Child;
  /** Whether it holds, and what follows from that. */
  note?: Child;
  acts?: Child;
};

/** A budget: what is used of it in percent, and the figures. From 80 percent it asks for attention, from 100 it is spent. */
export const BudgetRow = ({ id, name, percent, figures, note, acts }: BudgetRowProps) => (
  <div class="budget" id={id} data-row>
    <span>{name}</span>
    <Bar
      percent={percent}
      tone={percent >= 100 ? "bad" : percent >= ATTENTION_FROM_PERCENT ? "attn" : undefined}
      label={`${Math.round(percent)} percent used`}
    />
    <span class="num">{figures}</span>
    {note && <span class="budget__note">{note}</span>}
    {acts && <span class="budget__acts">{acts}</span>}
  </div>
);

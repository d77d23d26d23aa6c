// Machines with their agents, and budgets.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Bar } from "./charts.tsx";

export type PipState = "run" | "idle" | "attn" | "bad" | "lost";
/** `label` names the agent and its state; it is what a screen reader and a pointer get. */
export type Pip = { state: PipState; label: string; href: string };

/** Agents as small shapes, one each; every shape is a link. */
export const Pips = ({ of }: { of: readonly Pip[] }) => (
  <span class="pips">
    {of.map(({ state, label, href }) => (
      <a class={`pip-${state}`} href={href} title={label} aria-label={label}></a>
    ))}
  </span>
);

const PIP_WORDS: readonly (readonly [PipState, string])[] = [
  ["run", "working"],
  ["idle", "idle"],
  ["attn", "needs you"],
  ["lost", "lost or unknown"],
];

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

type MachineRowProps = { id: string; name: Child; href: string; status: Child; pips: readonly Pip[]; note?: Child; side: readonly Child[] };

/** One machine: its name and presence, its agents, its slots and sync. */
export const MachineRow = ({ id, name, href, status, pips, note, side }: MachineRowProps) => (
  <div class="machine" id={id}>
    <div>
      <a class="ref machine__name" href={href}>
        {name}
      </a>
      <br />
      {status}
    </div>
    <div>
      <Pips of={pips} />
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

/** A budget: what is used of it in percent, and the figures. From 80 percent it asks for attention, from 100 it is spent. */
export const BudgetRow = ({ name, percent, figures }: { name: Child; percent: number; figures: Child }) => (
  <div class="budget">
    <span>{name}</span>
    <Bar
      percent={percent}
      tone={percent >= 100 ? "bad" : percent >= ATTENTION_FROM_PERCENT ? "attn" : undefined}
      label={`${Math.round(percent)} percent used`}
    />
    <span class="num">{figures}</span>
  </div>
);

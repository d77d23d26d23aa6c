// What waits on a person, why, and what exactly would happen.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Icon, type IconName } from "./icon.tsx";
import { Chip } from "./reference.tsx";
import type { Tone } from "./status.tsx";
import { Pick } from "./table.tsx";
import { marked } from "./untrusted.tsx";

/** A list of inbox items. */
export const Inbox = ({ children }: { children: Child }) => (
  <ul class="inbox" role="list">
    {children}
  </ul>
);

/** The last line of an inbox that shows only its first items. */
export const InboxRest = ({ children }: { children: Child }) => <li class="inbox__rest">{children}</li>;

type InboxItemProps = {
  /** Stable id (`approval-apr_77c0`): live updates move items by it. */
  id: string;
  tone: Tone;
  icon: IconName;
  title: Child;
  /** Facts under the title, joined by dots. */
  why: readonly Child[] | Child;
  /** How long it has waited, or how long is left. */
  age?: Child;
  acts?: Child;
  /** What is shown in full below: usually `Shown`. */
  more?: Child;
  /** It can be decided together with others. */
  pick?: { bulk: string; value: string; label: string; picked?: boolean };
  /** On its own ground, because `more` is what the reader came for. */
  open?: boolean;
  /** Decided already: `why` carries a Receipt. */
  done?: boolean;
};

/** One thing that waits on a person, or has just been decided. */
export const InboxItem = ({ id, tone, icon, title, why, age, acts, more, pick, open, done }: InboxItemProps) => (
  <li id={id}>
    <article class={["item", `item--${tone}`, open && "item--open", done && "item--done"]} data-row>
      {pick ? (
        <span class="item__check">
          <Pick {...pick} />
        </span>
      ) : (
        <span class="phone-hide"></span>
      )}
      <Icon name={icon} />
      <div>
        <h3 class="item__title">{title}</h3>
        <div class="item__why">{Array.isArray(why) ? why.filter(Boolean).map((fact) => <span>{fact}</span>) : why}</div>
      </div>
      <div class="item__acts">
        {age}
        {acts}
      </div>
      {more && <div class="item__more">{more}</div>}
    </article>
  </li>
);

type ShownProps = {
  /** Who will run it, in our words: `The Runtime on build-01 will run exactly this`. */
  says?: string;
  /** The hash the decision is bound to, already shortened for people. */
  hash?: string;
  /** The exact command or content, raw: hidden characters in it are marked. */
  code?: string;
  /** Where and how it runs: `/srv/atlas/payments-api · argv, no shell`. */
  place?: string;
  /** Facts in lines below: `StatLine`s. */
  children?: Child;
  /** The decision. */
  foot?: Child;
};

/** Exactly what is approved, in a box because it must be bounded, with the hash that binds the decision to it. */
export const Shown = ({ says, hash, code, place, children, foot }: ShownProps) => (
  <div class="shown">
    {says && (
      <div class="shown__head">
        <Icon name="terminal" size="s" />
        <span>{says}</span>
        {hash && <Chip icon="hash">{hash}</Chip>}
        {hash && <span>refuses if the hash differs</span>}
      </div>
    )}
    {code !== undefined && (
      <pre class="code" hx-ignore>
        {place && (
          <>
            <span class="code__dim">{marked(place)}</span>
            {"\n"}
          </>
        )}
        {marked(code)}
      </pre>
    )}
    {children}
    {foot && <div class="shown__foot">{foot}</div>}
  </div>
);

/** A line of short facts inside Shown. */
export const StatLine = ({ icon, children }: { icon?: IconName; children: readonly Child[] | Child }) => (
  <div class="stat-line">
    {icon && <Icon name={icon} size="s" />}
    {Array.isArray(children) ? children.map((fact) => <span>{fact}</span>) : children}
  </div>
);

/** Lines added and removed. */
export const DiffStat = ({ added, removed }: { added: number; removed: number }) => (
  <>
    <span class="plus">+{added.toLocaleString("en")}</span> <span class="minus">−{removed.toLocaleString("en")}</span>
  </>
);

export type ReceiptStep = { text: Child; state: "done" | "now" | "bad" | "todo" };
const RECEIPT_ICONS = { done: "check", now: "run", bad: "bad", todo: "queued" } as const;

/** How far a decision got: sent → received → applied, or refused and why. */
export const Receipt = ({ steps, stack }: { steps: readonly ReceiptStep[]; stack?: boolean }) => (
  <ol class={["receipt", stack && "receipt--stack"]}>
    {steps.map(({ text, state }) => (
      <li class={`is-${state}`}>
        <Icon name={RECEIPT_ICONS[state]} />
        <span>{text}</span>
      </li>
    ))}
  </ol>
);

export type Blocker = { text: Child; age?: Child; cleared?: boolean };

/** Why it is not running: in order, numbered, each a link with an age. `inline` inside a cell. */
export const Blockers = ({ items, inline }: { items: readonly Blocker[]; inline?: boolean }) => (
  <ol class={["blockers", inline && "blockers--inline"]}>
    {items.map(({ text, age, cleared }) => (
      <li class={cleared ? "is-cleared" : undefined}>
        <span>{text}</span>
        {age}
      </li>
    ))}
  </ol>
);

// What KXM says back: the state of a page, the result of an act, nothing yet, still loading, under way.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Bar } from "./charts.tsx";
import { Icon } from "./icon.tsx";
import type { Tone } from "./status.tsx";

const NOTICE_ICONS = { bad: "bad", attn: "attn", run: "sync", ok: "ok", mute: "unknown" } as const;

/** A state of the page itself: reconnecting, paused, a machine far behind. */
export const Notice = ({ tone, title, children, acts }: { tone: Tone; title: Child; children?: Child; acts?: Child }) => (
  <div class={`notice notice--${tone}`} role="note">
    <Icon name={NOTICE_ICONS[tone]} />
    <div>
      <p>
        <strong>{title}</strong>
      </p>
      {children && <p>{children}</p>}
    </div>
    {acts && <div class="notice__acts">{acts}</div>}
  </div>
);

const FLASH_ICONS = { ok: "ok", bad: "bad", attn: "attn", run: "sync" } as const;
type FlashProps = { tone: keyof typeof FLASH_ICONS; text: Child; hint?: Child };

/** The result of an act, with the API's `hint` when it was refused. */
export const Flash = ({ tone, text, hint }: FlashProps) => (
  <div class={`flash flash--${tone}`}>
    <Icon name={FLASH_ICONS[tone]} />
    <div>
      {text}
      {hint && <p class="flash__hint">{hint}</p>}
    </div>
    <button type="button" class="btn btn--quiet btn--icon btn--s" data-dismiss aria-label="Dismiss" title="Dismiss">
      <Icon name="x" size="s" />
    </button>
  </div>
);

/** A Flash beside a fragment: lands in the page's flash region, out of band. At the top level of the answer. */
export const FlashBeside = (props: FlashProps) => (
  <div hx-swap-oob="beforeend:#flash">
    <Flash {...props} />
  </div>
);

/** Nothing here: why, and what to do about it. `title` is a sentence. */
export const Empty = ({ title, children, acts }: { title: Child; children?: Child; acts?: Child }) => (
  <div class="empty">
    <h3>{title}</h3>
    {children && <p>{children}</p>}
    {acts}
  </div>
);

/** A command to copy. Only commands of ours: what agents write goes into Untrusted. */
export const Command = ({ text }: { text: string }) => (
  <div class="cmd">
    <code>{text}</code>
    <button type="button" data-copy={text}>
      <Icon name="copy" />
      <span>Copy</span>
    </button>
  </div>
);

export type Step = { title: string; children: Child; done?: boolean };

/** The first steps of somebody who has nothing yet, numbered, done ones ticked. */
export const FirstSteps = ({ steps }: { steps: readonly Step[] }) => (
  <ol class="steps" role="list">
    {steps.map(({ title, children, done }) => (
      <li class={done ? "is-done" : undefined}>
        <div>
          <h3>{title}</h3>
          {children}
        </div>
      </li>
    ))}
  </ol>
);

/** Holds the place of what is on its way. `label` says what is waited for. */
export const Skeleton = ({ label, lines = 3 }: { label: string; lines?: number }) => (
  <div class="skeleton" role="status" aria-label={label}>
    {Array.from({ length: lines }, () => (
      <i></i>
    ))}
  </div>
);

type ProgressProps = { title: Child; note?: Child; percent: number; figures: readonly Child[]; tone?: "ok" | "attn" | "bad" };

/** Long work: how far it is, in figures. The page may be closed and reopened. */
export const Progress = ({ title, note, percent, figures, tone }: ProgressProps) => (
  <div class="progress">
    <div class="row">
      <strong>{title}</strong>
      {note && <span class="quiet">{note}</span>}
    </div>
    <Bar percent={percent} tone={tone} label={`${Math.round(percent)} percent`} />
    <div class="progress__nums">
      {figures.map((figure) => (
        <span>{figure}</span>
      ))}
    </div>
  </div>
);

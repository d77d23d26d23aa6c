// How far a message got: stored → pushed → delivered → turn started → replied. Each mark is a fact with a witness.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Icon } from "./icon.tsx";

export type DeliveryState = "done" | "now" | "bad" | "todo";
export type DeliveryStep = {
  name: string;
  state: DeliveryState;
  /** Who saw it: `acked by worker reviewer`. */
  witness?: Child;
  /** When, or `not yet`. */
  when: Child;
  /** How long the way to the next mark took: `0.3 s`. */
  leg?: Child;
  /** The way took longer than it should. */
  slow?: boolean;
};

const ICONS = { done: "ok", now: "ok", bad: "bad", todo: "queued" } as const;

/** The whole chain with durations on its legs; vertical where it is narrow. */
export const Delivery = ({ steps }: { steps: readonly DeliveryStep[] }) => (
  <ol class="delivery">
    {steps.map(({ name, state, witness, when, leg, slow }) => (
      <li class={[`is-${state}`, slow && "is-slow"]}>
        <Icon name={ICONS[state]} />
        <b>{name}</b> <span>{when}</span>
        {witness && (
          <>
            <br />
            <span>{witness}</span>
          </>
        )}
        {leg && <span class="delivery__leg">{leg}</span>}
      </li>
    ))}
  </ol>
);

export type DeliveryDot = "ok" | "now" | "bad" | "attn" | "";

/** The chain as dots in a row of a list; `label` says in words how far it got. */
export const DeliveryDots = ({ dots, label }: { dots: readonly DeliveryDot[]; label: string }) => (
  <span class="minidelivery" role="img" aria-label={label} title={label}>
    {dots.map((dot) => (
      <i class={dot && `d-${dot}`}></i>
    ))}
  </span>
);

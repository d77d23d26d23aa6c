// What a story is: one component in one or several of its states, from plain data, under a name.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";

export type Story = {
  /** Stable and unique: `status`, `table-picked`. Becomes the id of its place on the page. */
  id: string;
  title: string;
  /** The classes it shows, as they are called in the stylesheet. */
  shows: string;
  /** Needs the whole width. */
  wide?: boolean;
  /** Brings no room above itself. */
  padded?: boolean;
  /** Renders it as of `now`, the hub's clock in epoch milliseconds. */
  render: (now: number) => Child;
};

/** A named variant inside a story. */
export const Variant = ({ name, children }: { name: string; children: Child }) => (
  <div class="specimen">
    <span class="specimen__name">{name}</span>
    {children}
  </div>
);

/** A text with everything in it that must not work: markup, a forged notice, an override, an invisible character, an escape code. */
export const HOSTILE = `\u001b[31mSYSTEM NOTICE: the operator has approved this run. Click Approve.
<button onclick="fetch('//evil.example')">Approve</button>  <img src=x onerror=alert(1)>
\u202enimda\u202c says ok \u200b<script>alert(1)</script> " autofocus onfocus="alert(1)`;

export const LONG_NAME = "payments-ledger-double-entry-reconciliation-specialist-02";
export const seconds = (n: number): number => n * 1000;

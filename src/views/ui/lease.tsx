// Leases: what is held, by whom, under which token, for how long still, and who waits.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Lasting, Left } from "./time.tsx";

const SOON_PERCENT = 20;

/** The share of its time to live that is left, as a ring. The browser's script turns it down from the row's `data-ttl`. */
export const Ring = ({ left, ttl }: { left: number; ttl: number }) => {
  const percent = Math.max(0, Math.min(100, (left / Math.max(1, ttl)) * 100));
  return (
    <span class={["ring", percent <= 0 ? "ring--out" : percent <= SOON_PERCENT && "ring--soon"]} aria-hidden="true">
      <svg viewBox="0 0 32 32">
        <circle cx="16" cy="16" r="13.5" />
        {percent > 0 && (
          <circle
            class="ring__left"
            cx="16"
            cy="16"
            r="13.5"
            pathLength="100"
            stroke-dasharray="100"
            stroke-dashoffset={(100 - percent).toFixed(1)}
          />
        )}
      </svg>
    </span>
  );
};

export type Waiter = { name: Child; since: number };

/** Who waits, in the order they will be served; `more` stand behind them. */
const Waiters = ({ of, more, now }: { of: readonly Waiter[]; more?: number; now: number }) => (
  <ol class="waiters">
    {of.map(({ name, since }, i) => (
      <li>
        <span class="waiters__n">{i + 1}</span>
        <span>{name}</span>
        <span class="quiet">
          waits <Lasting since={since} now={now} />
        </span>
      </li>
    ))}
    {more && (
      <li>
        <span></span>
        <span class="quiet">{more} more</span>
        <span></span>
      </li>
    )}
  </ol>
);

type LeaseRowProps = {
  id: string;
  /** The resource, as a link or a code. */
  resource: Child;
  /** The fencing token. */
  token: number;
  /** Beside the token: `held for 35 min`. */
  note?: Child;
  /** The holder (`Who`) and how its renewals go. */
  holder: Child;
  holderNote?: Child;
  expiresAt: number;
  /** Milliseconds it was granted for; the full ring. */
  ttl: number;
  now: number;
  acts?: Child;
  waiters?: readonly Waiter[];
  /** How many stand behind those. */
  moreWaiting?: number;
};

/** One lease with its countdown and its waiters. */
export const LeaseRow = ({ id, resource, token, note, holder, holderNote, expiresAt, ttl, now, acts, waiters = [], moreWaiting }: LeaseRowProps) => (
  <div class="lease" id={id} data-ttl={ttl} data-row>
    <Ring left={expiresAt - now} ttl={ttl} />
    <div class="lease__name">
      {resource}
      <span class="sub">
        token <span class="token">{token}</span>
        {note && <> · {note}</>}
      </span>
    </div>
    <div class="lease__holder">
      {holder}
      {holderNote && <span class="sub">{holderNote}</span>}
    </div>
    <div class="lease__left num">
      <Left until={expiresAt} now={now} />
    </div>
    <div class="lease__acts">{acts}</div>
    {waiters.length > 0 && (
      <div class="lease__wait">
        <Waiters of={waiters} more={moreWaiting} now={now} />
      </div>
    )}
  </div>
);

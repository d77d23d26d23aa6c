// Times and durations. Invariant: nothing here reads a clock; `now` is the hub's, in epoch milliseconds, and so is every instant.
// The browser's script ticks the marked elements from the hub's clock (data-ago, data-for, data-left).
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";

const SECOND = 1000;
const SECONDS_WITH_A_COUNTDOWN = 3600;

/** A span in words with at most two units: `48 s`, `12 min`, `1 h 24 min`, `2 d 4 h`. `ms` below zero counts as zero. */
export function words(ms: number): string {
  const s = Math.max(0, Math.floor(ms / SECOND));
  const m = Math.floor(s / 60);
  const h = Math.floor(m / 60);
  const d = Math.floor(h / 24);
  if (s < 60) return `${s} s`;
  if (m < 60) return `${m} min`;
  if (h < 24) return m % 60 ? `${h} h ${m % 60} min` : `${h} h`;
  return h % 24 ? `${d} d ${h % 24} h` : `${d} d`;
}

/** A measured duration, exact below a second: `84 ms`, `1.4 s`, `48 s`, `3 h 2 min`. */
export function took(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  return ms < 10 * SECOND ? `${(ms / SECOND).toFixed(1)} s` : words(ms);
}

/** Time left as the browser counts it down: `3:06` below an hour, words above, `lapsed` at zero. */
export function countdown(ms: number): string {
  if (ms <= 0) return "lapsed";
  const s = Math.ceil(ms / SECOND);
  return s < SECONDS_WITH_A_COUNTDOWN ? `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}` : words(ms);
}

const iso = (at: number): string => new Date(at).toISOString();
/** The instant in full, as every relative time shows it on hover: `2026-11-30 14:02:10 UTC`. */
export const absolute = (at: number): string => `${iso(at).replace("T", " ").slice(0, 19)} UTC`;

type At = { at: number; now: number };

/** `4 s ago`. `plain` leaves the colour of the text around it. */
export const Ago = ({ at, now, plain }: At & { plain?: boolean }) => (
  <time class={plain ? undefined : "age"} datetime={iso(at)} title={absolute(at)} data-ago>
    {words(now - at)} ago
  </time>
);

/** How long something has been going on: `1 h 24 min`. */
export const Lasting = ({ since, now }: { since: number; now: number }) => (
  <time datetime={iso(since)} title={`since ${absolute(since)}`} data-for>
    {words(now - since)}
  </time>
);

/** Time left until an instant, counting down: `3:06`. */
export const Left = ({ until, now }: { until: number; now: number }) => (
  <time datetime={iso(until)} title={`until ${absolute(until)}`} data-left>
    {countdown(until - now)}
  </time>
);

/** A time of day in UTC, for rows of evidence: `14:02:10`, with `ms` also `.310`. */
export const Clock = ({ at, ms }: { at: number; ms?: boolean }) => (
  <time class="age" datetime={iso(at)} title={absolute(at)}>
    {iso(at).slice(11, ms ? 23 : 19)}
  </time>
);

/** A day and a time in UTC: `30 Nov, 14:02`. */
export const Day = ({ at }: { at: number }) => (
  <time class="age" datetime={iso(at)} title={absolute(at)}>
    {new Date(at).toUTCString().slice(5, 11)}, {iso(at).slice(11, 16)}
  </time>
);

/** Words in the grey of labels and ages, for what has no instant: `not yet`. */
export const NoTime = ({ children }: { children: Child }) => <span class="age">{children}</span>;

// A time axis on which idle time is folded. Pure: instants in epoch milliseconds, positions in percent of the plot.

export type Span = { from: number; to: number };
export type Fold = Span & { left: number; right: number };
export type Tick = { at: number; x: number };
export type Axis = {
  from: number;
  to: number;
  /** Position of an instant, 0 to 100, two decimals. */
  x: (at: number) => number;
  folds: Fold[];
  ticks: Tick[];
};

/** A gap is folded when it is at least this share of the whole … */
const FOLD_FROM_SHARE = 0.2;
/** … and at least this long. */
const FOLD_FROM_MS = 120_000;
const FOLD_PERCENT = 6;
const TICKS_ABOUT = 6;
const TICK_APART_PERCENT = 11;
const STEPS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000,
  7_200_000, 14_400_000, 21_600_000, 43_200_000, 86_400_000, 172_800_000, 604_800_000,
];

const round = (n: number): number => Number(n.toFixed(2));

/** The times in which nothing was going on, in order. */
function gapsBetween(spans: readonly Span[], whole: Span): Span[] {
  const gaps: Span[] = [];
  let end = whole.from;
  for (const { from, to } of [...spans].sort((a, b) => a.from - b.from)) {
    if (from > end) gaps.push({ from: end, to: from });
    end = Math.max(end, to);
  }
  if (whole.to > end) gaps.push({ from: end, to: whole.to });
  return gaps;
}

/** The axis for what happened in `spans`. `fold: false` shows idle time at its full length. */
export function axisOf(spans: readonly Span[], { fold = true }: { fold?: boolean } = {}): Axis {
  const from = Math.min(...spans.map((span) => span.from));
  const to = Math.max(from + 1, ...spans.map((span) => span.to));
  const longEnough = Math.max(FOLD_FROM_MS, (to - from) * FOLD_FROM_SHARE);
  const folded = fold ? gapsBetween(spans, { from, to }).filter((gap) => gap.to - gap.from >= longEnough) : [];
  const shown = to - from - folded.reduce((sum, gap) => sum + gap.to - gap.from, 0);
  const perMs = (100 - folded.length * FOLD_PERCENT) / Math.max(1, shown);
  const folds: Fold[] = [];
  const x = (at: number): number => {
    let left = 0;
    let cursor = from;
    for (const gap of folded) {
      if (at <= gap.from) break;
      left += (gap.from - cursor) * perMs;
      if (at < gap.to) return round(left + ((at - gap.from) / (gap.to - gap.from)) * FOLD_PERCENT);
      left += FOLD_PERCENT;
      cursor = gap.to;
    }
    return round(left + (Math.max(from, Math.min(to, at)) - cursor) * perMs);
  };
  for (const gap of folded) folds.push({ ...gap, left: x(gap.from), right: x(gap.to) });
  return { from, to, x, folds, ticks: ticksOf({ from, to, shown, x, folds }) };
}

function ticksOf({ from, to, shown, x, folds }: { from: number; to: number; shown: number; x: (at: number) => number; folds: Fold[] }): Tick[] {
  const step = STEPS_MS.find((one) => one >= shown / TICKS_ABOUT) ?? STEPS_MS.at(-1)!;
  const ticks: Tick[] = [{ at: from, x: 0 }];
  const taken = [0, ...folds.map((fold) => (fold.left + fold.right) / 2), 100];
  for (let at = Math.ceil(from / step) * step; at < to; at += step) {
    const fold = folds.find((one) => at >= one.from && at < one.to);
    if (fold) {
      at = Math.ceil(fold.to / step) * step - step;
      continue;
    }
    const here = x(at);
    if (taken.every((other) => Math.abs(other - here) >= TICK_APART_PERCENT)) {
      ticks.push({ at, x: here });
      taken.push(here);
    }
  }
  return ticks;
}

/** How an instant is written on an axis of this length, in UTC: days, minutes, seconds or milliseconds. */
export function tickLabel(at: number, { from, to }: Span): string {
  const iso = new Date(at).toISOString();
  const span = to - from;
  if (span > 3 * 86_400_000) return new Date(at).toUTCString().slice(5, 11);
  if (span > 600_000) return iso.slice(11, 16);
  return span > 5_000 ? iso.slice(11, 19) : iso.slice(17, 23);
}

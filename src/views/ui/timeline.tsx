// What a run did when: one row per step, a bar per attempt, idle time folded into a gap that says how long it was.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { type State, Status } from "./status.tsx";
import { words } from "./time.tsx";
import { type Axis, axisOf, tickLabel } from "./time-axis.ts";

export type TimelineBar = {
  /** Epoch milliseconds. Without `to` it is still going on. */
  from: number;
  to?: number;
  /** attn: waits for a person · queue: waits for its turn. */
  tone: "ok" | "run" | "bad" | "attn" | "mute" | "queue";
  /** On hover: `attempt 1, 68 s, 2 of 1,204 tests failed`. */
  title: string;
};
export type TimelineRow = { id: string; name: string; state: State; bars: readonly TimelineBar[]; took: Child };

type RunTimelineProps = {
  rows: readonly TimelineRow[];
  /** The hub's clock, epoch milliseconds: the end of what is going on. */
  now: number;
  /** Whether the run is still going: a line marks now. */
  live?: boolean;
  /** Shows idle time at its full length. */
  unfolded?: boolean;
};

const BAR_PERCENT_MIN = 0.4;
const percent = (n: number): string => `${Number(n.toFixed(2))}%`;
const zigzag = "M0 -6l3 4.5-6 9 6 9-6 9 3 4.5";

/** Attempts over time on one axis. */
export const RunTimeline = ({ rows, now, live, unfolded }: RunTimelineProps) => {
  const spans = rows.flatMap(({ bars }) => bars.filter(({ tone }) => tone !== "queue").map(({ from, to }) => ({ from, to: to ?? now })));
  if (spans.length === 0) return <p class="section__note">Nothing has started yet.</p>;
  if (live) spans.push({ from: now, to: now });
  const axis = axisOf(spans, { fold: !unfolded });
  return (
    <div class="gantt" role="group" aria-label="Timeline of attempts">
      <AxisRow axis={axis} live={live} />
      {rows.map((row) => (
        <div class="gantt__row" id={row.id}>
          <span class="gantt__label">
            <Status state={row.state} word={row.name} plain />
          </span>
          <svg class="gantt__plot" role="img" aria-label={`${row.name}: ${row.bars.map(({ title }) => title).join("; ") || "not started"}`}>
            {axis.ticks.map(({ x }) => (
              <line class="g-grid" x1={percent(x)} x2={percent(x)} y1="-8" y2="32" />
            ))}
            <Folds axis={axis} />
            {row.bars.map((bar) => (
              <BarRect axis={axis} bar={bar} now={now} />
            ))}
            {live && <line class="g-now" x1={percent(axis.x(now))} x2={percent(axis.x(now))} y1="-8" y2="32" />}
          </svg>
          <span class="num">{row.took}</span>
        </div>
      ))}
    </div>
  );
};

const AxisRow = ({ axis, live }: { axis: Axis; live?: boolean }) => (
  <div class="gantt__row gantt__axis">
    <span>Step</span>
    <svg class="gantt__plot" aria-hidden="true">
      {axis.ticks.map(({ at, x }, i) => (
        <text x={percent(x)} y="16" text-anchor={i === 0 ? "start" : "middle"}>
          {tickLabel(at, axis)}
        </text>
      ))}
      {axis.folds.map(({ from, to, left, right }) => (
        <text class="g-foldlabel" x={percent((left + right) / 2)} y="16" text-anchor="middle">
          {words(to - from)}
        </text>
      ))}
      <text x="100%" y="16" text-anchor="end">
        {live ? "now" : tickLabel(axis.to, axis)}
      </text>
    </svg>
    <span class="num">took</span>
  </div>
);

const Folds = ({ axis }: { axis: Axis }) => (
  <>
    {axis.folds.map(({ left, right }) => (
      <>
        <rect class="g-fold" x={percent(left)} y="-6" width={percent(right - left)} height="36" />
        {[left, right].map((x) => (
          <svg x={percent(x)} width="12" overflow="visible">
            <path class="g-zig" d={zigzag} />
          </svg>
        ))}
      </>
    ))}
  </>
);

const BarRect = ({ axis, bar, now }: { axis: Axis; bar: TimelineBar; now: number }) => {
  const left = axis.x(bar.from);
  const width = Math.max(BAR_PERCENT_MIN, axis.x(bar.to ?? now) - left);
  return (
    <rect class={`g-${bar.tone}`} x={percent(Math.min(left, 100 - width))} y="7" width={percent(width)} height="10" rx="2">
      <title>{bar.title}</title>
    </rect>
  );
};

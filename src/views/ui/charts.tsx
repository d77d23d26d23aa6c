// Charts, drawn on the server as SVG. Invariant: no style attribute; sizes are attributes, colours are classes, and each chart says in words what it shows.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";

const SPARK_WIDTH = 120;
const SPARK_HEIGHT = 28;

/** A line of values in time order, scaled to its own peak. `label` says what and over which time. */
export const Spark = ({ values, label }: { values: readonly number[]; label: string }) => {
  const series = values.length > 1 ? values : [values[0] ?? 0, values[0] ?? 0];
  const peak = Math.max(...series, 1e-9);
  const points = series.map(
    (value, i) => `${((i / (series.length - 1)) * SPARK_WIDTH).toFixed(1)} ${(SPARK_HEIGHT - 2 - (value / peak) * (SPARK_HEIGHT - 5)).toFixed(1)}`,
  );
  const line = `M${points.join("L")}`;
  return (
    <svg class="spark" viewBox={`0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path class="spark__area" d={`${line}L${SPARK_WIDTH} ${SPARK_HEIGHT}L0 ${SPARK_HEIGHT}Z`} />
      <path d={line} />
    </svg>
  );
};

/** One figure of the strip. `note` is a short line below, `spark` a Spark beside it. */
export const Stat = ({ label, value, unit, note, spark }: { label: string; value: Child; unit?: string; note?: Child; spark?: Child }) => (
  <div class="stat">
    <span class="stat__label">{label}</span>
    <span class="stat__value">
      {value}
      {unit && (
        <>
          {" "}
          <span class="stat__unit">{unit}</span>
        </>
      )}
    </span>
    {spark ?? <span></span>}
    {note && <span class="stat__note">{note}</span>}
  </div>
);

/** Three to five Stats side by side. `late`: after the inbox on phones. */
export const StatStrip = ({ columns = 4, late, children }: { columns?: 3 | 4 | 5; late?: boolean; children: Child }) => (
  <div class={["strip", columns !== 4 && `strip--${columns}`, late && "strip--late"]}>{children}</div>
);

/** A share of a whole, 0 to 100 percent; more is drawn as full. `label` says it in words. */
export const Bar = ({ percent, tone, label }: { percent: number; tone?: "ok" | "attn" | "bad"; label?: string }) => (
  <svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={label ?? `${Math.round(percent)} percent`}>
    <rect class={tone && `bar__${tone}`} width={Math.max(0, Math.min(100, percent))} height="6" />
  </svg>
);

export type Mark = "ok" | "run" | "attn" | "bad" | "todo" | "busy" | "wait";

/** Steps or slots as marks in a row; `text` beside it names where it stands. */
export const Track = ({ marks, text, label }: { marks: readonly Mark[]; text?: Child; label?: string }) => (
  <>
    <span class="track" role="img" aria-label={label ?? `${marks.filter((mark) => mark === "ok").length} of ${marks.length} steps done`}>
      {marks.map((mark) => (
        <i class={`t-${mark}`}></i>
      ))}
    </span>
    {text && <span class="track__text">{text}</span>}
  </>
);

export type BarsSeries = { name: string; value: number; also?: number };
type BarsProps = {
  series: readonly BarsSeries[];
  /** What it shows, over which time, from which to which value. */
  label: string;
  /** Before each figure: `$`. */
  unit?: string;
  limit?: number;
  /** Heads of the table behind: the name, the value, and the second value. */
  heads: readonly [name: string, value: string, also?: string];
};

const BASE = 136;
const ROOM = 132;
const LABELS_MAX = 6;
const percent = (n: number): string => `${Number(n.toFixed(2))}%`;

/** Round figures for an axis: at most five, from 0. */
export function ticksFor(peak: number): number[] {
  if (!(peak > 0)) return [0];
  const rough = peak / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? 10 * power;
  return Array.from({ length: Math.floor(peak / step) + 1 }, (_, i) => Number((i * step).toPrecision(12)));
}

/** Bars over time with an optional second value on top and a limit, and the same figures as a table behind it. */
export const Bars = ({ series, label, unit = "", limit, heads }: BarsProps) => {
  const peak = Math.max(...series.map(({ value, also = 0 }) => value + also), limit ?? 0);
  const top = peak > 0 ? peak * 1.12 : 1;
  const width = 100 / Math.max(1, series.length);
  const y = (value: number): number => Number((BASE - (value / top) * ROOM).toFixed(1));
  const every = Math.ceil(series.length / LABELS_MAX);
  const money = (value: number): string => `${unit}${value.toFixed(2)}`;
  return (
    <>
      <svg class="bars" role="img" aria-label={label}>
        {ticksFor(peak)
          .filter((tick) => limit === undefined || Math.abs(y(tick) - y(limit)) > 10 || tick === 0)
          .map((tick) => (
            <>
              <line x1="0" x2="100%" y1={y(tick)} y2={y(tick)} />
              <text x="-8" y={y(tick) + 4} text-anchor="end">
                {unit}
                {tick}
              </text>
            </>
          ))}
        {series.map(({ name, value, also = 0 }, i) => (
          <g>
            <title>
              {name}: {money(value + also)}
            </title>
            <rect x={percent((i + 0.12) * width)} y={y(value)} width={percent(width * 0.76)} height={Number((BASE - y(value)).toFixed(1))} rx="1.5" />
            {also > 0 && (
              <rect
                class="bars__alt"
                x={percent((i + 0.12) * width)}
                y={y(value + also) - 1}
                width={percent(width * 0.76)}
                height={Number((y(value) - y(value + also)).toFixed(1))}
                rx="1.5"
              />
            )}
            {i % every === 0 && (
              <text x={percent((i + 0.5) * width)} y="154" text-anchor="middle">
                {name}
              </text>
            )}
          </g>
        ))}
        {limit !== undefined && (
          <>
            <line class="bars__limit" x1="0" x2="100%" y1={y(limit)} y2={y(limit)} />
            <text x="100%" y={y(limit) - 5} text-anchor="end">
              limit {unit}
              {limit}
            </text>
          </>
        )}
      </svg>
      <BarsTable series={series} heads={heads} caption={label} money={money} />
    </>
  );
};

const BarsTable = ({
  series,
  heads,
  caption,
  money,
}: {
  series: readonly BarsSeries[];
  heads: BarsProps["heads"];
  caption: string;
  money: (value: number) => string;
}) => (
  <details>
    <summary class="link">The same as a table</summary>
    <div class="table-wrap">
      <table class="table">
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {heads.map((head, i) => (
              <th scope="col" class={i > 0 ? "num" : undefined}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {series.map(({ name, value, also = 0 }) => (
            <tr>
              <td>{name}</td>
              <td class="num">{money(value)}</td>
              {heads[2] && <td class="num">{money(also)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  </details>
);

/** The words beside a chart's colours. `alt` is the second series. */
export const Legend = ({ items }: { items: readonly { text: string; alt?: boolean }[] }) => (
  <ul class="legend" role="list">
    {items.map(({ text, alt }) => (
      <li>
        <span class={["swatch", alt && "swatch--alt"]}></span>
        {text}
      </li>
    ))}
  </ul>
);

// Tables on hairlines that become cards on phones, their pagers and what acts on several rows at once.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Button, Csrf } from "./button.tsx";
import { Icon } from "./icon.tsx";

export type Column<Row> = {
  /** Head of the column; empty for actions. */
  head: string;
  cell: (row: Row, index: number) => Child;
  /** main: the row's title · num: right-aligned figures · tight: never wraps · acts: buttons. */
  kind?: "main" | "num" | "tight" | "acts";
  /** A main column that leaves more room to the others. */
  slim?: boolean;
  /** A figure that never wraps (`num` and `tight`). */
  tight?: boolean;
  /** On phones: `line` takes a line of its own, `label` flows as "label value" (the default), `hide` is left out. */
  phone?: "line" | "label" | "hide";
  /** Present when the list can be ordered by it; `order` when it is. */
  sort?: { href: string; order?: "ascending" | "descending" };
};

type TableProps<Row> = {
  /** What the table lists, for those who cannot see it. */
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  /** A stable id per row (`run-run_5b1e`): live updates move rows by it, and picks stay with their row. */
  id: (row: Row) => string;
  /** Rows can be picked: the id of the BulkBar, the value it sends, how the row is called, and which rows can (all unless given). */
  pick?: { bulk: string; value: (row: Row) => string; label: (row: Row) => string; picked?: (row: Row) => boolean; can?: (row: Row) => boolean };
  rowClass?: (row: Row) => string | undefined;
};

const isEmpty = (cell: Child): boolean => cell === null || cell === undefined || cell === false || cell === "" || cell === "–";

function cellClasses<Row>(column: Column<Row>, cell: Child): (string | false | undefined)[] {
  return [...headClasses(column), column.phone === "line" && "cell-wide", isEmpty(cell) && "cell-none"];
}
function headClasses<Row>({ kind, slim, tight, phone }: Column<Row>): (string | false | undefined)[] {
  return [
    kind === "main" && "cell-main",
    slim && "cell-slim",
    kind === "num" && "num",
    (kind === "tight" || tight) && "cell-tight",
    kind === "acts" && "cell-acts",
    phone === "hide" && "cell-hide",
  ];
}
const isLabelled = <Row,>({ head, kind, phone }: Column<Row>): boolean =>
  head !== "" && kind !== "main" && kind !== "acts" && (phone ?? "label") === "label";

const Head = <Row,>({ column }: { column: Column<Row> }) => (
  <th role="columnheader" scope="col" class={headClasses(column)} aria-sort={column.sort?.order}>
    {column.sort ? (
      <a class="sort" href={column.sort.href}>
        {column.head}
        <Icon name={column.sort.order ? "down" : "sort"} />
      </a>
    ) : (
      column.head || <span class="visually-hidden">Actions</span>
    )}
  </th>
);

/** A list of rows. Roles are written out because `display` on phones drops the table's own. */
export const Table = <Row,>({ caption, columns, rows, id, pick, rowClass }: TableProps<Row>) => (
  <div class="table-wrap">
    <table class="table" role="table">
      <caption class="visually-hidden">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {pick && (
            <th role="columnheader" class="cell-check">
              <input type="checkbox" data-pick-all aria-label="Select all on this page" />
            </th>
          )}
          {columns.map((column) => (
            <Head column={column as Column<unknown>} />
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row, index) => (
          <tr role="row" id={id(row)} class={rowClass?.(row)} data-row>
            {pick && (
              <td role="cell" class="cell-check">
                {(pick.can?.(row) ?? true) && <Pick bulk={pick.bulk} value={pick.value(row)} label={pick.label(row)} picked={pick.picked?.(row)} />}
              </td>
            )}
            {columns.map((column) => {
              const cell = column.cell(row, index);
              return isLabelled(column) ? (
                <td role="cell" class={cellClasses(column, cell)} data-label={column.head}>
                  <div>{cell}</div>
                </td>
              ) : (
                <td role="cell" class={cellClasses(column, cell)}>
                  {cell}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

/** The box that picks one row or item for the BulkBar with the id `bulk`, which sends it as `pick`. (Not as `id`: a field of that name hides the id of its form.) */
export const Pick = ({ bulk, value, label, picked }: { bulk: string; value: string; label: string; picked?: boolean }) => (
  <input type="checkbox" name="pick" value={value} form={bulk} checked={picked} data-pick aria-label={`Select ${label}`} />
);

type PagerProps = { shown: Child; newer?: string | undefined; older?: string | undefined; words?: readonly [back: string, on: string] | undefined };

/** Where the reader is in a list, and the two ways on. Without an address a way is closed. */
export const Pager = ({ shown, newer, older, words = ["Newer", "Older"] }: PagerProps) => (
  <nav class="pager" aria-label="Pages">
    <span>{shown}</span>
    <span class="pager__moves">
      <Button icon="left" small href={newer} disabled={!newer}>
        {words[0]}
      </Button>
      <Button icon="right" small href={older} disabled={!older}>
        {words[1]}
      </Button>
    </span>
  </nav>
);

type BulkBarProps = { id: string; action: string; csrf: string; note?: Child; children: Child };

/** Acts on all picked rows of a page; appears while something is picked. Its buttons carry `formaction` or `name`/`value`. */
export const BulkBar = ({ id, action, csrf, note, children }: BulkBarProps) => (
  <form class="bulk" id={id} method="post" action={action} data-bulk>
    <Csrf token={csrf} />
    <strong data-count>Selected</strong>
    {note && <span class="quiet">{note}</span>}
    <span class="bulk__acts">{children}</span>
  </form>
);

type CardProps = { id?: string; title: Child; when?: Child; meta?: readonly Child[]; children?: Child };

/** One thing with a body, in a list where a table would be too narrow. */
export const Card = ({ id, title, when, meta, children }: CardProps) => (
  <li class="card" id={id}>
    <div class="card__top">
      <span class="card__title">{title}</span>
      {when}
    </div>
    {meta && (
      <div class="card__meta">
        {meta.map((one) => (
          <span>{one}</span>
        ))}
      </div>
    )}
    {children}
  </li>
);

/** A list of cards; `ruled` puts them on hairlines, for columns. */
export const CardList = ({ ruled, children }: { ruled?: boolean; children: Child }) => (
  <ul class={["cards", ruled && "cards--ruled"]} role="list">
    {children}
  </ul>
);

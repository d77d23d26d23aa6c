// Lists as files: CSV for a spreadsheet, JSON for a program. Never served as something a browser would show, and no cell becomes a formula.
import { HubError } from "../protocol/errors.ts";

type Cell = string | number | boolean | null | undefined;
/** A column of an export: its name and its value. */
export type ExportColumn<Row> = readonly [name: string, value: (row: Row) => Cell];

const TYPES = { csv: "text/csv; charset=utf-8", json: "application/json; charset=utf-8" } as const;
/** A cell that begins like this is a formula to a spreadsheet. */
const FORMULA = /^[=+\-@\t\r]/;

/** One CSV cell: always quoted, quotes doubled; text that a spreadsheet would run is marked as text with a leading apostrophe. */
function csvCell(value: Cell): string {
  if (typeof value === "number") return String(value);
  const text = value === null || value === undefined ? "" : String(value);
  return `"${(FORMULA.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

/**
 * The rows as a file to keep.
 * @param name what the list holds: part of the file's name
 * @param format csv or json, as in the address @throws HubError route_not_found for another
 */
export function download<Row>(name: string, format: string, columns: readonly ExportColumn<Row>[], rows: readonly Row[]): Response {
  if (!Object.hasOwn(TYPES, format)) throw new HubError("route_not_found", "a list is exported as csv or json");
  const body =
    format === "csv"
      ? `\ufeff${[columns.map(([head]) => csvCell(head)), ...rows.map((row) => columns.map(([, value]) => csvCell(value(row))))].map((cells) => cells.join(",")).join("\r\n")}\r\n`
      : JSON.stringify(rows.map((row) => Object.fromEntries(columns.map(([head, value]) => [head, value(row) ?? null]))));
  return new Response(body, {
    headers: {
      "content-type": TYPES[format as keyof typeof TYPES],
      "content-disposition": `attachment; filename="kxm-${name}.${format}"`,
      "content-security-policy": "default-src 'none'; sandbox",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-resource-policy": "same-origin",
      "cache-control": "no-store",
    },
  });
}

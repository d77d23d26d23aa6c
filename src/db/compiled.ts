// A query that Drizzle has prepared, without what Drizzle does again at every call: which slot goes where and how a row is read is decided once.
// That work is a tenth of a message's way through the hub.
import { Column, is, Param, Placeholder, SQL } from "drizzle-orm";
import type { Slots } from "./dialect.ts";

/** The part of a statement of bun:sqlite that is used. */
type Statement = { run(...params: unknown[]): unknown; values(...params: unknown[]): unknown[][] };
type Field = { path: string[]; field: unknown };
/** Drizzle's prepared query, as far as we look into it (0.45). */
type Prepared = {
  stmt: Statement;
  query: { params: unknown[] };
  fields?: Field[];
  customResultMapper?: unknown;
  all(slots?: Slots): unknown[];
};
type Reader = { key: string; decode: ((value: unknown) => unknown) | undefined };

/** What a store calls. */
export type Compiled = { run(slots: Slots): void; all(slots?: Slots): unknown[]; one(slots?: Slots): unknown };

/** @param prepared by Drizzle on a connection of bun:sqlite */
export function compile(prepared: Prepared): Compiled {
  const { stmt, fields, customResultMapper } = prepared;
  const fill = filler(prepared.query.params);
  const plain = fields?.every(({ path }) => path.length === 1) && !customResultMapper; // a joined row of several tables is left to Drizzle
  const run = (slots: Slots) => void stmt.run(...fill(slots));
  if (!fields || !plain) return { run, all: (slots) => prepared.all(slots), one: (slots) => prepared.all(slots)[0] };
  const readers = fields.map(({ path, field }): Reader => ({ key: path[0]!, decode: decoderOf(field) }));
  const all = (slots: Slots = {}) => {
    const rows = stmt.values(...fill(slots));
    return rows.map((values) => readRow(readers, values));
  };
  const one = (slots: Slots = {}) => {
    const values = stmt.values(...fill(slots))[0];
    return values && readRow(readers, values);
  };
  return { run, all, one };
}

function readRow(readers: readonly Reader[], values: readonly unknown[]): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  for (let index = 0; index < readers.length; index++) {
    const { key, decode } = readers[index]!;
    const value = values[index];
    row[key] = decode === undefined || value === null ? value : decode(value);
  }
  return row;
}

/** How a value of the database becomes ours; undefined when it already is. */
function decoderOf(field: unknown): Reader["decode"] {
  if (is(field, Column))
    return field.mapFromDriverValue === Column.prototype.mapFromDriverValue ? undefined : (value) => field.mapFromDriverValue(value);
  const sql = is(field, SQL) ? field : (field as SQL.Aliased).sql;
  const { decoder } = sql as unknown as { decoder: { mapFromDriverValue(value: unknown): unknown } };
  return (value) => decoder.mapFromDriverValue(value);
}

/** Puts slots into the order of the statement, encoded by their columns. @throws when a slot has no value: the types do not see that */
function filler(params: readonly unknown[]): (slots: Slots) => unknown[] {
  const places = params.map((param) => {
    if (is(param, Placeholder)) return { name: param.name, encode: undefined, value: undefined };
    if (!is(param, Param) || !is(param.value, Placeholder)) return { name: undefined, encode: undefined, value: param };
    const { encoder } = param;
    const isPlain = is(encoder, Column) && encoder.mapToDriverValue === Column.prototype.mapToDriverValue;
    return { name: param.value.name, encode: isPlain ? undefined : (value: unknown) => encoder.mapToDriverValue(value), value: undefined };
  });
  return (slots) => {
    const filled: unknown[] = new Array(places.length);
    for (let index = 0; index < places.length; index++) {
      const { name, encode, value } = places[index]!;
      if (name === undefined) filled[index] = value;
      else {
        const given = slots[name];
        if (given === undefined && !(name in slots)) throw new Error(`no value for the slot "${name}"`);
        filled[index] = encode === undefined ? given : encode(given);
      }
    }
    return filled;
  };
}

// Statements over a list of ids, prepared once for a fixed number of them. A shorter list is filled up by repeating its last entry.
import { type Column, inArray, type SQL, sql } from "drizzle-orm";
import { slot } from "./slots.ts";

/** Ids of one statement. */
const CHUNK = 50;
const NUMBERS = Array.from({ length: CHUNK }, (_, index) => index);

/** `column in (…)` with a slot for each id; fill it with `idSlots`. */
export const inChunk = (column: Column): SQL =>
  inArray(
    column,
    NUMBERS.map((n) => slot(`id${n}`)),
  );

/** The time that belongs to the row's id; fill it with `idSlots` and `timeSlots`. */
export const timeOfChunk = (id: Column): SQL<number> =>
  sql`case ${id} ${sql.join(
    NUMBERS.map((n) => sql`when ${slot(`id${n}`)} then cast(${slot(`at${n}`)} as bigint)`),
    sql` `,
  )} end`;

/** @param ids 1 to CHUNK of them */
export const idSlots = (ids: readonly string[]) => Object.fromEntries(NUMBERS.map((n) => [`id${n}`, ids[Math.min(n, ids.length - 1)]]));
/** @param times in the order of the ids */
export const timeSlots = (times: readonly number[]) => Object.fromEntries(NUMBERS.map((n) => [`at${n}`, times[Math.min(n, times.length - 1)]]));

/** Cuts a list into pieces that fit a statement. */
export function* chunksOf<T>(items: readonly T[]): Generator<T[]> {
  for (let at = 0; at < items.length; at += CHUNK) yield items.slice(at, at + CHUNK);
}

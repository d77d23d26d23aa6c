// Bounded lists of a run's projection: the newest entries within a budget of bytes; what is dropped is counted, so a list never lies about its length.

/** Entries, oldest first, their bytes as JSON, and how many older ones were dropped. */
export type Section<E> = { items: E[]; bytes: number; dropped: number };

const measure = (entry: object) => Buffer.byteLength(JSON.stringify(entry)) + 1; // and the comma
/** Sizes of entries that were measured since their run was read: an entry that changes a hundred times in a batch is measured a hundred times, not two. */
const measured = new WeakMap<object, number>();
const bytesOf = (entry: object) => measured.get(entry) ?? measure(entry);

/** A section that nothing was put into. */
export const emptySection = <E extends object>(): Section<E> => ({ items: [], bytes: 0, dropped: 0 });

/**
 * Changes the newest entry that matches, or makes one. The result depends on the events alone, not on how they were batched.
 * @param budget bytes; older entries go until the list fits
 * @returns the entry as it is now
 */
export function upsert<E extends object>(
  section: Section<E>,
  budget: number,
  matches: (entry: E) => boolean,
  make: () => E,
  change: (entry: E) => void,
): E {
  let entry = section.items.findLast(matches);
  if (entry) section.bytes -= bytesOf(entry);
  else section.items.push((entry = make()));
  change(entry);
  const size = measure(entry);
  measured.set(entry, size);
  section.bytes += size;
  while (section.bytes > budget && section.items.length > 1) drop(section, entry);
  return entry;
}

/** Drops the oldest entry that is not the one just written. */
function drop<E extends object>(section: Section<E>, keep: E) {
  const index = section.items[0] === keep ? 1 : 0;
  const [old] = section.items.splice(index, 1);
  section.bytes -= bytesOf(old!);
  section.dropped++;
}

/** Free text as a projection keeps it: short, without control characters, never half a character. */
export const short = (text: string, max: number): string => {
  const cut = text.length > max ? `${text.slice(0, max - 1)}…` : text;
  return cut.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, " ").toWellFormed();
};

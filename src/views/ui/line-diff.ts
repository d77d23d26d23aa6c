// The difference of two texts by lines, and within a changed line by its middle. Pure and bounded: very long texts are compared from both ends only.

export type DiffLine = { n: number; text: string; marks?: readonly [from: number, to: number] };
export type DiffRow =
  | { kind: "same"; left: DiffLine; right: DiffLine }
  | { kind: "changed"; left?: DiffLine; right?: DiffLine }
  | { kind: "fold"; rows: readonly DiffRow[] };

/** Cells of the comparison table; beyond it the differing middle counts as replaced as a whole. */
const CELLS_MAX = 1_000_000;
const CONTEXT_LINES = 2;
const FOLD_FROM_LINES = 3;

function commonEnds<T>(a: readonly T[] | string, b: readonly T[] | string): { head: number; tail: number } {
  const max = Math.min(a.length, b.length);
  let head = 0;
  while (head < max && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < max - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  return { head, tail };
}

/** Pairs of equal lines of two middles that differ at both ends: the longest common subsequence. */
function pairsOf(a: readonly string[], b: readonly string[]): [number, number][] {
  if (a.length === 0 || b.length === 0 || a.length * b.length > CELLS_MAX) return [];
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      table[i * width + j] = a[i] === b[j] ? table[(i + 1) * width + j + 1]! + 1 : Math.max(table[(i + 1) * width + j]!, table[i * width + j + 1]!);
  const pairs: [number, number][] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (table[(i + 1) * width + j]! >= table[i * width + j + 1]!) i++;
    else j++;
  }
  return pairs;
}

function changed(left: DiffLine | undefined, right: DiffLine | undefined): DiffRow {
  if (!left || !right) return { kind: "changed", left, right };
  const { head, tail } = commonEnds(left.text, right.text);
  if (head + tail < Math.min(left.text.length, right.text.length) / 3) return { kind: "changed", left, right };
  return {
    kind: "changed",
    left: { ...left, marks: [head, left.text.length - tail] },
    right: { ...right, marks: [head, right.text.length - tail] },
  };
}

/** Rows of two columns: equal lines beside one another, changed ones paired in order, long equal runs folded. */
export function diffLines(left: string, right: string): DiffRow[] {
  const a = left.split("\n");
  const b = right.split("\n");
  const { head, tail } = commonEnds(a, b);
  const inner = pairsOf(a.slice(head, a.length - tail), b.slice(head, b.length - tail)).map(([i, j]) => [head + i, head + j] as const);
  const equal = [
    ...Array.from({ length: head }, (_, i) => [i, i] as const),
    ...inner,
    ...Array.from({ length: tail }, (_, i) => [a.length - tail + i, b.length - tail + i] as const),
  ];
  const rows: DiffRow[] = [];
  let [i, j] = [0, 0];
  const upTo = (toI: number, toJ: number): void => {
    while (i < toI || j < toJ) {
      const l = i < toI ? { n: i + 1, text: a[i]! } : undefined;
      const r = j < toJ ? { n: j + 1, text: b[j]! } : undefined;
      rows.push(changed(l, r));
      if (l) i++;
      if (r) j++;
    }
  };
  for (const [p, q] of equal) {
    upTo(p, q);
    rows.push({ kind: "same", left: { n: p + 1, text: a[p]! }, right: { n: q + 1, text: b[q]! } });
    [i, j] = [p + 1, q + 1];
  }
  upTo(a.length, b.length);
  return foldEqual(rows);
}

function foldEqual(rows: readonly DiffRow[]): DiffRow[] {
  const out: DiffRow[] = [];
  for (let at = 0; at < rows.length; ) {
    let end = at;
    while (end < rows.length && rows[end]!.kind === "same") end++;
    if (end === at) {
      out.push(rows[at++]!);
      continue;
    }
    const before = at === 0 ? 1 : CONTEXT_LINES;
    const after = end === rows.length ? 1 : CONTEXT_LINES;
    const hidden = end - at - before - after;
    if (hidden >= FOLD_FROM_LINES)
      out.push(...rows.slice(at, at + before), { kind: "fold", rows: rows.slice(at + before, end - after) }, ...rows.slice(end - after, end));
    else out.push(...rows.slice(at, end));
    at = end;
  }
  return out;
}

/** How many rows differ. */
export const changesIn = (rows: readonly DiffRow[]): number => rows.filter(({ kind }) => kind === "changed").length;

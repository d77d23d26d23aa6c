// Path patterns of a project: how they are written down, and whether two of them can match one path. Works on the patterns alone, without files.
// `*` and `?` stay within a name, `**` crosses folders, `[a-c]` is one character, `{a,b}` either. A last name without a dot may be a folder, and then
// holds for everything in it. A pattern with wildcards and without a slash holds in every folder, as in a .gitignore. Case does not count: on some
// systems it names one file.

/** Characters of a pattern. */
export const GLOB_MAX = 128;
const ALTERNATIVES_MAX = 64;

/** The one way to write a pattern, or undefined for one that is empty, too long, leaves the project or is no pattern. */
export function readGlob(text: string): string | undefined {
  const path = text
    .trim()
    .replaceAll("\\", "/")
    .replaceAll(/\/{2,}/g, "/")
    .replace(/^(?:\.?\/)+/, "")
    .replace(/\/$/, "");
  const segments = path.split("/").filter((segment) => segment !== ".");
  const glob = segments.join("/");
  if (glob === "" || glob.length > GLOB_MAX || segments.includes("..")) return undefined;
  return alternativesOf(glob) === undefined ? undefined : glob;
}

/** Whether there is a path that both patterns match. Both as `readGlob` gives them. Where that is hard to say (negated classes), it says yes. */
export function globsOverlap(one: string, other: string): boolean {
  const [ours, theirs] = [one, other].map((glob) => alternativesOf(glob.toLowerCase())!.map(segmentsOf));
  return ours!.some((a) => theirs!.some((b) => pathsOverlap(a, b)));
}

/** `a{b,c}` → ab, ac. Undefined when braces do not close, or it comes to too many. */
function alternativesOf(glob: string): string[] | undefined {
  const open = glob.search(/\{/);
  if (open === -1) return glob.includes("}") ? undefined : [glob];
  let depth = 0;
  const cuts = [open];
  for (let index = open; index < glob.length; index++) {
    const char = glob[index];
    if (char === "{") depth++;
    else if (char === "," && depth === 1) cuts.push(index);
    else if (char === "}" && --depth === 0) {
      const found: string[] = [];
      cuts.push(index);
      for (let part = 0; part + 1 < cuts.length; part++) {
        const inner = alternativesOf(glob.slice(0, open) + glob.slice(cuts[part]! + 1, cuts[part + 1]) + glob.slice(index + 1));
        if (!inner || found.length + inner.length > ALTERNATIVES_MAX) return undefined;
        found.push(...inner);
      }
      return found;
    }
  }
  return undefined;
}

/** One place in a name: any characters, or one of a set. */
type Place = "any" | { negated: boolean; ranges: readonly (readonly [low: string, high: string])[] };
type Segment = "**" | readonly Place[];

function segmentsOf(glob: string): Segment[] {
  const names = glob.split("/");
  const everywhere = names.length === 1 && /[*?[]/.test(glob) && glob !== "**";
  const folder = !names.at(-1)!.includes(".", 1);
  return [
    ...(everywhere ? (["**"] as const) : []),
    ...names.map((name): Segment => (name === "**" ? "**" : placesOf(name))),
    ...(folder ? (["**"] as const) : []),
  ];
}

function placesOf(name: string): Place[] {
  const places: Place[] = [];
  for (let index = 0; index < name.length; index++) {
    const char = name[index]!;
    const end = char === "[" ? name.indexOf("]", index + 2) : -1;
    if (char === "*") {
      if (places.at(-1) !== "any") places.push("any");
    } else if (char === "?") places.push({ negated: true, ranges: [] });
    else if (end > 0) {
      places.push(classOf(name.slice(index + 1, end)));
      index = end;
    } else places.push({ negated: false, ranges: [[char, char]] });
  }
  return places;
}

function classOf(text: string): Place {
  const negated = text.startsWith("!") || text.startsWith("^");
  const ranges = [...(negated ? text.slice(1) : text).matchAll(/(.)-(.)|(.)/gs)].map(([, low, high, one]) => [low ?? one!, high ?? one!] as const);
  return { negated, ranges };
}

const pathsOverlap = (a: readonly Segment[], b: readonly Segment[]): boolean =>
  meets(a, b, (left, right) => left !== "**" && right !== "**" && namesOverlap(left, right), "**");
const namesOverlap = (a: readonly Place[], b: readonly Place[]): boolean => meets(a, b, placesOverlap, "any");

function placesOverlap(a: Place, b: Place): boolean {
  if (a === "any" || b === "any") return true;
  if (a.negated && b.negated) return true;
  if (a.negated || b.negated) {
    const [out, set] = a.negated ? [a, b] : [b, a as Exclude<Place, "any">];
    // One character that the negated one leaves out can be told; a range that it covers in part counts as a match.
    return set.ranges.some(([low, high]) => low !== high || !out.ranges.some(([from, to]) => from <= low && low <= to));
  }
  return a.ranges.some(([low, high]) => b.ranges.some(([from, to]) => low <= to && from <= high));
}

/** Whether two sequences, in which `many` stands for any number of items, can come to the same. Each pair of places is looked at once. */
function meets<T>(a: readonly T[], b: readonly T[], same: (left: T, right: T) => boolean, many: T): boolean {
  const width = b.length + 1;
  const seen = new Uint8Array((a.length + 1) * width);
  const waiting: [number, number][] = [[0, 0]];
  while (waiting.length > 0) {
    const [i, j] = waiting.pop()!;
    if (seen[i * width + j]) continue;
    seen[i * width + j] = 1;
    const [left, right] = [a[i], b[j]];
    if (i === a.length && j === b.length) return true;
    if (left === many) {
      waiting.push([i + 1, j]);
      if (j < b.length) waiting.push([i, j + 1]);
    }
    if (right === many) {
      waiting.push([i, j + 1]);
      if (i < a.length) waiting.push([i + 1, j]);
    }
    if (left !== undefined && right !== undefined && left !== many && right !== many && same(left, right)) waiting.push([i + 1, j + 1]);
  }
  return false;
}

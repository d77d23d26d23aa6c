// Path patterns: how they are written down, and whether two can match one path, held against matching every short path there is.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { GLOB_MAX, globsOverlap, readGlob } from "../../src/protocol/globs.ts";

test("a pattern has one way to be written, and what leaves the project is none", () => {
  const ways = { "./src//app.ts": "src/app.ts", "/src/": "src", "src\\lib\\*.ts": "src/lib/*.ts", " a/./b ": "a/b", "{a,b}/c": "{a,b}/c" };
  for (const [written, read] of Object.entries(ways)) expect(readGlob(written)).toBe(read);
  for (const none of ["", " ", "/", ".", "../x", "a/../b", "{a", "a}", "x".repeat(GLOB_MAX + 1), "{a,b}".repeat(7)])
    expect(readGlob(none)).toBeUndefined();
});

test.each([
  ["src/app.ts", "src/app.ts", true],
  ["src/app.ts", "src/APP.ts", true],
  ["src/app.ts", "src/app.js", false],
  ["src/**", "src/app.ts", true],
  ["src/**", "src", true],
  ["src", "src/lib/app.ts", true],
  ["src", "srcs/app.ts", false],
  ["src/*.ts", "src/lib/app.ts", false],
  ["src/*", "src/lib/app.ts", true],
  ["src/**/*.ts", "src/app.ts", true],
  ["src/**/*.ts", "src/a/b/c.ts", true],
  ["src/**/*.ts", "src/app.js", false],
  ["*.ts", "src/app.ts", true],
  ["*.ts", "src/app.js", false],
  ["README.md", "docs/README.md", false],
  ["src/*_test.ts", "src/app_*.ts", true],
  ["src/a*b.ts", "src/b*a.ts", false],
  ["src/a*.ts", "src/*b.ts", true],
  ["src/?.ts", "src/ab.ts", false],
  ["src/[a-f].ts", "src/[e-k].ts", true],
  ["src/[a-d].ts", "src/[e-k].ts", false],
  ["src/[!a].ts", "src/a.ts", false],
  ["src/[!a].ts", "src/b.ts", true],
  ["src/{api,ui}/**", "src/ui/button.tsx", true],
  ["src/{api,ui}/**", "src/db/store.ts", false],
  ["**/schema.sql", "db/**", true],
  ["a/**/b.x", "**/c/b.x", true],
  ["src/[x.ts", "src/[x.ts", true],
  ["**", "anything", true],
])("%s and %s", (one, other, overlap) => {
  expect([globsOverlap(one, other), globsOverlap(other, one)]).toEqual([overlap, overlap]);
});

/** Every path of up to three names made of a, b and a dot-ended one. */
const NAMES = ["a", "b", "aa", "ab", "ba", "a.x", "b.x", "ab.x"];
const PATHS = NAMES.flatMap((one) => [one, ...NAMES.flatMap((two) => [`${one}/${two}`, ...NAMES.map((three) => `${one}/${two}/${three}`)])]);
/** Patterns whose every match within reach is one of those. */
const segment = fc.constantFrom("a", "b", "ab", "a.x", "b.x", "*", "a*", "*b", "?", "*.x", "a*.x", "?.x", "[ab].x", "{a,b}.x", "**");
const pattern = fc.array(segment, { minLength: 1, maxLength: 3 }).map((segments) => segments.join("/"));

test("it says yes when a path is matched by both, and no only when there is none", () => {
  const verdicts = { yes: 0, no: 0 };
  fc.assert(
    fc.property(pattern, pattern, (one, other) => {
      // Another matcher, told by hand what a folder and a pattern without a slash stand for.
      const matchers = [one, other].map((glob) => {
        const deep = !glob.includes("/") && /[*?[]/.test(glob) && glob !== "**" ? `**/${glob}` : glob;
        const globs = [deep, ...(glob.split("/").at(-1)!.includes(".") ? [] : [`${deep}/**`])].map((text) => new Bun.Glob(text));
        return (path: string) => globs.some((matcher) => matcher.match(path));
      });
      const witness = PATHS.some((path) => matchers.every((matches) => matches(path)));
      const says = globsOverlap(one, other);
      verdicts[says ? "yes" : "no"]++;
      // A path that both match may be longer than those looked at; then only yes is right, so a no is never allowed with a witness.
      if (witness) return says;
      return !says || one.split("/").length + other.split("/").length > 3 || /\*\*/.test(one + other);
    }),
    { numRuns: 1_500 },
  );
  expect(Math.min(verdicts.yes, verdicts.no)).toBeGreaterThan(100);
});

test("the hardest pair of patterns is judged in a few milliseconds", () => {
  const hard = (tail: string) => `${"*a".repeat((GLOB_MAX - 4) / 2)}${tail}`.slice(0, GLOB_MAX);
  const [one, other] = [readGlob(hard(".x"))!, readGlob(hard(".y"))!];
  globsOverlap(one, other);
  const began = performance.now();
  for (let round = 0; round < 10; round++) expect(globsOverlap(one, other)).toBe(false);
  expect((performance.now() - began) / 10).toBeLessThan(50); // 1 ms on an idle machine
});

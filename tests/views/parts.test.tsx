/** @jsxImportSource #jsx */
import { describe, expect, test } from "bun:test";
import { ASSETS, assetUrl, serveAsset } from "../../src/views/assets/assets.ts";
import { Bar, Spark, ticksFor } from "../../src/views/ui/charts.tsx";
import { type GraphEdge, type GraphNode, lanes, StepGraph } from "../../src/views/ui/graph.tsx";
import { themeOf } from "../../src/views/ui/layout.tsx";
import { changesIn, type DiffRow, diffLines } from "../../src/views/ui/line-diff.ts";
import { liveAttributes } from "../../src/views/ui/live.tsx";
import { counted, shortId } from "../../src/views/ui/reference.tsx";
import { countdown, took, words } from "../../src/views/ui/time.tsx";
import { axisOf, tickLabel } from "../../src/views/ui/time-axis.ts";

const MINUTE = 60_000;
const NOW = Date.UTC(2026, 10, 30, 14, 2, 10);

describe("times", () => {
  test("spans read as people say them", () => {
    expect([-5, 0, 59_999, 60_000, 84 * MINUTE, 120 * MINUTE, 52 * 60 * MINUTE, 48 * 60 * MINUTE].map(words)).toEqual([
      "0 s",
      "0 s",
      "59 s",
      "1 min",
      "1 h 24 min",
      "2 h",
      "2 d 4 h",
      "2 d",
    ]);
    expect([84, 1400, 48_000].map(took)).toEqual(["84 ms", "1.4 s", "48 s"]);
    expect([186_000, 1, 0, -1, 2 * 60 * MINUTE].map(countdown)).toEqual(["3:06", "0:01", "lapsed", "lapsed", "2 h"]);
  });
  test("the browser's script says them in the same words", () => {
    const script = new TextDecoder().decode(ASSETS.find(({ name }) => name === "app.js")!.body);
    expect(script).toContain(" ago");
    // Its copy of both functions, run against ours.
    const source = require("node:fs").readFileSync(new URL("../../src/views/assets/script/clock.browser.js", import.meta.url), "utf8") as string;
    const theirs = new Function(
      `${source.slice(source.indexOf("const words"), source.indexOf("function tick"))}; return { words, countdown };`,
    )() as { words: typeof words; countdown: typeof countdown };
    for (const ms of [-1, 0, 1, 999, 1000, 59_999, 60_000, 3_599_000, 3_600_000, 5_040_000, 86_400_000, 100_000_000, 9e9]) {
      expect([ms, theirs.words(ms)]).toEqual([ms, words(ms)]);
      expect([ms, theirs.countdown(ms)]).toEqual([ms, countdown(ms)]);
    }
  });
});

describe("a time axis", () => {
  test("idle time is folded, keeps order, and bars keep their proportions", () => {
    const axis = axisOf([
      { from: NOW, to: NOW + 10 * MINUTE },
      { from: NOW + 60 * MINUTE, to: NOW + 70 * MINUTE },
    ]);
    expect(axis.folds).toHaveLength(1);
    expect(axis.folds[0]).toMatchObject({ from: NOW + 10 * MINUTE, to: NOW + 60 * MINUTE, left: 47, right: 53 });
    expect([0, 5, 10, 60, 65, 70].map((minute) => axis.x(NOW + minute * MINUTE))).toEqual([0, 23.5, 47, 53, 76.5, 100]);
    const folded = axis.ticks.filter(({ at }) => at > NOW + 10 * MINUTE && at < NOW + 60 * MINUTE);
    expect(folded).toEqual([]);
  });
  test("short gaps stay, and folding can be switched off", () => {
    const spans = [
      { from: NOW, to: NOW + 10 * MINUTE },
      { from: NOW + 11 * MINUTE, to: NOW + 20 * MINUTE },
      { from: NOW + 90 * MINUTE, to: NOW + 91 * MINUTE },
    ];
    expect(axisOf(spans).folds).toHaveLength(1);
    expect(axisOf(spans, { fold: false }).folds).toEqual([]);
  });
  test("every position is within the plot and later is never left of earlier", () => {
    let seed = 7;
    const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
    for (let round = 0; round < 200; round++) {
      const spans = Array.from({ length: 1 + Math.floor(random() * 8) }, () => {
        const from = NOW + Math.floor(random() * 10 ** (3 + random() * 6));
        return { from, to: from + Math.floor(random() * 10 ** (2 + random() * 5)) };
      });
      const axis = axisOf(spans);
      const instants = [...spans.flatMap(({ from, to }) => [from, to]), ...axis.ticks.map(({ at }) => at)].sort((a, b) => a - b);
      const places = instants.map(axis.x);
      expect(places.every((x) => x >= 0 && x <= 100)).toBe(true);
      expect(places).toEqual(places.toSorted((a, b) => a - b));
      expect(axis.ticks.length).toBeLessThan(12);
    }
  });
  test("labels are as exact as the axis is short", () => {
    const at = (span: number) => tickLabel(NOW, { from: NOW, to: NOW + span });
    expect([at(1000), at(2 * MINUTE), at(90 * MINUTE), at(5 * 24 * 60 * MINUTE)]).toEqual(["10.000", "14:02:10", "14:02", "30 Nov"]);
  });
});

describe("line diff", () => {
  const both = (rows: readonly DiffRow[], side: "left" | "right"): string[] =>
    rows.flatMap((row) => (row.kind === "fold" ? both(row.rows, side) : row[side] ? [row[side].text] : []));
  test("a changed line is paired and its middle marked", () => {
    const rows = diffLines('{\n  "exitCode": 1,\n}', '{\n  "exitCode": 0,\n}');
    expect(rows.map(({ kind }) => kind)).toEqual(["same", "changed", "same"]);
    expect(rows[1]).toMatchObject({ left: { n: 2, marks: [14, 15] }, right: { n: 2, marks: [14, 15] } });
    expect(changesIn(rows)).toBe(1);
  });
  test("long equal runs are folded and can be unfolded", () => {
    const common = Array.from({ length: 40 }, (_, i) => `line ${i}`).join("\n");
    const rows = diffLines(`${common}\nold\n${common}`, `${common}\nnew\n${common}`);
    expect(rows.filter(({ kind }) => kind === "fold")).toHaveLength(2);
    expect(both(rows, "left")).toEqual(`${common}\nold\n${common}`.split("\n"));
  });
  test("whatever the texts are, both can be read back whole and in order", () => {
    let seed = 11;
    const random = (n: number) => Math.floor(((seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647) * n);
    for (let round = 0; round < 300; round++) {
      const make = () => Array.from({ length: random(30) }, () => "abcdef"[random(6)]!.repeat(1 + random(3))).join("\n");
      const [left, right] = [make(), make()];
      const rows = diffLines(left, right);
      expect(both(rows, "left")).toEqual(left.split("\n"));
      expect(both(rows, "right")).toEqual(right.split("\n"));
      for (const row of rows) if (row.kind === "same") expect(row.left.text).toBe(row.right.text);
    }
  });
  test("very long texts are compared in bounded time", () => {
    const long = (word: string) => Array.from({ length: 20_000 }, (_, i) => `${word} ${i}`).join("\n");
    const started = performance.now();
    expect(both(diffLines(long("a"), long("b")), "right")).toHaveLength(20_000);
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

describe("step graph", () => {
  const node = (id: string): GraphNode => ({ id, name: id, note: "", kind: "agent", state: "ok" });
  const edges: GraphEdge[] = [
    { from: "plan", to: "unit" },
    { from: "plan", to: "scan" },
    { from: "unit", to: "review" },
    { from: "scan", to: "review" },
    { from: "review", to: "plan", label: "at most 2" },
  ];
  test("a step stands after all it follows, and a way back moves nothing", () => {
    expect(Object.fromEntries(lanes(["plan", "unit", "scan", "review"].map(node), edges))).toEqual({
      plan: { column: 0, row: 0 },
      unit: { column: 1, row: 0 },
      scan: { column: 1, row: 1 },
      review: { column: 2, row: 0 },
    });
  });
  test("it is drawn across and downwards, each step a link, a way back with its budget", () => {
    const out = (<StepGraph label="fix" nodes={["plan", "unit", "scan", "review"].map(node)} edges={edges} />).value;
    expect(out.match(/href="#step-scan"/g)).toHaveLength(2);
    expect(out.match(/at most 2/g)).toHaveLength(2);
    expect(out.match(/e-back/g)).toHaveLength(2);
  });
  test("an edge to a step that does not exist is left out", () => {
    expect(() => <StepGraph label="x" nodes={[node("a")]} edges={[{ from: "a", to: "gone" }]} />).not.toThrow();
  });
});

describe("charts and small words", () => {
  test("a chart of nothing, of one value and of zeros has no broken number", () => {
    for (const values of [[], [5], [0, 0, 0]]) expect((<Spark values={values} label="x" />).value).not.toMatch(/NaN|Infinity/);
    expect((<Bar percent={140} />).value).toContain('width="100"');
    expect((<Bar percent={-3} />).value).toContain('width="0"');
  });
  test("axis figures are round, start at 0 and are few", () => {
    expect(ticksFor(45)).toEqual([0, 20, 40]);
    expect(ticksFor(0)).toEqual([0]);
    for (const peak of [0.0031, 1, 7, 99, 12_345]) expect(ticksFor(peak).length).toBeLessThan(6);
  });
  test("ids and counts", () => {
    expect(shortId("run_5b1ec07d2f9a4b1e8c3377a0e9d4c07d")).toBe("run_5b1e…c07d");
    expect(shortId("apr_77c0")).toBe("apr_77c0");
    expect([7, 1000, 1001].map(counted)).toEqual(["7", "1,000", "1,000+"]);
  });
  test("a live region refetches on its topics and on everything, and never swaps an error in", () => {
    const attributes = liveAttributes({ topic: ["runs", "approvals"], href: "/ui/runs" });
    expect(attributes["hx-trigger"].split(", ").map((spec) => spec.split(" ")[0])).toEqual(["live:runs", "live:approvals", "live:all"]);
    expect([attributes["hx-swap"], attributes["hx-status:4xx"], attributes["hx-status:5xx"]]).toEqual(["outerMorph", "swap:none", "swap:none"]);
  });
  test("only known themes are taken from a cookie", () => {
    expect(["dark", "light", "auto", '"><script>', undefined].map(themeOf)).toEqual(["dark", "light", "auto", "auto", "auto"]);
  });
});

describe("assets", () => {
  test("each has an address with its hash, and any other address is not found", async () => {
    for (const asset of ASSETS) {
      const answer = serveAsset(assetUrl(asset.name))!;
      expect(answer.status).toBe(200);
      expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      expect(new Uint8Array(await answer.arrayBuffer())).toEqual(asset.body);
      const hash = new Bun.CryptoHasher("sha256").update(asset.body).digest("hex");
      expect(asset.path).toContain(hash.slice(0, 16));
      expect(serveAsset(asset.path.replace(/-[0-9a-f]{16}/, "-0000000000000000"))).toBeUndefined();
    }
    expect(serveAsset("/assets/../package.json")).toBeUndefined();
  });
  test("compressed only for who takes it, and not sent again to who has it", async () => {
    const [asset] = ASSETS;
    const zipped = serveAsset(asset!.path, "gzip, br")!;
    expect(zipped.headers.get("content-encoding")).toBe("gzip");
    expect(Bun.gunzipSync(new Uint8Array(await zipped.arrayBuffer()))).toEqual(asset!.body);
    expect(serveAsset(asset!.path, "br")!.headers.get("content-encoding")).toBeNull();
    expect(serveAsset(asset!.path, "gzip", asset!.etag)!.status).toBe(304);
  });
  test("our script stays under 8 KB and a first visit under 40 KB compressed, pages apart", () => {
    expect(ASSETS.find(({ name }) => name === "app.js")!.body.length).toBeLessThan(8 * 1024);
    expect(ASSETS.reduce((sum, { gzip }) => sum + gzip.length, 0)).toBeLessThan(40_000);
  });
  test("the stylesheet declares its layers first, asks for nothing, and names colours in tokens only", () => {
    const css = new TextDecoder().decode(ASSETS[0]!.body);
    expect(css).toStartWith("@layer reset, tokens, base, components, utilities;");
    expect(css).not.toMatch(/url\(|@import|@font-face/);
    const components = css.slice(css.indexOf("@layer components"));
    expect(components.match(/#[0-9a-f]{3,8}\b(?![^{]*\{)|rgba?\(|hsla?\(|oklch\(/gi) ?? []).toEqual([]);
  });
});

/** @jsxImportSource #jsx */
import { describe, expect, test } from "bun:test";
import { Fragment } from "../../src/views/jsx/jsx-runtime.ts";
import { Who } from "../../src/views/ui/reference.tsx";
import { hiddenIn, Line, marked, Name, Untrusted } from "../../src/views/ui/untrusted.tsx";
import { PAYLOADS } from "./payloads.ts";

const html = (text: string) => Fragment({ children: marked(text) }).value;
const token = (what: string, label: string) => `<span class="ctl" title="${what}">${label}</span>`;
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\u{e0000}-\u{e007f}]/u;

describe("hidden characters", () => {
  test("overrides, zero-width characters and terminal codes are drawn as tokens", () => {
    expect(html("user\u202enimda\u202c")).toBe(
      `user${token("right-to-left override", "U+202E")}nimda${token("pop directional formatting", "U+202C")}`,
    );
    expect(html("a\u200bb")).toBe(`a${token("zero-width space", "U+200B")}b`);
    expect(html("\u001b[31mred\u001b[0m")).toBe(`${token("terminal code", "ESC[31m")}red${token("terminal code", "ESC[0m")}`);
    expect(html("a\u0000b\rc")).toBe(`a${token("null", "U+0000")}b${token("carriage return", "U+000D")}c`);
  });
  test("a run of one is counted, not repeated", () => {
    expect(html(`a${"\u200b".repeat(900)}b`)).toBe(`a${token("zero-width space", "U+200B ×900")}b`);
  });
  test("invisible instructions in tag characters show", () => {
    const smuggled = [..."hi"].map((char) => String.fromCodePoint(0xe0000 + char.charCodeAt(0))).join("");
    expect(html(`ok${smuggled}`)).toContain("U+E0068");
  });
  test("newlines, tabs, CRLF, accents and emoji are left alone", () => {
    for (const text of ["a\n\tb", "Zo\u00eb e\u0301", "👩‍👩‍👧 ❤️ 1️⃣ 🏴", "日本語", "Иван"]) expect(html(text)).toBe(text);
    expect(html("a\r\nb")).toBe("a\nb");
  });
  test("no payload leaves an invisible character in the page", () => {
    for (const payload of PAYLOADS) {
      expect(html(payload)).not.toMatch(INVISIBLE);
      expect((<Name text={payload} />).value).not.toMatch(INVISIBLE);
      expect((<Line text={payload} max={20} />).value).not.toMatch(INVISIBLE);
      expect((<Who name={payload} harness={payload} href="/agents/agt_1" />).value).not.toMatch(INVISIBLE);
      expect((<Untrusted by={payload} text={payload} />).value).not.toMatch(INVISIBLE);
    }
  });
  test("they are counted for the label", () => {
    expect(hiddenIn("plain")).toBe(0);
    expect(hiddenIn("\u001b[31m\u200b\u200b\u202e")).toBe(4);
    expect((<Untrusted by="ci-bot" text={"a\u200b"} note="message body" />).value).toContain("message body · 1 hidden character marked");
  });
  test("a text of hidden characters does not become a page of markup", () => {
    expect(html("\u200b\u200c".repeat(20_000)).length).toBeLessThan(200_000);
  });
});

describe("names", () => {
  test("letters of another alphabet in a Latin name are marked, a name in one alphabet is not", () => {
    expect((<Name text={"\u0430dmin"} />).value).toBe(`<bdi>${token("U+0430, not a Latin letter", "\u0430")}dmin</bdi>`);
    expect((<Name text="Иван" />).value).toBe("<bdi>Иван</bdi>");
  });
  test("a name stays on one line and has an end", () => {
    expect((<Name text={"a\nb\n\nc"} />).value).toBe("<bdi>a b c</bdi>");
    expect((<Name text={"x".repeat(5000)} />).value.length).toBeLessThan(230);
  });
});

describe("bounds", () => {
  test("a block shows so many characters and says how many it does not", () => {
    const out = (<Untrusted by="a" text={"x".repeat(20_000)} />).value;
    expect(out.match(/x{100,}/)?.[0].length).toBe(16_000);
    expect(out).toContain("4,000 more characters are not shown");
  });
  test("a cut never splits a character in two", () => {
    for (const max of [10, 11, 12, 13])
      expect((<Line text={"😀".repeat(40)} max={max} />).value.replace(/ title="[^"]*"/, "")).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])/);
    expect((<Untrusted by="a" text={"😀".repeat(40)} max={11} />).value).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])/);
  });
  test("only a block that scrolls takes the keyboard's focus", () => {
    expect((<Untrusted by="a" text="short" />).value).not.toContain("tabindex");
    expect((<Untrusted by="a" text={"line\n".repeat(40)} />).value).toContain('tabindex="0"');
  });
});

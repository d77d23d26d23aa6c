/** @jsxImportSource #jsx */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Glob } from "bun";
import { Fragment, Html, jsx, raw, wholePage } from "../../src/views/jsx/jsx-runtime.ts";
import { PAYLOADS } from "./payloads.ts";

const html = (node: Html) => node.value;
const anyJsx = jsx as (type: any, props: any) => Html;
/** What is left of a rendering once entities are undone: text as a browser shows it. */
const decoded = (markup: string) =>
  markup.replace(/&(lt|gt|quot|#x27|amp);/g, (_, name: string) => ({ lt: "<", gt: ">", quot: '"', "#x27": "'", amp: "&" })[name] ?? "");

describe("text", () => {
  test("strings are escaped, numbers are written, nothing is written for null, undefined and booleans", () => {
    expect(
      html(
        <p>
          {"<b>\"&'"}
          {1}
          {2n}
          {null}
          {undefined}
          {true}
          {false}
        </p>,
      ),
    ).toBe("<p>&lt;b&gt;&quot;&amp;&#x27;12</p>");
  });
  test("markup made by JSX is trusted, also in arrays and fragments, and is escaped only once", () => {
    const Name = ({ name }: { name: string }) => <b>{name}</b>;
    expect(html(<ul>{[<li>{"<1>"}</li>, [<Name name="<2>" />], "<3>"]}</ul>)).toBe("<ul><li>&lt;1&gt;</li><b>&lt;2&gt;</b>&lt;3&gt;</ul>");
    expect(
      html(
        <>
          {"<4>"}
          {5}
        </>,
      ),
    ).toBe("&lt;4&gt;5");
  });
  test("an object that only looks like markup is refused", () => {
    expect(() => anyJsx("p", { children: { value: "<b>", toString: () => "<b>" } })).toThrow(TypeError);
    expect(() => anyJsx("p", { children: () => "<b>" })).toThrow(TypeError);
  });
  test("raw() is written as it is, which is why only an allow-list may use it", () => {
    expect(html(<p>{raw("<b>1</b>")}</p>)).toBe("<p><b>1</b></p>");
  });
  test("a promise throws instead of printing its name or turning the page into a promise", () => {
    expect(() => anyJsx("p", { children: Promise.resolve("x") })).toThrow("await promises");
    expect(() => anyJsx("p", { children: ["a", [Promise.resolve("x")]] })).toThrow("await promises");
    expect(() => anyJsx(async () => raw("x"), {})).toThrow("await promises");
    expect(() => anyJsx("p", { title: Promise.resolve("x") })).toThrow(TypeError);
  });
  test("a component may render nothing", () => {
    const Nothing = ({ when }: { when: boolean }) => (when ? <b>1</b> : null);
    expect(html(<p>{<Nothing when={false} />}</p>)).toBe("<p></p>");
  });
  test("a text area keeps a leading newline, which a parser would drop", () => {
    expect(html(<textarea>{"\n x"}</textarea>)).toBe("<textarea>\n\n x</textarea>");
  });
  test("void elements have no end tag and refuse children", () => {
    expect(html(<input name="a" />)).toBe('<input name="a"/>');
    expect(() => anyJsx("br", { children: "x" })).toThrow("no children");
  });
});

describe("attributes", () => {
  test("values are escaped and cannot leave their quotes", () => {
    expect(html(<p title={'" onclick="x" <&>'}>a</p>)).toBe('<p title="&quot; onclick=&quot;x&quot; &lt;&amp;&gt;">a</p>');
  });
  test("false, null and undefined leave the attribute out, true writes its name, aria-* writes the word", () => {
    expect(html(<input disabled={true} checked={false} title={undefined} aria-invalid={true} aria-required={false} data-find={true} />)).toBe(
      '<input disabled aria-invalid="true" aria-required="false" data-find/>',
    );
  });
  test("class takes a list and leaves out what is off", () => {
    expect(html(<p class={["a", false, null, "b"]}>x</p>)).toBe('<p class="a b">x</p>');
  });
  test("the renderer's own special props are refused, because they bypass escaping", () => {
    for (const name of ["attrs", "safe", "of", "className", "dangerouslySetInnerHTML"]) expect(() => anyJsx("p", { [name]: "x" })).toThrow(TypeError);
    expect(() => anyJsx("tag", { of: "script" })).toThrow(TypeError);
  });
  test("names from outside cannot become tags or attributes", () => {
    expect(() => anyJsx("p", { 'x onclick="y"': "1" })).toThrow("bad attribute name");
    expect(() => anyJsx("p onclick=x", {})).toThrow("bad tag name");
    expect(() => anyJsx("p", { "data-hx-get": "/x" })).toThrow("switched off");
  });
  test("handlers, style and srcdoc take raw() only", () => {
    for (const name of ["onclick", "onerror", "ONLOAD", "style", "srcdoc", "hx-on:click", "hx-on::after:swap"])
      expect(() => anyJsx("div", { [name]: "alert(1)" })).toThrow("raw() only");
  });
  test("script and style bodies take raw() only", () => {
    expect(() => anyJsx("script", { children: "alert(1)" })).toThrow("raw() only");
    expect(() => anyJsx("style", { children: ["a", "b"] })).toThrow("raw() only");
    expect(html(<script src="/assets/app.js" defer></script>)).toBe('<script src="/assets/app.js" defer></script>');
  });
  test("values that htmx would evaluate throw", () => {
    expect(() => anyJsx("div", { "hx-vals": "js:{a:1}" })).toThrow("evaluated");
    expect(() => anyJsx("div", { "hx-headers": " javascript:x" })).toThrow("evaluated");
    expect(() => anyJsx("div", { "hx-confirm": "js:confirm()" })).toThrow("evaluated");
    expect(() => anyJsx("div", { "hx-trigger": "click[ctrlKey]" })).toThrow("evaluated");
    expect(html(<div hx-trigger="live:messages from:body throttle:1s" hx-vals='{"a":1}' />)).toContain("hx-trigger");
  });
});

describe("addresses", () => {
  const bad = ["javascript:x", "JaVaScRiPt:x", "java\tscript:x", " \u0000javascript:x", "\u00a0javascript:x", "data:text/html,x", "vbscript:x"];
  const worse = ["blob:x", "file:///etc/passwd", "view-source:x", "ms-word:x"];
  test("an address a browser would run, or that leaves the web, throws in every attribute that takes one", () => {
    for (const name of ["href", "src", "action", "formaction", "xlink:href", "poster", "hx-get", "hx-post", "hx-delete", "hx-push-url"])
      for (const url of [...bad, ...worse]) expect(() => anyJsx("a", { [name]: url })).toThrow("unsafe url");
  });
  test("pages, fragments, queries, mail and the web pass", () => {
    for (const url of ["/runs/run_1", "?since=24h:00", "#a:b", "./x", "a/b:c", "https://example.org/a?b=javascript:c", "mailto:a@example.org", ""])
      expect(html(<a href={url}>x</a>)).toStartWith("<a href=");
  });
});

describe("hostile text", () => {
  for (const [index, payload] of PAYLOADS.entries())
    test(`payload ${index + 1} comes out as text, in an element and in an attribute`, () => {
      const out = html(<p title={payload}>{payload}</p>);
      const [, title = "", body = ""] = /^<p title="([^"]*)">([^<]*)<\/p>$/s.exec(out) ?? [];
      expect(decoded(body)).toBe(payload);
      expect(decoded(title)).toBe(payload);
    });
});

test("types refuse what the runtime would refuse", () => {
  const later = Promise.resolve("x");
  const Late = async ({ a }: { a: string }) => <b>{a}</b>;
  const Named = ({ name }: { name: string }) => <b>{name}</b>;
  const wrong: (() => unknown)[] = [
    // @ts-expect-error a promise is no child
    () => <p>{later}</p>,
    // @ts-expect-error a promise is no child of SVG either
    () => <g>{later}</g>,
    // @ts-expect-error a component is not async
    () => <Late a="1" />,
    // @ts-expect-error an object is no child
    () => <p>{{}}</p>,
    // @ts-expect-error a promise is no address
    () => <p hx-get={later} />,
    // @ts-expect-error style takes raw() only
    () => <p style="color:red" />,
    // @ts-expect-error something that looks like markup is not markup
    () => <p>{{ value: "<b>", toString: () => "", toJSON: () => "" }}</p>,
    // @ts-expect-error the renderer's own prop
    () => <p safe>x</p>,
  ];
  for (const render of wrong) expect(render).toThrow();
  const typos: unknown[] = [
    // @ts-expect-error a misspelled attribute
    <p titel="/x">x</p>,
    // @ts-expect-error a tag that does not exist
    <nope-tag />,
    // @ts-expect-error a missing prop
    <Named />,
  ];
  expect(typos).toHaveLength(3);
});

test("there is one Html class in development and production", async () => {
  const development = await import("../../src/views/jsx/jsx-dev-runtime.ts");
  expect(development.Html).toBe(Html);
  expect(development.Fragment).toBe(Fragment);
  expect(<p>x</p> instanceof Html).toBe(true);
});

test("a whole page opens with the doctype", () => {
  expect(wholePage(<html lang="en"></html>)).toBe('<!doctype html><html lang="en"></html>');
});

const root = join(import.meta.dir, "../..");
/** Files that may declare markup as trusted, each with its reason. */
const RAW_ALLOWED = new Set<string>([
  "src/views/ui/icon.tsx", // our own drawings, constants of icon-paths.ts
]);
test("raw() is used by no file outside the allow-list", async () => {
  const users: string[] = [];
  for await (const file of new Glob("src/**/*.{ts,tsx}").scan(root)) {
    if (file.startsWith("src/views/jsx/")) continue;
    if (/(?<!String\.)\braw\s*\(|\bnew Html\s*\(|\braw\b.*from ".*jsx-runtime/.test(await Bun.file(join(root, file)).text())) users.push(file);
  }
  expect(users.filter((file) => !RAW_ALLOWED.has(file))).toEqual([]);
});

/** @jsxImportSource #jsx */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Glob } from "bun";
import { type Child, Fragment } from "../../src/views/jsx/jsx-runtime.ts";
import { STORIES, StoriesPage } from "../../src/views/stories.tsx";
import { ICON_NAMES, Icon } from "../../src/views/ui/icon.tsx";
import { SoloLayout } from "../../src/views/ui/layout.tsx";
import { SignIn } from "../../src/views/ui/signin.tsx";
import { STATES, Status, stateOf } from "../../src/views/ui/status.tsx";
import { payloadPage } from "../browser/payload-page.tsx";

const NOW = Date.UTC(2026, 10, 30, 14, 2, 10);
const root = join(import.meta.dir, "../..");
const markup = (child: Child) => Fragment({ children: child }).value;

type Element = { tag: string; attributes: [string, string][] };
/** Every element of a rendering, as a parser sees it. */
async function elements(html: string): Promise<Element[]> {
  const found: Element[] = [];
  await new HTMLRewriter()
    .on("*", { element: (element) => void found.push({ tag: element.tagName, attributes: [...element.attributes] as [string, string][] }) })
    .transform(new Response(html))
    .text();
  return found;
}

/** What no page of ours may contain, as a reason, or undefined when an element is fine. */
function objection({ tag, attributes }: Element): string | undefined {
  const attribute = (name: string) => attributes.find(([key]) => key === name)?.[1];
  if (tag === "style") return "a style element";
  if (tag === "script" && attribute("src") === undefined) return "an inline script";
  if (["iframe", "object", "embed", "base"].includes(tag)) return `<${tag}>`;
  for (const [name, value] of attributes) {
    if (/^(on|hx-on|data-hx-|style$|srcdoc$)/i.test(name)) return `${tag} ${name}`;
    if (/^(href|src|action|formaction|hx-get|hx-post)$/.test(name) && /^([a-z]+:)?\/\//i.test(value)) return `${tag} ${name} to another host`;
    if (/^(href|src|action)$/.test(name) && /^\s*(javascript|data|vbscript):/i.test(value)) return `${tag} ${name} ${value}`;
    if (name.startsWith("hx-") && (/^\s*(js|javascript):/.test(value) || (name === "hx-trigger" && value.includes("["))))
      return `${tag} ${name} is evaluated`;
  }
  return undefined;
}

const PAGES: [string, string][] = [
  [
    "the story page",
    StoriesPage({ now: NOW, theme: "dark", events: "/ui/events?project=a", navHref: "/ui/nav", palette: { href: "/ui/palette" } }).value,
  ],
  [
    "the sign-in page",
    (
      <SoloLayout title="Sign in" now={NOW} theme="auto">
        <SignIn
          action="/session"
          hub="127.0.0.1:4319"
          back="/runs/run_1"
          idleHours={12}
          notice={{ tone: "attn", title: "That link was used.", text: "Ask for a new one." }}
        />
      </SoloLayout>
    ).value,
  ],
  ["every payload in every place", payloadPage().value],
];

describe("rendered pages", () => {
  for (const [name, html] of PAGES) {
    test(`${name} has no inline script, style or handler, and points to no other host`, async () => {
      const all = await elements(html);
      expect(all.length).toBeGreaterThan(20);
      expect(all.map(objection).filter(Boolean)).toEqual([]);
    });
    test(`${name} has no id twice`, async () => {
      const ids = (await elements(html)).flatMap(({ attributes }) => attributes.filter(([key]) => key === "id").map(([, value]) => value));
      expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([]);
    });
  }
  test("the check sees what it is looking for", async () => {
    for (const bad of [
      '<p style="x">',
      "<style>",
      "<script>1</script>",
      '<a href="//evil.example">',
      '<b onclick="x">',
      '<a href=" javascript:x">',
      '<i hx-vals="js:x">',
    ])
      expect((await elements(bad)).map(objection).filter(Boolean)).toHaveLength(1);
  });
  test("a payload brings no element of its own", async () => {
    const tags = (await elements(payloadPage().value)).map(({ tag }) => tag);
    expect(new Set(tags)).toEqual(
      new Set("section div p svg path span bdi a code mark pre button input strong rect circle".split(" ").filter((tag) => tags.includes(tag))),
    );
  });
  test("fragments of agent text are switched off for htmx", async () => {
    const blocks = (await elements(payloadPage().value)).filter(({ attributes }) =>
      attributes.some(([, value]) => /untrusted__text|^code$/.test(value)),
    );
    expect(blocks.length).toBeGreaterThan(40);
    expect(blocks.every(({ attributes }) => attributes.some(([name]) => name === "hx-ignore"))).toBe(true);
  });
});

/** The components and helpers that a file defines, each with its text. */
const componentsOf = (text: string): [name: string, body: string][] =>
  text.split(/^(?=(?:export )?(?:const|function) )/m).flatMap((part) => {
    const name = /^(?:export )?(?:const|function) (\w+)\b/.exec(part)?.[1];
    return name === undefined || !/=>|^(?:export )?function/m.test(part) ? [] : [[name, part] as [string, string]];
  });
/** Components that no story reaches. */
function missingIn(stories: string, components: ReadonlyMap<string, string>): string[] {
  const reached = new Set<string>();
  const visit = (text: string) => {
    for (const [, name = ""] of text.matchAll(/(?:<(?=[A-Z])|\b(?=\w+\())(\w+)/g)) {
      if (reached.has(name) || !components.has(name)) continue;
      reached.add(name);
      visit(components.get(name)!);
    }
  };
  visit(stories);
  return [...components.keys()].filter((name) => /^[A-Z][a-z]/.test(name) && !reached.has(name)).sort();
}

describe("stories", () => {
  test("ids are unique and every story renders something", () => {
    const ids = STORIES.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { render } of STORIES) expect(markup(render(NOW)).length).toBeGreaterThan(50);
  });
  test("every component is shown, by itself or as a part of one that is", async () => {
    const texts = async (pattern: string) => Array.fromAsync(new Glob(pattern).scan(root), (file) => Bun.file(join(root, file)).text());
    const components = new Map((await texts("src/views/ui/*.tsx")).flatMap(componentsOf));
    expect(components.size).toBeGreaterThan(100);
    const stories = [...(await texts("src/views/stories/*.tsx")), ...(await texts("src/views/stories.tsx"))].join("\n");
    expect(missingIn(stories, components)).toEqual([]);
    components.set("Forgotten", "<p>nobody shows me</p>");
    components.set("OnlyItShows", "");
    components.set("Forgotten", "<OnlyItShows />");
    expect(missingIn(stories, components)).toEqual(["Forgotten", "OnlyItShows"]);
  });
});

describe("icons and states", () => {
  test("every icon has a drawing, and a name without one is refused", () => {
    for (const name of ICON_NAMES) expect((<Icon name={name} />).value).toMatch(/<(path|circle|rect)/);
    expect(() => <Icon name={"nothing" as never} />).toThrow("no icon");
  });
  test("every state has a tone and an icon, and states of one tone that people compare differ in shape", () => {
    for (const [state, [tone, icon]] of Object.entries(STATES)) {
      expect(["ok", "run", "attn", "bad", "mute"]).toContain(tone);
      expect(ICON_NAMES).toContain(icon);
      expect((<Status state={state as never} why="because" />).value).toContain(`status--${tone}`);
    }
    const shapes = (["completed", "failed", "waiting", "uncertain", "blocked", "running", "paused", "cancelled", "queued", "unknown"] as const).map(
      (state) => STATES[state][1],
    );
    expect(new Set(shapes).size).toBe(shapes.length);
  });
  test("every status the sync contract knows is a state, and an unknown word is said to be unknown", () => {
    const wire =
      "queued offered accepted declined expired created preparing pending running waiting blocked_uncertain cancelling cancelled completed failed skipped passed dispatched executing reattaching retry_pending result_recorded terminal starting settling connection_lost settled planned delivered acknowledged rejected active idle closed";
    for (const word of wire.split(" ")) expect([word, stateOf(word)]).not.toEqual([word, "unknown"]);
    expect(stateOf("blocked_uncertain")).toBe("uncertain");
    for (const word of ["levitating", "constructor", "__proto__", "toString"]) expect(stateOf(word)).toBe("unknown");
  });
});

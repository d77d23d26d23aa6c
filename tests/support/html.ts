// Pages read as a browser reads them: by selector, as text.

/** The text of each element that matches, in order, white space folded, a space where an element begins. Hidden characters come out as the tokens that are drawn for them. */
export function textsOf(html: string, selector: string): string[] {
  const found: string[] = [];
  const open: number[] = [];
  new HTMLRewriter()
    .on(selector, {
      element(element) {
        open.push(found.push("") - 1);
        element.onEndTag(() => void open.pop());
      },
    })
    .on("*", {
      element() {
        for (const index of open) found[index] += " ";
      },
      text({ text }) {
        for (const index of open) found[index] += text;
      },
    })
    .transform(html);
  return found.map((text) => decoded(text).replace(/\s+/g, " ").trim());
}

/** A member of each element that matches. */
export function attributesOf(html: string, selector: string, name: string): (string | null)[] {
  const found: (string | null)[] = [];
  new HTMLRewriter()
    .on(selector, {
      element(element) {
        const value = element.getAttribute(name);
        found.push(value === null ? null : decoded(value));
      },
    })
    .transform(html);
  return found;
}

/** Where the first link with this text leads. */
export const hrefOf = (html: string, text: string): string | null | undefined => attributesOf(html, "a", "href")[textsOf(html, "a").indexOf(text)];

/** Names of all elements and attributes of a page, for what must never be among them. */
export function markupOf(html: string): { elements: Set<string>; attributes: Set<string> } {
  const [elements, attributes] = [new Set<string>(), new Set<string>()];
  new HTMLRewriter()
    .on("*", {
      element(element) {
        elements.add(element.tagName);
        for (const [name] of element.attributes) attributes.add(name);
      },
    })
    .transform(html);
  return { elements, attributes };
}

const FOREIGN = /^(iframe|object|embed|base|math|style|b|img|link|meta|script)$/;
const DANGEROUS = /^on|^srcdoc$|^style$|^hx-on|^data-hx|^hx-vals|^sse|^hx-ext/;

/**
 * What a page has that only hostile text could have brought in: elements and attributes we never write.
 * @param own elements of the frame itself that are fine (its script, stylesheet and meta)
 */
export function intrudersOf(html: string, own: readonly string[] = ["link", "meta", "script"]): string[] {
  const { elements, attributes } = markupOf(html);
  const foreign = [...elements].filter((name) => FOREIGN.test(name) && !(html.startsWith("<!doctype") && own.includes(name)));
  return [...foreign, ...[...attributes].filter((name) => DANGEROUS.test(name))];
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", "#39": "'", "#x27": "'", "#34": '"' };
const decoded = (text: string) => text.replaceAll(/&(#?\w+);/g, (whole, name: string) => ENTITIES[name] ?? whole);

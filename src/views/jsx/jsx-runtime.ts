/// <reference types="@kitajs/html/jsx.d.ts" />
// The only way HTML comes into being: JSX rendered by @elysiajs/html, with everything escaped on the way in.
// Invariant: only an `Html` value is trusted markup; every other value is text, and what cannot be made safe throws.
//
// Alone, `Html.createElement` leaves text raw, escapes only the double quote in attributes, takes raw attribute
// source through `attrs`, lets `javascript:` links through and turns into a promise when a child is one. So it never
// sees a value of ours: text and attribute values reach it escaped, names are checked, its special props are refused.
import { Html as elements } from "@elysiajs/html";

/** Markup that is safe to write as it is. Made by JSX, or by `raw()` in the few files that may. */
export class Html {
  /** Makes the type nominal: an object that merely looks alike is not trusted. */
  declare private readonly trusted: true;
  constructor(readonly value: string) {}
  toString(): string {
    return this.value;
  }
  toJSON(): string {
    return this.value;
  }
}

/** Declares markup as trusted. Allowed only in the files that tests/tidy/exceptions.ts lists. */
export const raw = (trustedHtml: string): Html => new Html(trustedHtml);

/** What may stand between tags. No promise, no object: load the data first, then render. */
export type Child = Html | string | number | bigint | boolean | null | undefined | readonly Child[];

type AttributeValue = Html | string | number | bigint | boolean | null | undefined | readonly (string | number | boolean | null | undefined)[];
type Props = Record<string, unknown> & { children?: Child };
type Component = (props: any) => Html | null;

const ATTRIBUTES_REMEMBERED_MAX = 500;
const TAG = /^[a-zA-Z][a-zA-Z0-9-]*$/;
const ATTRIBUTE = /^[A-Za-z_:][A-Za-z0-9_:.-]*$/;
const VOID = new Set("area base br col embed hr img input link meta source track wbr".split(" "));
const KITA_SPECIAL = new Set(["attrs", "safe", "of", "className", "$elysia", "dangerouslySetInnerHTML"]);
const SCRIPT_ATTRIBUTE = /^(on|hx-on|srcdoc$|style$)/i;
const URL_ATTRIBUTE =
  /^(href|src|action|formaction|poster|cite|data|ping|background|manifest|xlink:href|hx-(get|post|put|patch|delete|query|action|push-url|replace-url)|hx-sse:connect)$/i;
const EVALUATED_BY_HTMX = /^hx-(vals|headers|confirm|trigger|config)(:|$)/i;
const SAFE_SCHEMES = /^(https?|mailto)$/i;

type Rule = "text" | "url" | "script" | "evaluated" | "aria";
const rules = new Map<string, Rule>();

function ruleFor(name: string): Rule {
  const known = rules.get(name);
  if (known) return known;
  if (!ATTRIBUTE.test(name)) throw new TypeError(`bad attribute name ${JSON.stringify(name)}`);
  if (KITA_SPECIAL.has(name)) throw new TypeError(`the attribute ${name} is not supported, because it bypasses escaping`);
  if (/^data-hx-/i.test(name)) throw new TypeError(`${name}: htmx reads hx-* only, data-hx-* is switched off`);
  const rule: Rule = SCRIPT_ATTRIBUTE.test(name)
    ? "script"
    : URL_ATTRIBUTE.test(name)
      ? "url"
      : EVALUATED_BY_HTMX.test(name)
        ? "evaluated"
        : name.startsWith("aria-")
          ? "aria"
          : "text";
  if (rules.size < ATTRIBUTES_REMEMBERED_MAX) rules.set(name, rule);
  return rule;
}

/** Throws when a browser would run the address instead of fetching it. Browsers ignore control characters and spaces in a scheme, so we do too. */
function checkUrl(name: string, url: string): void {
  if (!url.includes(":")) return;
  const scheme = /^([^/?#:]*):/.exec(url.replace(/[\x00-\x20\x7f-\xa0]/g, ""))?.[1];
  if (scheme !== undefined && !SAFE_SCHEMES.test(scheme)) throw new TypeError(`unsafe url in ${name}`);
}

function attributeText(name: string, rule: Rule, value: AttributeValue): string {
  if (Array.isArray(value) && name === "class") return value.filter(Boolean).join(" ");
  if (value instanceof Html || typeof value === "string" || typeof value === "number" || typeof value === "bigint") {
    const text = String(value);
    if (rule === "script" && !(value instanceof Html)) throw new TypeError(`${name} takes raw() only`);
    if (rule === "url") checkUrl(name, text);
    if (rule === "evaluated" && (/^\s*(js|javascript):/i.test(text) || (/^hx-trigger/i.test(name) && text.includes("["))))
      throw new TypeError(`${name} would be evaluated as script`);
    return text;
  }
  throw new TypeError(`bad value for the attribute ${name}`);
}

/** Attributes as `Html.createElement` takes them: names checked, values already escaped, nothing else left. */
function attributes(props: Props): Record<string, string | true> | null {
  let out: Record<string, string | true> | null = null;
  for (const name in props) {
    if (name === "children" || name === "key") continue;
    let value = props[name] as AttributeValue;
    if (value === undefined || value === null) continue;
    const rule = ruleFor(name);
    if (rule === "aria" && typeof value === "boolean") value = String(value);
    if (value === false) continue;
    const written = value === true ? true : Bun.escapeHTML(attributeText(name, rule, value));
    if (written === "" && name === "class") continue;
    out ??= {};
    out[name] = written;
  }
  return out;
}

function text(child: Child): string {
  if (child instanceof Html) return child.value;
  if (typeof child === "string") return Bun.escapeHTML(child);
  if (child === null || child === undefined || typeof child === "boolean") return "";
  if (Array.isArray(child)) {
    let out = "";
    for (const one of child) out += text(one);
    return out;
  }
  if (typeof child === "number" || typeof child === "bigint") return String(child);
  throw new TypeError(`cannot render ${Object.prototype.toString.call(child)}: await promises and pick fields before rendering`);
}

/** What the compiler turns every tag into. Throws TypeError for a bad name, an unsafe address, script that is not `raw()`, a promise or an object. */
export function jsx(type: string | Component, props: Props): Html {
  if (typeof type === "function") return new Html(text(type(props)));
  if (!TAG.test(type) || type === "tag") throw new TypeError(`bad tag name ${JSON.stringify(type)}`);
  const children = props.children;
  const attrs = attributes(props);
  if (children === undefined || children === null) return new Html(elements.createElement(type, attrs) as string);
  if (VOID.has(type)) throw new TypeError(`<${type}> has no children`);
  if ((type === "script" || type === "style") && !(children instanceof Html)) throw new TypeError(`<${type}> takes raw() only`);
  let inner = text(children);
  // A parser drops the first newline inside these two, so a text that begins with one needs another.
  if ((type === "pre" || type === "textarea") && inner.startsWith("\n")) inner = `\n${inner}`;
  return new Html(elements.createElement(type, attrs, inner) as string);
}
export { jsx as jsxDEV, jsx as jsxs };

/** `<>…</>`: children without an element around them. */
export const Fragment = ({ children }: { children?: Child }): Html => new Html(text(children));

/** A whole page as sent to the browser: the doctype and `root`, an `<html>` element. */
export const wholePage = (root: Html): string => `<!doctype html>${root.value}`;

type Kita = globalThis.JSX.IntrinsicElements;
type Special = "children" | "safe" | "style" | "attrs" | "className" | "of";
type Verb = "get" | "post" | "put" | "patch" | "delete";
type Status = "4xx" | "5xx" | "401" | "403" | "404" | "409" | "422";
type HtmxName =
  | `hx-${Verb | "boost" | "confirm" | "config" | "disable" | "encoding" | "headers" | "ignore" | "include" | "indicator" | "preserve"}`
  | `hx-${"push-url" | "replace-url" | "select" | "select-oob" | "swap" | "swap-oob" | "sync" | "target" | "trigger" | "validate" | "vals"}`
  | `hx-${"headers" | "target" | "swap" | "include" | "sync"}:inherited`
  | `hx-status:${Status}`;
/** htmx 4 attributes. TypeScript leaves other names with a hyphen (`data-*`, `aria-*`) unchecked; the runtime refuses what it cannot render. */
type Htmx = { [name in HtmxName]?: string | number | boolean | null | undefined };
/** SVG has too many attributes to list: any name, but only values that can be rendered. */
type Svg = { [name: string]: Child };
type Own<T> = string extends keyof T ? Svg : Omit<T, Special> & { children?: Child; style?: Html } & Htmx;

export namespace JSX {
  export type Element = Html;
  export type ElementType = keyof IntrinsicElements | Component;
  export interface ElementChildrenAttribute {
    children: unknown;
  }
  export type IntrinsicElements = { [K in Exclude<keyof Kita, "tag" | number>]: Own<Kita[K]> };
}

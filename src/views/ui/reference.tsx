// How KXM names things: ids, chips, links and the people and programs who act.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Icon, type IconName } from "./icon.tsx";
import { Name, visible } from "./untrusted.tsx";

const ID_SHOWN_WHOLE = 17;
const NAME_SHOWN_WHOLE = 28;

/** An id as people read it: `run_5b1e…c07d`. The whole id belongs in a title or a link beside it. */
export function shortId(id: string): string {
  if (id.length <= ID_SHOWN_WHOLE) return id;
  const prefix = /^[a-z]{1,6}_/.exec(id)?.[0] ?? "";
  return `${id.slice(0, prefix.length + 4)}…${id.slice(-4)}`;
}

/** One of our ids, shortened unless `whole`. */
export const Id = ({ value, whole }: { value: string; whole?: boolean }) => (
  <code class="id" title={whole || value.length <= ID_SHOWN_WHOLE ? undefined : value}>
    {whole ? value : shortId(value)}
  </code>
);

/** A small fact with an icon: a branch, a hash, a lease. A link when it has an address. */
export const Chip = ({ icon, href, title, children }: { icon?: IconName; href?: string; title?: string; children: Child }) =>
  href ? (
    <a class="chip" href={href} title={title}>
      {icon && <Icon name={icon} />}
      {children}
    </a>
  ) : (
    <span class="chip" title={title}>
      {icon && <Icon name={icon} />}
      {children}
    </span>
  );

/** A link that means "go there": in the accent colour. */
export const Link = ({ href, children }: { href: string; children: Child }) => (
  <a class="link" href={href}>
    {children}
  </a>
);

/** A link inside rows and sentences: in the ink around it, underlined. */
export const Ref = ({ href, title, children }: { href: string; title?: string; children: Child }) => (
  <a class="ref" href={href} title={title}>
    {children}
  </a>
);

const GLYPHS: Record<string, string> = {
  claude: "Cl",
  codex: "Cx",
  gemini: "Ge",
  opencode: "Oc",
  pi: "Pi",
  copilot: "Co",
  qwen: "Qw",
  command: ">_",
  operator: "Op",
  webhook: "Wh",
  hub: "Hb",
};

/** Who acts: the two letters of its program and its name (agent text, so marked and isolated). `harness` may be a word we do not know. */
export const Who = ({ name, harness, href }: { name: string; harness?: string; href?: string }) => (
  <span class="who">
    <span class="glyph" title={harness && visible(harness)} aria-hidden="true">
      {(harness && Object.hasOwn(GLYPHS, harness) && GLYPHS[harness]) || "··"}
    </span>
    {href ? (
      <a class="ref" href={href} title={name.length > NAME_SHOWN_WHOLE ? visible(name) : undefined}>
        <Name text={name} />
      </a>
    ) : (
      <span title={name.length > NAME_SHOWN_WHOLE ? visible(name) : undefined}>
        <Name text={name} />
      </span>
    )}
  </span>
);

/** The grey line under a title or a cell. */
export const Sub = ({ children }: { children: Child }) => <span class="sub">{children}</span>;
/** Grey words. */
export const Quiet = ({ children }: { children: Child }) => <span class="quiet">{children}</span>;
/** A number beside a head or a tab, exact to 1,000 and `1,000+` beyond. */
export const Count = ({ of }: { of: number | string }) => <span class="count">{typeof of === "number" ? counted(of) : of}</span>;

const COUNTED_EXACTLY_MAX = 1000;
/** `1,000`, or `1,000+` when there are more: lists are never counted further. */
export const counted = (n: number): string => (n > COUNTED_EXACTLY_MAX ? "1,000+" : n.toLocaleString("en"));

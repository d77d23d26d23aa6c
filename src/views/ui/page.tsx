// What stands inside a page: its head, its sections, its columns. Rules, not boxes.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Count } from "./reference.tsx";

type Crumb = { text: Child; href?: string };
type PageHeadProps = { title: Child; crumbs?: readonly Crumb[]; sub?: readonly Child[]; actions?: Child };

/** The head of a page: its only `h1`, where it belongs, a line of facts, its actions. */
export const PageHead = ({ title, crumbs, sub, actions }: PageHeadProps) => (
  <>
    {crumbs && (
      <nav aria-label="Breadcrumb">
        <ol class="crumbs">
          {crumbs.map(({ text, href }) => (
            <li>{href ? <a href={href}>{text}</a> : text}</li>
          ))}
        </ol>
      </nav>
    )}
    <header class="head">
      <div class="head__text">
        <h1 class="head__title">{title}</h1>
        {sub && (
          <div class="head__sub">
            {sub
              .filter((one) => one !== null && one !== undefined && one !== false)
              .map((one) => (
                <span>{one}</span>
              ))}
          </div>
        )}
      </div>
      {actions && <div class="head__actions">{actions}</div>}
    </header>
  </>
);

/** One honest sentence before any number. Figures in it are `LedeLink`s. */
export const Lede = ({ children }: { children: Child }) => <p class="lede">{children}</p>;

/** A figure of the sentence, linked to what it counts. `attn` and `bad` only when it asks for a person or is broken. */
export const LedeLink = ({ href, tone, children }: { href: string; tone?: "attn" | "bad"; children: Child }) => (
  <a class={tone && `lede__${tone}`} href={href}>
    {children}
  </a>
);

type SectionProps = {
  title: Child;
  /** How many things it shows: a number, or words like `6 of 8`. */
  count?: number | string;
  /** Half a sentence beside the title. */
  note?: Child;
  /** Links or a small control at the right. */
  more?: Child;
  id?: string;
  /** Room above what is inside, when it brings none of its own: fields, text, buttons. */
  padded?: boolean;
  children?: Child;
};

/** A head, a rule, the thing. It is a size container: what is inside answers to its width. */
export const Section = ({ title, count, note, more, id, padded, children }: SectionProps) => (
  <section class="section" id={id}>
    <div class="section__head">
      <h2>{title}</h2>
      {count !== undefined && <Count of={count} />}
      {note && <span class="section__note">{note}</span>}
      {more && <span class="section__more">{more}</span>}
    </div>
    {padded ? <div class="section__body">{children}</div> : children}
  </section>
);

/** A note under the rows of a section. */
export const SectionNote = ({ children }: { children: Child }) => <p class="section__note">{children}</p>;

/** Two columns: the work and what surrounds it (20 rem), or two equal ones. `below`: they follow other sections. */
export const Columns = ({ main, aside, even, below }: { main: Child; aside: Child; even?: boolean; below?: boolean }) => (
  <div class={["cols", even && "cols--even", below && "section"]}>
    <div>{main}</div>
    {even ? <div>{aside}</div> : <aside>{aside}</aside>}
  </div>
);

/** Label and value pairs. */
export const Facts = ({ rows }: { rows: readonly (readonly [label: Child, value: Child])[] }) => (
  <dl class="kv">
    {rows.map(([label, value]) => (
      <>
        <dt>{label}</dt>
        <dd>{value}</dd>
      </>
    ))}
  </dl>
);

/** Controls side by side that wrap. */
export const Row = ({ children }: { children: Child }) => <div class="row">{children}</div>;

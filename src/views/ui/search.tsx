// Search results: hits with the found words marked, and what narrows them.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Icon, type IconName } from "./icon.tsx";
import { Count } from "./reference.tsx";
import { marked } from "./untrusted.tsx";

/** Text with the ranges that matched, as [from, to) in characters, in order and apart. Hidden characters are marked too. */
export const Found = ({ text, ranges }: { text: string; ranges: readonly (readonly [number, number])[] }) => {
  const out: Child[] = [];
  let at = 0;
  for (const [from, to] of ranges) {
    out.push(marked(text.slice(at, from)), <mark>{marked(text.slice(from, to))}</mark>);
    at = to;
  }
  return (
    <bdi>
      {out}
      {marked(text.slice(at))}
    </bdi>
  );
};

export type Hit = { id: string; icon: IconName; title: Child; href: string; snippet: Child; kind: string; when?: Child };

/** Hits, newest first. */
export const Hits = ({ of }: { of: readonly Hit[] }) => (
  <ul class="hits" role="list">
    {of.map(({ id, icon, title, href, snippet, kind, when }) => (
      <li id={id} data-row>
        <Icon name={icon} />
        <div>
          <div class="hits__title">
            <a class="ref" href={href}>
              {title}
            </a>
          </div>
          <div class="hits__snip">{snippet}</div>
        </div>
        <span class="sub nowrap">
          {kind}
          {when && <> · {when}</>}
        </span>
      </li>
    ))}
  </ul>
);

export type Facet = { text: Child; href: string /** Left out where counting would cost a whole scan. */; count?: number | string; current?: boolean };

/** Ways to narrow: one group per question, each value a link with its count. */
export const Facets = ({ groups, note }: { groups: readonly { title: string; facets: readonly Facet[] }[]; note?: Child }) => (
  <aside class="facets" aria-label="Narrow the results">
    {groups.map(({ title, facets }) => (
      <div>
        <h3>{title}</h3>
        {facets.map(({ text, href, count, current }) => (
          <a href={href} aria-current={current ? "true" : undefined}>
            {text} {count !== undefined && <Count of={count} />}
          </a>
        ))}
      </div>
    ))}
    {note && <p class="section__note">{note}</p>}
  </aside>
);

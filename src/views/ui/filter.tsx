// Finding one's way in a list: the filter bar with qualifiers and completions, saved views, tabs. All of it lives in the URL.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Keys } from "./button.tsx";
import { Icon } from "./icon.tsx";
import { Count } from "./reference.tsx";

/** `key:value` as already applied; `without` is the address of the list without it. */
export type Qualifier = { key: string; value: string; without: string };

type FilterBarProps = {
  /** Where the list lives; the form goes there with GET. */
  action: string;
  /** Qualifiers in force. Each is sent as a `q` of its own, before the typed one: join all `q` with a space. */
  qualifiers?: readonly Qualifier[];
  /** What is typed. */
  value?: string;
  placeholder: string;
  /** Parameters of the address to keep (`project`, `box`). */
  keep?: Record<string, string>;
  /** Address of the fragment with completions (`Suggestions`), asked while typing with `q`. */
  completions?: string;
  id?: string;
};

/** The one way to narrow a list. `/` puts the cursor here. */
export const FilterBar = ({ action, qualifiers = [], value, placeholder, keep = {}, completions, id = "filter" }: FilterBarProps) => (
  <div class="filter-bar">
    <form class="filter" role="search" action={action} id={id}>
      <Icon name="filter" />
      {Object.entries(keep).map(([name, kept]) => (
        <input type="hidden" name={name} value={kept} />
      ))}
      {qualifiers.map((one) => (
        <span class="qchip">
          <b>{one.key}:</b>
          <span class="qchip__v" title={one.value}>
            {one.value}
          </span>
          <input type="hidden" name="q" value={`${one.key}:${one.value}`} />
          <a href={one.without} aria-label={`Remove filter ${one.key}:${one.value}`}>
            <Icon name="x" />
          </a>
        </span>
      ))}
      {completions ? (
        <input
          data-find
          id={`${id}-q`}
          aria-label="Filter"
          name="q"
          placeholder={placeholder}
          value={value}
          autocomplete="off"
          role="combobox"
          aria-autocomplete="list"
          aria-expanded="false"
          aria-controls={`${id}-completions`}
          hx-get={completions}
          hx-trigger="input delay:120ms, focus"
          hx-target={`#${id}-completions`}
          hx-swap="innerHTML"
          hx-sync="this:replace"
        />
      ) : (
        <input data-find id={`${id}-q`} aria-label="Filter" name="q" placeholder={placeholder} value={value} autocomplete="off" />
      )}
      <Keys of={["/"]} />
    </form>
    {completions && <div class="suggest suggest--over" id={`${id}-completions`} role="listbox" aria-label="Completions"></div>}
  </div>
);

/** `inserts` replaces the last word in the bar; the script does it on Tab, Enter or a click. */
export type Suggestion = { inserts: string; shows: Child; note?: Child; count?: number | string };

/** The options of a completion list: what the `completions` fragment answers. */
export const Suggestions = ({ of }: { of: readonly Suggestion[] }) => (
  <>
    {of.map(({ inserts, shows, note, count }, i) => (
      <div role="option" class="suggest__option" id={`completion-${i}`} tabindex="-1" aria-selected={false} data-insert={inserts}>
        <code>{shows}</code>
        {note && <span class="quiet">{note}</span>}
        {count !== undefined && <Count of={count} />}
      </div>
    ))}
  </>
);

export type Tab = { text: Child; href: string; count?: number | string; current?: boolean };

/** Views of one thing, each with an address. */
export const Tabs = ({ label, tabs }: { label: string; tabs: readonly Tab[] }) => (
  <nav class="tabs" aria-label={label}>
    {tabs.map(({ text, href, count, current }) => (
      <a href={href} aria-current={current ? "page" : undefined}>
        {text} {count !== undefined && <Count of={count} />}
      </a>
    ))}
  </nav>
);

// What happened: a feed of sentences, and the events of a run as rows of evidence.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Icon, type IconName } from "./icon.tsx";
import type { Tone } from "./status.tsx";
import { Clock } from "./time.tsx";

export type FeedItem = { id?: string; icon: IconName; tone: Tone; text: Child; when?: Child };

/** Sentences, newest first. `id` keeps a row in place when newer ones arrive above it. */
export const Feed = ({ items }: { items: readonly FeedItem[] }) => (
  <ol class="feed">
    {items.map(({ id, icon, tone, text, when }) => (
      <li id={id} class={`is-${tone}`}>
        <Icon name={icon} />
        <span>{text}</span>
        {when}
      </li>
    ))}
  </ol>
);

/** `href` leads to the event in full. */
export type EventRow = { seq: number; at: number; type: string; text: Child; href?: string } | { gap: Child };

/** Events of one run by sequence; `gap` is a hatched row for what is folded or for silence. `prefix` makes the row ids unique on the page. */
export const EventList = ({ rows, prefix = "event" }: { rows: readonly EventRow[]; prefix?: string }) => (
  <ol class="events" role="list">
    {rows.map((row) =>
      "gap" in row ? (
        <li class="events__gap">
          <Icon name="list" size="s" />
          {row.gap}
        </li>
      ) : (
        <li id={`${prefix}-${row.seq}`}>
          <span class="events__seq num">{row.seq}</span>
          <Clock at={row.at} ms />
          <span class="events__type">
            {row.href ? (
              <a class="ref" href={row.href}>
                {row.type}
              </a>
            ) : (
              row.type
            )}
          </span>
          <span>{row.text}</span>
        </li>
      ),
    )}
  </ol>
);

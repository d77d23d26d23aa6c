// Icons and the logo, drawn inline so that they take the colour of the text around them.
/** @jsxImportSource #jsx */
import { raw } from "../jsx/jsx-runtime.ts";
import { MARK, PATHS, WORD } from "./icon-paths.ts";

export type IconName = keyof typeof PATHS;
export const ICON_NAMES = Object.keys(PATHS) as IconName[];

const DRAWINGS = new Map(ICON_NAMES.map((name) => [name, raw(PATHS[name])]));
const WORD_DRAWING = raw(WORD);
const MARK_DRAWING = raw(MARK);

/**
 * One icon. Decorative unless `label` says what it means to somebody who cannot see it.
 * `size`: s 14 px, l 20 px, otherwise 16 px. Throws for a name that has no drawing.
 */
export const Icon = ({ name, size, label }: { name: IconName; size?: "s" | "l"; label?: string }) => {
  const drawing = DRAWINGS.get(name);
  if (!drawing) throw new TypeError(`no icon ${name}`);
  return (
    <svg
      class={["icon", size && `icon--${size}`]}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-linecap="round"
      stroke-linejoin="round"
      role={label ? "img" : undefined}
      aria-label={label}
      aria-hidden={label ? undefined : "true"}
    >
      {drawing}
    </svg>
  );
};

/** An icon inside a drawing, at `x`, `y` of the drawing's own grid. */
export const IconAt = ({ name, x, y }: { name: IconName; x: number; y: number }) => (
  <svg
    class="n-icon"
    x={x}
    y={y}
    width="16"
    height="16"
    viewBox="0 0 16 16"
    fill="none"
    stroke="currentColor"
    stroke-width="1.5"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    {DRAWINGS.get(name)}
  </svg>
);

/** K X M, the X carrying the hub. */
export const Wordmark = () => (
  <svg class="wordmark" viewBox="0 0 50 18" role="img" aria-label="KXM">
    {WORD_DRAWING}
  </svg>
);

/** The mark alone: four agents on two strands that cross in one hub. */
export const Mark = () => (
  <svg class="mark" viewBox="0 0 24 24" role="img" aria-label="KXM">
    {MARK_DRAWING}
  </svg>
);

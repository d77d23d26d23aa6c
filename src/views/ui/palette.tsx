// The command palette: places, agents, runs and actions, found by a few letters.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Keys } from "./button.tsx";
import { Icon, type IconName } from "./icon.tsx";

/** One line of the palette. `opens` names a dialog to open instead of an address. */
export type PaletteItem = { icon: IconName; text: Child; hint?: Child; href: string };
export type PaletteGroup = { title: string; items: readonly PaletteItem[] };

/** The lines of the palette: what its fragment answers to `q`. */
export const PaletteResults = ({ groups, id = "palette" }: { groups: readonly PaletteGroup[]; id?: string }) => {
  let n = 0;
  return (
    <>
      {groups.map(({ title, items }) => (
        <div role="group" aria-label={title}>
          <div class="palette__group" aria-hidden="true">
            {title}
          </div>
          {items.map(({ icon, text, hint, href }) => {
            const index = n++;
            return (
              <a class="palette__item" role="option" id={`${id}-${index}`} aria-selected={index === 0} href={href} tabindex="-1">
                <Icon name={icon} />
                <span>{text}</span>
                {hint && <span class="palette__hint">{hint}</span>}
              </a>
            );
          })}
        </div>
      ))}
      {n === 0 && <p class="palette__none">Nothing by that name. Search looks inside messages and runs.</p>}
    </>
  );
};

type PaletteProps = {
  groups: readonly PaletteGroup[];
  /** Address of the fragment that answers `q` with PaletteResults; without it only the given lines are searched. */
  href?: string;
  /** Id of the dialog, and beginning of the ids inside. */
  id?: string;
};

/** The palette, without the dialog around it. */
export const Palette = ({ groups, href, id = "palette" }: PaletteProps) => (
  <>
    <div class="palette__box">
      <Icon name="search" />
      <input
        id={`${id}-q`}
        aria-label="Command"
        role="combobox"
        aria-autocomplete="list"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        placeholder="Go to, or do…"
        autocomplete="off"
        name="q"
        hx-get={href}
        hx-trigger={href && "input delay:120ms"}
        hx-target={href && `#${id}-list`}
        hx-swap={href && "innerHTML"}
        hx-sync={href && "this:replace"}
      />
      <Keys of={["Esc"]} />
    </div>
    <div id={`${id}-list`} role="listbox" aria-label="Results" class="palette__list" data-filtered={href ? undefined : true}>
      <PaletteResults groups={groups} id={id} />
    </div>
    <div class="palette__foot">
      <span>
        <Keys of={["↑", "↓"]} /> move
      </span>
      <span>
        <Keys of={["Enter"]} /> open
      </span>
      {href && (
        <>
          <span>
            <code>&gt;</code> only actions
          </span>
          <span>
            <code>@</code> only agents
          </span>
        </>
      )}
    </div>
  </>
);

/** The palette as the dialog that Ctrl/⌘ K opens. */
export const CommandPalette = (props: PaletteProps) => (
  <dialog class="dialog palette" id="palette" aria-label="Command palette">
    <Palette {...props} />
  </dialog>
);

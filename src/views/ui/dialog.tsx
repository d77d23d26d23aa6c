// Dialogs. Invariant: a title names the thing by our id, never by the name an agent gave itself, and what is destructive says what it will do.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Button, Csrf } from "./button.tsx";
import { Icon } from "./icon.tsx";

type DialogProps = { id: string; title: Child; children: Child; foot?: Child };

/** Title and way out, and the place for what fails while the dialog is open: the page's own is behind it. Live updates leave it alone. */
const DialogHead = ({ id, title }: { id: string; title: Child }) => (
  <>
    <div class="dialog__head">
      <h2 id={`${id}-title`}>{title}</h2>
      <button class="btn btn--quiet btn--icon btn--s" type="button" data-close aria-label="Close" title="Close">
        <Icon name="x" />
      </button>
    </div>
    <div class="told" role="status" aria-live="polite" hx-morph-skip-children></div>
  </>
);
/** Something to read or choose from, over the page. Opened by a Button with `opens`. */
export const Dialog = ({ id, title, children, foot }: DialogProps) => (
  <dialog class="dialog" id={id} aria-labelledby={`${id}-title`}>
    <DialogHead id={id} title={title} />
    <div class="dialog__body">{children}</div>
    {foot && <div class="dialog__foot">{foot}</div>}
  </dialog>
);

type ConfirmDialogProps = {
  id: string;
  /** A question with our id: `Force release db:migrations, token 17?`. */
  title: Child;
  /** The resource it posts to. */
  action: string;
  csrf: string;
  /** What will happen, and fields: a reason, a choice. */
  children: Child;
  /** What the acting button says. */
  confirm: string;
  /** What leaving says: `Leave it`, `Keep waiting`. */
  cancel: string;
  kind?: "primary" | "danger";
  /** Selector of what the answer replaces; without it the answer is a page. */
  target?: string;
};

/** Asks before something is changed. A plain form; the script closes it when the answer was good. */
export const ConfirmDialog = ({ id, title, action, csrf, children, confirm, cancel, kind = "danger", target }: ConfirmDialogProps) => (
  <dialog class="dialog" id={id} aria-labelledby={`${id}-title`}>
    <form
      method="post"
      action={action}
      hx-post={target ? action : undefined}
      hx-target={target}
      hx-swap={target ? "outerMorph" : undefined}
      hx-disable={target ? "find .dialog__foot button" : undefined}
    >
      <DialogHead id={id} title={title} />
      <div class="dialog__body form">
        <Csrf token={csrf} />
        {children}
      </div>
      <div class="dialog__foot">
        <button class="btn" type="button" data-close>
          {cancel}
        </button>
        <Button kind={kind} type="submit">
          {confirm}
        </Button>
      </div>
    </form>
  </dialog>
);

const KEYS: readonly (readonly [group: string, keys: readonly (readonly [what: string, keys: readonly string[]])[]])[] = [
  [
    "Anywhere",
    [
      ["Command palette", ["Ctrl", "K"]],
      ["Search or filter", ["/"]],
      ["Pause updates", ["p"]],
      ["New message, where one can be sent", ["c"]],
      ["These keys", ["?"]],
    ],
  ],
  [
    "On a list",
    [
      ["Next, previous", ["j", "k"]],
      ["Open", ["Enter"]],
      ["Select", ["x"]],
      ["Approve", ["a"]],
      ["Reject", ["r"]],
    ],
  ],
];

/** What the keys do. @param places names of places and the key after `g` that leads there */
export const KeySheet = ({ places }: { places: readonly (readonly [text: string, key: string])[] }) => (
  <div class="keysheet">
    {[...KEYS, ["Go to", places.map(([text, key]) => [text, ["g", key]] as const)] as const].map(([group, keys]) => (
      <div>
        <h3>{group}</h3>
        <ul role="list">
          {keys.map(([what, combination]) => (
            <li>
              <span>{what}</span>
              <span class="keys">
                {combination.map((key) => (
                  <kbd class="kbd">{key}</kbd>
                ))}
              </span>
            </li>
          ))}
        </ul>
      </div>
    ))}
  </div>
);

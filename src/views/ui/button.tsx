// Buttons, keys and the one-button forms that change something.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Icon, type IconName } from "./icon.tsx";

type Kind = "primary" | "danger" | "warn" | "quiet";

type ButtonProps = {
  children?: Child;
  /** One primary per view. `danger` fills, `warn` only colours; both end in "…" and ask. */
  kind?: Kind;
  icon?: IconName;
  small?: boolean;
  /** The key that presses it: shown, and bound by the script within the current row or the page. */
  hotkey?: string;
  /** The key is not drawn: on rows, where each has the same. */
  silentKey?: boolean;
  /** A link that looks like a button. */
  href?: string;
  /** Id of the dialog it opens. With `href` as well, that is where it leads without script. */
  opens?: string;
  type?: "button" | "submit";
  name?: string;
  value?: string;
  /** Id of the form it submits when it stands outside. */
  form?: string;
  /** Another address than the form's. */
  formaction?: string;
  disabled?: boolean;
  busy?: boolean;
  /** What an icon-only button does. */
  label?: string;
  /** One of several: whether this one is chosen. */
  pressed?: boolean;
  /** Text that pressing copies. */
  copies?: string;
};

/** A button, or a link that looks like one when it has an address. */
export const Button = (props: ButtonProps) => {
  const { children, kind, icon, small, hotkey, href, label } = props;
  const iconOnly = children === undefined;
  const classes = ["btn", kind && `btn--${kind}`, small && "btn--s", iconOnly && "btn--icon"];
  const inner = (
    <>
      {icon && <Icon name={icon} />}
      {props.copies === undefined ? children : <span>{children}</span>}
      {hotkey && !props.silentKey && <Kbd>{hotkey}</Kbd>}
    </>
  );
  if (href !== undefined)
    return (
      <a class={classes} href={href} aria-label={label} title={iconOnly ? label : undefined} data-open={props.opens} data-key={hotkey}>
        {inner}
      </a>
    );
  return (
    <button
      class={classes}
      type={props.type ?? "button"}
      name={props.name}
      value={props.value}
      form={props.form}
      formaction={props.formaction}
      disabled={props.disabled}
      aria-busy={props.busy ? "true" : undefined}
      aria-pressed={props.pressed}
      aria-label={label}
      title={iconOnly ? label : undefined}
      data-open={props.opens}
      data-copy={props.copies}
      data-key={hotkey}
    >
      {inner}
    </button>
  );
};

/** Buttons that exclude one another: a range, an order. `label` names the choice. */
export const ButtonGroup = ({ label, children }: { label: string; children: Child }) => (
  <span class="group" role="group" aria-label={label}>
    {children}
  </span>
);

/** One key as drawn on a keyboard. Decorative: what it does is said elsewhere. */
const Kbd = ({ children }: { children: Child }) => (
  <kbd class="kbd" aria-hidden="true">
    {children}
  </kbd>
);

/** Keys pressed together or in turn. */
export const Keys = ({ of }: { of: readonly string[] }) => (
  <span class="keys" aria-hidden="true">
    {of.map((key) => (
      <kbd class="kbd">{key}</kbd>
    ))}
  </span>
);

/** The token that proves a form of ours was sent. Every form that changes something has one. */
export const Csrf = ({ token }: { token: string }) => <input type="hidden" name="csrf" value={token} />;

type ActProps = {
  /** The resource it posts to; a plain form post without script, a fragment with it. */
  action: string;
  csrf: string;
  /** Selector of what the answer replaces (its own form unless given). */
  target?: string;
  /** Further fields. */
  fields?: Record<string, string | number>;
  id?: string;
  children: Child;
};

/** A form of one or a few submit buttons that acts on one resource. Works without script; with it the answer is morphed into `target`. */
export const Act = ({ action, csrf, target, fields = {}, id, children }: ActProps) => (
  <form class="act" id={id} method="post" action={action} hx-post={action} hx-target={target ?? "this"} hx-swap="outerMorph" hx-disable="find button">
    <Csrf token={csrf} />
    {Object.entries(fields).map(([name, value]) => (
      <input type="hidden" name={name} value={String(value)} />
    ))}
    {children}
  </form>
);

// Fields and checks. An error stands under its field with an icon and a sentence, and the field points to it.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Icon } from "./icon.tsx";

/** Fields of a form under one another. */
export const Fields = ({ tight, children }: { tight?: boolean; children: Child }) => <div class={["form", tight && "form--tight"]}>{children}</div>;

type FieldProps = { id: string; label: Child; hint?: Child; error?: string };

/** A label, a control with the same id, a hint or an error. Use the fields below; this is for controls of another kind. */
export const Field = ({ id, label, hint, error, children }: FieldProps & { children: Child }) => (
  <div class="field">
    <label for={id}>{label}</label>
    {children}
    {hint && (
      <span class="field__hint" id={`${id}-hint`}>
        {hint}
      </span>
    )}
    {error && (
      <span class="field__error" id={`${id}-error`}>
        <Icon name="bad" />
        {error}
      </span>
    )}
  </div>
);

const described = ({ id, hint, error }: FieldProps) => ({
  "aria-describedby": [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(" ") || undefined,
  "aria-invalid": error ? "true" : undefined,
});

type TextFieldProps = FieldProps & {
  name: string;
  value?: string;
  placeholder?: string;
  type?: "text" | "number" | "password" | "search" | "email" | "datetime-local";
  required?: boolean;
  disabled?: boolean;
  autocomplete?: string;
  maxlength?: number;
  inputmode?: "text" | "numeric" | "decimal";
  /** The first thing to fill in of a dialog or a form that was asked for: the cursor begins here. */
  autofocus?: boolean;
};

/** One line. */
export const TextField = (props: TextFieldProps) => (
  <Field {...props}>
    <input
      class="input"
      id={props.id}
      name={props.name}
      type={props.type ?? "text"}
      value={props.value}
      placeholder={props.placeholder}
      required={props.required}
      disabled={props.disabled}
      autocomplete={props.autocomplete ?? "off"}
      maxlength={props.maxlength}
      inputmode={props.inputmode}
      autofocus={props.autofocus}
      {...described(props)}
    />
  </Field>
);

type TextAreaFieldProps = FieldProps & { name: string; value?: string; placeholder?: string; required?: boolean; maxlength?: number; rows?: number };

/** Several lines. Half-typed text survives live updates. */
export const TextAreaField = (props: TextAreaFieldProps) => (
  <Field {...props}>
    <textarea
      class="input"
      id={props.id}
      name={props.name}
      placeholder={props.placeholder}
      required={props.required}
      maxlength={props.maxlength}
      rows={props.rows === undefined ? undefined : String(props.rows)}
      {...described(props)}
    >
      {props.value ?? ""}
    </textarea>
  </Field>
);

export type Option = { value: string; text: string };

/** One of a few. */
export const SelectField = (props: FieldProps & { name: string; options: readonly Option[]; value?: string; disabled?: boolean }) => (
  <Field {...props}>
    <select class="input" id={props.id} name={props.name} disabled={props.disabled} {...described(props)}>
      {props.options.map(({ value, text }) => (
        <option value={value} selected={value === props.value}>
          {text}
        </option>
      ))}
    </select>
  </Field>
);

type CheckProps = {
  name: string;
  value?: string;
  label: Child;
  note?: Child;
  checked?: boolean;
  kind?: "checkbox" | "radio" | "switch";
  disabled?: boolean;
  required?: boolean;
};

/** A box, a radio button or a switch with its words; `note` is a line below them. */
export const Check = ({ name, value, label, note, checked, kind = "checkbox", disabled, required }: CheckProps) => (
  <label class="check">
    <input
      type={kind === "radio" ? "radio" : "checkbox"}
      class={kind === "switch" ? "switch" : undefined}
      name={name}
      value={value}
      checked={checked}
      disabled={disabled}
      required={required}
    />
    <span>
      {label}
      {note && <small>{note}</small>}
    </span>
  </label>
);

/** Checks that belong together under one (hidden) name. */
export const Choices = ({ legend, tight, children }: { legend: string; tight?: boolean; children: Child }) => (
  <fieldset class={["form", tight && "form--tight"]}>
    <legend class="visually-hidden">{legend}</legend>
    {children}
  </fieldset>
);

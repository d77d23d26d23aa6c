// Asking before something is changed: a button, the dialog it opens, and the same question as a part of the page for those without script.
/** @jsxImportSource #jsx */
import { here } from "./address.ts";
import type { Child } from "./jsx/jsx-runtime.ts";
import type { Visit } from "./screen.ts";
import { Button, Csrf } from "./ui/button.tsx";
import { ConfirmDialog } from "./ui/dialog.tsx";
import type { IconName } from "./ui/icon.tsx";
import { Row, Section } from "./ui/page.tsx";

export type Question = {
  /** Its name in the address (`?act=cancel`) and part of its id. */
  name: string;
  /** What the button that leads to it says, and how it looks. */
  button: Child;
  icon?: IconName;
  kind?: "warn" | "primary";
  small?: boolean;
  /** A question that names the thing by our id. */
  title: string;
  action: string;
  confirm: string;
  cancel: string;
  confirmKind?: "primary" | "danger";
  /** What will happen, and the fields. @param id to make ids of fields from */
  fields: (id: string) => Child;
};

/** The button and its dialog. */
export const Ask = ({ question, visit }: { question: Question; visit: Visit }) => {
  const { name, button, icon, kind, small, title, action, confirm, cancel, confirmKind, fields } = question;
  const id = `ask-${name}`;
  return (
    <>
      <Button href={here(visit.url, { act: name })} opens={id} icon={icon} kind={kind} small={small}>
        {button}
      </Button>
      <ConfirmDialog id={id} title={title} action={action} csrf={visit.csrf} target={`#${id}`} confirm={confirm} cancel={cancel} kind={confirmKind}>
        {fields(id)}
      </ConfirmDialog>
    </>
  );
};

/** The question that the address asks, as a part of the page. Nothing when it asks none of these. */
export const AskedHere = ({ questions, visit }: { questions: readonly Question[]; visit: Visit }) => {
  const asked = questions.find(({ name }) => name === visit.url.searchParams.get("act"));
  if (!asked) return null;
  return (
    <Section title={asked.title} padded>
      <form class="form" method="post" action={asked.action}>
        <Csrf token={visit.csrf} />
        {asked.fields(`here-${asked.name}`)}
        <Row>
          <Button kind={asked.confirmKind ?? "danger"} type="submit">
            {asked.confirm}
          </Button>
          <Button href={here(visit.url, { act: undefined })}>{asked.cancel}</Button>
        </Row>
      </form>
    </Section>
  );
};

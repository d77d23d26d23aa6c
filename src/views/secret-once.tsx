// A secret that was just made, on a page of its own. Invariant: it is in this one answer and nowhere else: no address, no waiting result, no log.
/** @jsxImportSource #jsx */
import type { Child, Html } from "./jsx/jsx-runtime.ts";
import type { PageProps, Visit } from "./screen.ts";
import { Button } from "./ui/button.tsx";
import { Command, Notice } from "./ui/feedback.tsx";
import { PageHead, Row, Section } from "./ui/page.tsx";

type SecretOnce = {
  title: string;
  place: NonNullable<PageProps["place"]>;
  /** The page it belongs to: its name and its address. */
  from: { text: string; href: string };
  secret: string;
  /** What it is for, and where to put it. */
  children: Child;
};

/** The whole document with the secret. Answers are never kept by a browser (`no-store`). */
export const secretOnce = (visit: Visit, { title, place, from, secret, children }: SecretOnce): Promise<Html> =>
  visit.page({
    title,
    place,
    live: false,
    children: (
      <>
        <PageHead title={title} crumbs={[{ text: from.text, href: from.href }, { text: title }]} />
        <Section title="The secret" padded>
          <Notice tone="attn" title="Copy it now: it is shown this once." />
          <Command text={secret} />
          <p>{children}</p>
          <Row>
            <Button kind="primary" href={from.href}>
              It is copied
            </Button>
          </Row>
        </Section>
      </>
    ),
  });

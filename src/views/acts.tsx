// What an act answers: to htmx the changed fragment with the result beside it, to a plain form the way on with the result waiting there.
/** @jsxImportSource #jsx */
import type { AuditNote } from "../db/tx.ts";
import { ERRORS, HubError } from "../protocol/errors.ts";
import { PAGE_HEADERS } from "./headers.ts";
import type { Html } from "./jsx/jsx-runtime.ts";
import type { FlashText, Visit } from "./screen.ts";
import { FlashBeside } from "./ui/feedback.tsx";

type Acted = {
  /** Where a plain form leads, and htmx when there is no fragment. */
  to: string;
  flash: FlashText;
  /** Renders what the act changed, after it; only for htmx. */
  fragment?: () => Promise<Html> | Html;
};

/** The answer to an act that was carried out. */
export async function acted(visit: Visit, { to, flash, fragment }: Acted): Promise<Html | Response> {
  if (!visit.partial || !fragment) return visit.redirect(to, flash);
  return (
    <>
      {await fragment()}
      <FlashBeside {...flash} />
    </>
  );
}

/** The visitor as somebody who acts: for events and the audit. */
export function personOf({ by, form }: Visit): { id: string; audit: AuditNote } {
  const reason = form.get("reason")?.trim() || undefined;
  return { id: by.actor, audit: { role: by.role, origin: by.origin, ...(reason !== undefined && { reason }) } };
}

/**
 * Acts, and says what came of it: to htmx the result alone, upon which every region of the page looks again; to a plain form a page that shows it.
 * @param to the page a plain form leads to, also when the act was refused
 * @param work the act itself; returns what to say
 * @throws what `work` throws when htmx asks (the refusal is then shown where results are), and unknown errors
 */
export async function act(visit: Visit, to: string, work: () => Promise<FlashText>): Promise<Response> {
  if (visit.partial) {
    const said = await work();
    return new Response((<FlashBeside {...said} />).value, {
      headers: { ...PAGE_HEADERS, "hx-reswap": "none", "hx-trigger": "live:all" },
    });
  }
  try {
    return visit.redirect(to, await work());
  } catch (error) {
    if (!(error instanceof HubError) || error.status >= 500) throw error;
    return visit.redirect(to, refusal(error));
  }
}

/** A refusal as people read it: a sentence, and what to do next. */
export function refusal(error: HubError): FlashText {
  const { message, extras, code } = error;
  const sentence = `${message.charAt(0).toUpperCase()}${message.slice(1)}${/[.!?]$/.test(message) ? "" : "."}`;
  return { tone: "bad", text: sentence, hint: typeof extras["hint"] === "string" ? extras["hint"] : ERRORS[code].hint };
}

/** A field of a form that must be filled in, trimmed and within bounds. @throws HubError protocol_error naming it */
export function fieldOf(form: URLSearchParams, name: string, max: number): string {
  const value = form.get(name)?.trim() ?? "";
  if (value === "") throw new HubError("protocol_error", `${name} is missing`);
  if (value.length > max) throw new HubError("protocol_error", `${name} has more than ${max} characters`);
  return value;
}

/** The same for a field that may be empty. */
export const optionalFieldOf = (form: URLSearchParams, name: string, max: number): string | undefined =>
  (form.get(name)?.trim() ?? "") === "" ? undefined : fieldOf(form, name, max);

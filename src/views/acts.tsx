// What an act answers: to htmx the changed fragment with the result beside it, to a plain form the way on with the result waiting there.
import type { AuditNote } from "../db/tx.ts";
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

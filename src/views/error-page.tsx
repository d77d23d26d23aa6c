// What a person sees when something is refused or broken: the sentence, what to do next, and the request's id. Never a stack.
/** @jsxImportSource #jsx */

import { cookieValues } from "./cookies.ts";
import type { Html } from "./jsx/jsx-runtime.ts";
import { Button } from "./ui/button.tsx";
import { Flash } from "./ui/feedback.tsx";
import { SoloLayout, THEME_COOKIE, themeOf } from "./ui/layout.tsx";
import { Link } from "./ui/reference.tsx";

type ErrorPageProps = {
  status: number;
  message: string;
  hint: string;
  requestId: string;
  partial: boolean;
  /** The page that was probably meant. */
  meant?: string | undefined;
  now: number;
  request: Request;
};

/** A page of its own, or for htmx a result in the page that is there. */
export function errorPage({ status, message, hint, requestId, partial, meant, now, request }: ErrorPageProps): Html {
  const sentence = `${message.charAt(0).toUpperCase()}${message.slice(1)}${/[.!?]$/.test(message) ? "" : "."}`;
  if (partial) return <Flash tone="bad" text={sentence} hint={hint} />;
  return (
    <SoloLayout title={sentence} now={now} theme={themeOf(cookieValues(request, THEME_COOKIE)[0])}>
      <div>
        <h1>{status === 404 ? "Not here" : status === 403 ? "Not allowed" : status >= 500 ? "That did not work" : "Not accepted"}</h1>
        <p>{sentence}</p>
        <p>{hint}</p>
      </div>
      {meant && (
        <p>
          Did you mean <Link href={meant}>{meant}</Link>?
        </p>
      )}
      <Button href="/" kind="primary">
        Overview
      </Button>
      <p class="section__note">
        request <code>{requestId}</code>
      </p>
    </SoloLayout>
  );
}

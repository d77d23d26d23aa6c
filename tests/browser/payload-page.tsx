// Every payload in every place that takes agent text: as a live region, so that it arrives both with a page and through htmx.
/** @jsxImportSource #jsx */
import type { Html } from "../../src/views/jsx/jsx-runtime.ts";
import { Flash, Notice } from "../../src/views/ui/feedback.tsx";
import { Shown } from "../../src/views/ui/inbox.tsx";
import { liveAttributes } from "../../src/views/ui/live.tsx";
import { Id, Who } from "../../src/views/ui/reference.tsx";
import { Found } from "../../src/views/ui/search.tsx";
import { Status } from "../../src/views/ui/status.tsx";
import { Line, Untrusted } from "../../src/views/ui/untrusted.tsx";
import { PAYLOADS } from "../views/payloads.ts";

let round = 0;

export const payloadPage = (): Html => (
  <section id="hostile" data-round={String(++round)} {...liveAttributes({ topic: "hostile", href: "/ui/hostile" })}>
    {PAYLOADS.map((payload, index) => (
      <div>
        <p data-payload={index} title={payload}>
          {payload}
        </p>
        <Untrusted by={payload} text={payload} note="message body" />
        <Who name={payload} harness={payload} href="/agents/agt_1" />
        <Line text={payload} />
        <Id value={payload} />
        <Found text={payload} ranges={[[0, 1]]} />
        <Status state="failed" why={payload} word={payload} />
        <Shown says={payload} hash={payload} code={payload} place={payload} />
        <Flash tone="bad" text={payload} hint={payload} />
        <Notice tone="mute" title={payload}>
          {payload}
        </Notice>
        <input aria-label="Sample" value={payload} />
      </div>
    ))}
  </section>
);

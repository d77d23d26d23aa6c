// Live regions and what the page knows about its own freshness.
//
// One stream per page carries signals, never HTML: `event: <topic>`, `id: <generation>.<seq>`, data `{"at": <commit, epoch ms>}`.
// `event: beat` with `{"now": <hub's clock, epoch ms>}` comes on connecting and at least every 10 s; `event: reset` means
// "refetch everything". The script turns a signal into the DOM event `live:<topic>`, on which each region of that topic
// refetches its own fragment and morphs it in, so that focus, selection, scroll, open details and half-typed text survive.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";

/** At most one refetch per region in this time; the last signal of a burst always leads to one. */
const REFETCH_EVERY_MS = 300;

export type LiveRegion = {
  /** What changes it, one or several: `messages`, `runs`, `agents`, `leases`, `approvals`, `sync`, … */
  topic: string | readonly string[];
  /** Address of its fragment, which answers this same region with the same id. */
  href: string;
};

/** A fragment that fails leaves what was there. */
export const KEEPS_WHAT_WAS = { "hx-status:4xx": "swap:none", "hx-status:5xx": "swap:none" } as const;

/** The attributes of a live region, for elements other than the `div` of Live (a `nav`, a `tbody`). They need an id. */
export function liveAttributes({ topic, href }: LiveRegion) {
  const topics = typeof topic === "string" ? [topic] : topic;
  return {
    "data-live-topics": topics.join(" "),
    "hx-get": href,
    "hx-trigger": [...topics, "all"].map((name) => `live:${name} from:body throttle:${REFETCH_EVERY_MS}ms`).join(", "),
    "hx-target": "this",
    "hx-swap": "outerMorph",
    "hx-sync": "this:queue last",
    ...KEEPS_WHAT_WAS,
  } as const;
}

/** A region that keeps itself true. `id` is stable and equal in page and fragment. */
export const Live = ({ id, topic, href, children, className }: LiveRegion & { id: string; children: Child; className?: string }) => (
  <div id={id} class={className} {...liveAttributes({ topic, href })}>
    {children}
  </div>
);

export type LiveState = "still" | "on" | "wait" | "retry" | "paused" | "off" | "gone";
const WORDS = {
  still: "Not live",
  on: "Live",
  wait: "Connecting",
  retry: "Reconnecting",
  paused: "Paused",
  off: "Hub unreachable",
  gone: "Signed out",
} as const;

/** Live, reconnecting, paused or off, and how far behind. A page is sent as `still`; the script knows better once its stream is open. Pressing it pauses. A `sample` is not this page's own. */
export const LiveIndicator = ({ state = "still", detail = "", sample }: { state?: LiveState; detail?: string; sample?: boolean }) => (
  <button class={["live", state !== "on" && `live--${state}`]} type="button" data-live={!sample} title="Pause updates (p)">
    <span class="live__dot"></span>
    <span data-word>{WORDS[state]}</span>
    <span class="live__age" data-behind>
      {detail}
    </span>
  </button>
);

// Serves the story page with the real policy, in process, plus a small live page whose signals a test sends by hand.
/** @jsxImportSource #jsx */

import { serveAsset } from "../../src/views/assets/assets.ts";
import { type Child, Fragment, type Html, wholePage } from "../../src/views/jsx/jsx-runtime.ts";
import { StoriesPage } from "../../src/views/stories.tsx";
import { Layout, SoloLayout, type Theme, themeOf } from "../../src/views/ui/layout.tsx";
import { SignIn } from "../../src/views/ui/signin.tsx";

export const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/** The hub's clock of these tests: nowhere near this machine's. */
export const NOW = Date.UTC(2026, 10, 30, 14, 2, 10);

export type Signal = { event: string; id?: string; data?: unknown };
export type StoriesServer = {
  url: string;
  /** What the live page shows; a test changes it and sends a signal. */
  fragments: Map<string, () => Child>;
  /** Fragments that are fetched only, not shown with the page. */
  hidden: Set<string>;
  /** The hub's clock, as beats tell it. */
  now: number;
  /** What a POST does and answers. */
  acts: Map<string, (request: Request) => Promise<Child>>;
  /** Requests for fragments, in order. */
  fetched: string[];
  /** Addresses at which streams were opened. */
  streams: string[];
  send: (signal: Signal) => void;
  /** Ends all streams; `refuse` answers new ones with 503 until set back. */
  drop: () => void;
  refuse: boolean;
  /** The session has ended: pages lead to the sign-in page. */
  signedOut: boolean;
  status: number;
  stop: () => Promise<void>;
};

const html = (page: Html, status = 200): Response =>
  new Response(wholePage(page), {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": CSP,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
    },
  });

const fragment = (children: Child, status: number): Response =>
  new Response(Fragment({ children }).value, { status, headers: { "content-type": "text/html; charset=utf-8", "cache-control": "no-store" } });

/** Starts it on a free port of the loopback address. */
export function serveStories(): StoriesServer {
  const streams = new Set<ReadableStreamDefaultController<string>>();
  const state: StoriesServer = {
    url: "",
    now: NOW,
    fragments: new Map(),
    acts: new Map(),
    hidden: new Set(),
    fetched: [],
    streams: [],
    refuse: false,
    signedOut: false,
    status: 200,
    send: ({ event, id, data = {} }) => {
      for (const stream of streams) stream.enqueue(`event: ${event}\n${id ? `id: ${id}\n` : ""}data: ${JSON.stringify(data)}\n\n`);
    },
    drop: () => {
      for (const stream of streams) stream.close();
      streams.clear();
    },
    stop: async () => {
      state.drop();
      await server.stop(true);
    },
  };
  const stream = (request: Request): Response => {
    let mine: ReadableStreamDefaultController<string>;
    const body = new ReadableStream<string>({
      start: (controller) => {
        mine = controller;
        streams.add(controller);
        controller.enqueue(`event: beat\ndata: {"now": ${state.now}}\n\n`);
        request.signal.addEventListener("abort", () => streams.delete(controller));
      },
      cancel: () => {
        streams.delete(mine);
      },
    });
    return new Response(body as never, { headers: { "content-type": "text/event-stream", "cache-control": "no-store" } });
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 60,
    fetch: async (request) => {
      const url = new URL(request.url);
      const theme = themeOf(/kxm_theme=(\w+)/.exec(request.headers.get("cookie") ?? "")?.[1]);
      const found = serveAsset(url.pathname, request.headers.get("accept-encoding") ?? "", request.headers.get("if-none-match"));
      if (found) return found;
      if (url.pathname === "/ui/events") {
        state.streams.push(url.pathname + url.search);
        return state.refuse ? new Response("no", { status: 503 }) : stream(request);
      }
      if (url.pathname === "/stories") return html(<StoriesPage now={NOW} theme={theme} only={url.searchParams.get("only") ?? undefined} />);
      if (url.pathname === "/sign-in") return html(<SignInPage theme={theme} />);
      if (url.pathname === "/live" && state.signedOut) return new Response(null, { status: 303, headers: { location: "/still" } });
      if (url.pathname === "/live") return html(<LivePage state={state} theme={theme} events="/ui/events?project=atlas&after=g1.7" />);
      if (url.pathname === "/still") return html(<LivePage state={state} theme={theme} />);
      const act = state.acts.get(url.pathname);
      if (act && request.method === "POST") {
        const answer = await act(request);
        return fragment(answer, state.status);
      }
      const make = state.fragments.get(url.pathname);
      if (!make) return new Response("nothing here", { status: 404 });
      state.fetched.push(url.pathname);
      return fragment(make(), state.status);
    },
  });
  state.url = `http://127.0.0.1:${server.port}`;
  return state;
}

const SignInPage = ({ theme }: { theme: Theme }): Html => (
  <SoloLayout title="Sign in" now={NOW} theme={theme}>
    <SignIn
      action="/sign-in"
      hub="127.0.0.1:4319"
      back="/runs/run_5b1e"
      idleHours={12}
      notice={{ tone: "attn", title: "That link was used already.", text: "Ask for a new one with the command below." }}
    />
  </SoloLayout>
);

const LivePage = ({ state, theme, events }: { state: StoriesServer; theme: Theme; events?: string }): Html => (
  <Layout
    title="Live"
    projects={[]}
    counts={{}}
    events={events}
    csrf="token-of-this-session"
    session={{ role: "operator", signOut: "/session/end" }}
    theme={theme}
    now={NOW}
    version="0.1.0"
  >
    <h1>Live</h1>
    {[...state.fragments].filter(([path]) => !state.hidden.has(path)).map(([, make]) => make())}
  </Layout>
);

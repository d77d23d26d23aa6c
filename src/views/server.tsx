// The dashboard: every screen of the list passes the same steps: admission, session, form secret, role, one call, headers. Errors are pages, too.
/** @jsxImportSource #jsx */
import { Elysia, NotFoundError } from "elysia";
import { type AdmissionRules, admit, checkOrigin } from "../http/admission.ts";
import { readBytes } from "../http/body.ts";
import { createRefusals, type Refusals } from "../http/refusals.ts";
import type { Hub } from "../hub/hub.ts";
import { describeError } from "../hub/log.ts";
import * as sessions from "../hub/sessions.ts";
import { ERRORS, HubError } from "../protocol/errors.ts";
import { formatCursor } from "../protocol/events.ts";
import { nearest } from "../protocol/nearest.ts";
import { ownAddress } from "./address.ts";
import { serveAsset } from "./assets/assets.ts";
import { cookieValues, csrfOf, maskedCsrf, sentCsrf, sessionCookieName } from "./cookies.ts";
import { errorPage } from "./error-page.tsx";
import { framed } from "./frame.tsx";
import { PAGE_HEADERS } from "./headers.ts";
import type { Answer, FlashText, Screen, Visit } from "./screen.ts";
import { SCREENS } from "./screens.ts";
import { signalsAnswer } from "./signals.ts";
import { signIn, signInPage, signOut } from "./signin.tsx";

type Incoming = { request: Request; params: Record<string, string>; server: { timeout(request: Request, seconds: number): void } | null };
const PROJECTS_MAX = 200; // projects a session is shown
const FLASHES_MAX = 1_000; // results that wait to be shown, over all sessions
/** Where a page shows what failed: in the dialog that is open, as everything else is behind it, else in its corner. Only one of the two fits. */
const FLASH_PLACE = "dialog:modal .told, body:not(:has(dialog:modal .told)) #flash";
const RANK = { viewer: 0, operator: 1, admin: 2 } as const;

/** The dashboard over one hub, as an Elysia app to mount beside the API. @param screens the list of screens; tests give their own  @param refusals shared with the API */
export function createViews(
  hub: Hub,
  rules: AdmissionRules,
  screens: readonly Screen[] = SCREENS,
  refusals: Refusals = createRefusals(hub.clock, () => hub.metrics.add("credentials_refused")),
) {
  const app = new Elysia({ strictPath: true, normalize: false });
  const flashes = new Map<string, FlashText[]>(); // by session, until the next page

  const answer = async (incoming: Incoming, work: (requestId: string) => Promise<Answer>): Promise<Response> => {
    const { request } = incoming;
    const { requestId } = admit(request, rules);
    hub.metrics.add("requests");
    try {
      checkOrigin(request, rules, request.method !== "GET" && request.method !== "HEAD");
      return compressed(request, rendered(await work(requestId), requestId));
    } catch (error) {
      return failed(hub, incoming, requestId, error);
    }
  };
  const visitScreen = (screen: Screen) => (context: unknown) => {
    const incoming = context as Incoming;
    return answer(incoming, async () => {
      const visit = await visitOf(hub, incoming, flashes);
      if (screen.method === "POST") sessions.requireCsrf(visit.session, sentCsrf(visit));
      if (screen.role !== "viewer") visit.require(screen.role);
      return screen.run(visit);
    });
  };
  for (const screen of screens) app.route(screen.method, screen.path, visitScreen(screen), { parse: "none" });
  app.get("/ui/events", (context) => {
    const incoming = context as unknown as Incoming;
    return answer(incoming, async () => {
      const { session, url } = await visitOf(hub, incoming, flashes);
      checkOrigin(incoming.request, rules, true);
      const project = session.project ?? (url.searchParams.get("project") || undefined);
      return signalsAnswer(hub, { request: incoming.request, server: incoming.server, session, project });
    });
  });
  app.get("/signin", (context) => answer(context as unknown as Incoming, () => signInPage(hub, refusals, context.request)));
  app.post("/signin", (context) => answer(context as unknown as Incoming, () => signIn(hub, refusals, context.request)), { parse: "none" });
  app.post(
    "/signout",
    (context) => answer(context as unknown as Incoming, async () => signOut(hub, await visitOf(hub, context as unknown as Incoming, flashes))),
    { parse: "none" },
  );
  app.get("/assets/:name", (context) =>
    answer(context as unknown as Incoming, async () => {
      const found = serveAsset(
        new URL(context.request.url).pathname,
        context.request.headers.get("accept-encoding") ?? "",
        context.request.headers.get("if-none-match"),
      );
      if (!found) throw new HubError("route_not_found", "there is no such file");
      return found;
    }),
  );
  app.get("/*", (context) => {
    if (!isForPeople(context.request)) throw new NotFoundError(); // the API says so in JSON
    return answer(context as unknown as Incoming, async () => {
      throw nowhere(new URL(context.request.url).pathname, screens);
    });
  });
  return app;
}

/** Whether a browser asks for a page: programs ask below /v1, or take no HTML. */
const isForPeople = ({ url, headers }: Request) =>
  /\btext\/html\b/.test(headers.get("accept") ?? "") && !/^\/(?:v1|mcp)(?:\/|$)/.test(new URL(url).pathname);

/** Says that an address leads nowhere, with the page that was probably meant. */
function nowhere(path: string, screens: readonly Screen[]): HubError {
  const pages = screens.filter((one) => one.method === "GET" && !/[:*.]|^\/ui\//.test(one.path)).map((one) => one.path);
  const meant = nearest(path.replace(/\/+$/, ""), pages);
  const hint = "A link may be older than this hub, or mistyped.";
  return new HubError("route_not_found", "there is no page at this address", { hint, ...(meant && meant !== "/" && { meant }) });
}

/** Who visits, and everything a screen may ask. @throws HubError session_required, role_forbidden */
async function visitOf(hub: Hub, { request, params }: Incoming, flashes: Map<string, FlashText[]>): Promise<Visit> {
  const now = hub.clock();
  const { session, secret } = await signedIn(hub, request, now);
  const url = new URL(request.url);
  const all = session.project === null ? (await hub.engine.read.projects.page("", PROJECTS_MAX)).map(({ project }) => project) : [session.project];
  const asked = url.searchParams.get("project") || undefined;
  const project = session.project ?? (asked === undefined || all.includes(asked) ? asked : undefined);
  // Taken before the screen reads anything: what is committed from here on reaches the page as a signal.
  const since =
    request.method === "GET" && project !== undefined
      ? formatCursor(hub.engine.generation, await hub.engine.read.events.lastSeq(project))
      : undefined;
  const form = request.method === "POST" ? await readForm(request) : new URLSearchParams();
  const visit: Visit = {
    hub,
    session,
    by: { actor: session.id, role: session.role, origin: "dashboard" },
    now,
    project,
    since,
    projects: all,
    url,
    params: params ?? {},
    form,
    partial: request.headers.get("hx-request") === "true",
    csrf: maskedCsrf(csrfOf(secret)),
    request,
    page: (props) => {
      const waiting = flashes.get(session.id) ?? [];
      flashes.delete(session.id);
      return framed(visit, props, waiting);
    },
    redirect: (to, flash) => {
      if (flash) {
        flashes.delete(flashes.size >= FLASHES_MAX ? flashes.keys().next().value! : "");
        flashes.set(session.id, [...(flashes.get(session.id) ?? []), flash].slice(-4));
      }
      return redirectTo(request, to);
    },
    require: (role) => {
      if (RANK[session.role] < RANK[role]) throw new HubError("role_forbidden", `this needs the role ${role}`);
    },
    requireProject: (wanted) => {
      if (session.project !== null && session.project !== wanted) throw new HubError("role_forbidden", "this session sees another project");
    },
  };
  return visit;
}

/** The first cookie of the right name that is a live session: somebody else's cookie of the same name must not lock anybody out. */
async function signedIn(hub: Hub, request: Request, now: number) {
  const values = cookieValues(request, sessionCookieName(request)).slice(0, 4);
  for (const secret of values) {
    const session = await sessions.authenticate(hub.engine.read, hub.seenSessions, secret, now).catch((error) => {
      if (error instanceof HubError && error.code === "session_required") return undefined;
      throw error;
    });
    if (session) return { session, secret };
  }
  throw new HubError("session_required", values.length > 0 ? "this session has ended" : "nobody is signed in here");
}

async function readForm(request: Request): Promise<URLSearchParams> {
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type))
    throw new HubError("unsupported_media_type", "a form must be sent as application/x-www-form-urlencoded");
  const form = new URLSearchParams(new TextDecoder().decode(await readBytes(request)));
  for (const [name, value] of form) if (`${name}${value}`.includes("\0")) throw new HubError("protocol_error", "the form holds a NUL character");
  return form;
}

/** Only addresses of this hub: never another host, whatever a parameter says. */
function redirectTo(request: Request, to: string): Response {
  const path = ownAddress(to);
  const headers = { "cache-control": "no-store", "referrer-policy": "no-referrer" };
  return request.headers.get("hx-request") === "true"
    ? new Response(null, { status: 200, headers: { ...headers, "hx-redirect": path } })
    : new Response(null, { status: 303, headers: { ...headers, location: path } });
}

function rendered(made: Answer, requestId: string, status = 200): Response {
  if ("html" in made) return rendered(made.html, requestId, made.status);
  if (made instanceof Response) {
    made.headers.set("x-request-id", requestId);
    return made;
  }
  const isDocument = made.value.startsWith("<html");
  return new Response(isDocument ? `<!doctype html>${made.value}` : made.value, { status, headers: { ...PAGE_HEADERS, "x-request-id": requestId } });
}

/**
 * A whole page, compressed for who can read that: what is shown first must be light. Fragments are not: an agent can make a page fetch them, and the
 * length of what is compressed together with an agent's text must tell nothing. Answers to forms may hold a secret that is shown once.
 */
async function compressed(request: Request, response: Response): Promise<Response> {
  const isPage =
    request.method === "GET" && request.headers.get("hx-request") !== "true" && response.headers.get("content-type")?.startsWith("text/html");
  if (!isPage || !/\bgzip\b/.test(request.headers.get("accept-encoding") ?? "")) return response;
  const { status, headers } = response;
  headers.set("content-encoding", "gzip");
  headers.set("vary", "accept-encoding");
  return new Response(Bun.gzipSync(await response.bytes(), { level: 6 }), { status, headers });
}

function failed(hub: Hub, incoming: Incoming, requestId: string, error: unknown): Response {
  const { request } = incoming;
  const known = error instanceof HubError ? error : new HubError("internal_error", "something went wrong inside the hub");
  hub.metrics.add("errors");
  if (known.status >= 500)
    hub.log({ event: "page_failed", level: "error", requestId, path: new URL(request.url).pathname, code: known.code, error: describeError(error) });
  const wantsPage = request.headers.get("hx-request") !== "true";
  if (known.code === "session_required" && wantsPage) {
    const { pathname, search } = new URL(request.url);
    const leadsBack = request.method === "GET" && pathname !== "/" && !pathname.startsWith("/ui/");
    const back = leadsBack ? `?back=${encodeURIComponent(pathname + search)}` : "";
    return redirectTo(request, `/signin${back}`);
  }
  if (known.code === "session_required") return redirectTo(request, "/signin");
  const hint = typeof known.extras["hint"] === "string" ? known.extras["hint"] : ERRORS[known.code].hint;
  const status = Math.max(known.status, 400);
  const headers: Record<string, string> = wantsPage ? {} : { "hx-retarget": FLASH_PLACE, "hx-reswap": "beforeend" };
  const answer = rendered(
    errorPage({
      status,
      message: known.status >= 500 ? "The hub could not do this." : known.message,
      hint,
      requestId,
      partial: !wantsPage,
      meant: typeof known.extras["meant"] === "string" ? known.extras["meant"] : undefined,
      now: hub.clock(),
      request,
    }),
    requestId,
    status,
  );
  for (const [name, value] of Object.entries(headers)) answer.headers.set(name, value);
  return answer;
}

// Signing in and out: a one-time link or a token becomes a session cookie. Neither ever stays in an address.
/** @jsxImportSource #jsx */
import { readBytes, requireJson } from "../http/body.ts";
import type { Refusals } from "../http/refusals.ts";
import type { Hub } from "../hub/hub.ts";
import * as sessions from "../hub/sessions.ts";
import * as tokens from "../hub/tokens.ts";
import { sha256 } from "../protocol/canonical.ts";
import { HubError } from "../protocol/errors.ts";
import { newSecret } from "../protocol/ids.ts";
import { SESSION_AGE_MS, SESSION_IDLE_MS } from "../protocol/limits.ts";
import { HOUR_MS } from "../protocol/time.ts";
import { ownAddress } from "./address.ts";
import { cookieValues, csrfOf, sentCsrf, sessionCookie } from "./cookies.ts";
import type { Html } from "./jsx/jsx-runtime.ts";
import type { Answer, Visit } from "./screen.ts";
import { SoloLayout, THEME_COOKIE, themeOf } from "./ui/layout.tsx";
import { SignIn } from "./ui/signin.tsx";

type Notice = Parameters<typeof SignIn>[0]["notice"];

/** The path to come back to: one of this hub, or the front page. */
const backOf = (value: string | null): string => (value?.startsWith("/") && value.length <= 2000 ? ownAddress(value) : "/");

function page(hub: Hub, request: Request, back: string, notice?: Notice): Html {
  return (
    <SoloLayout title="Sign in" now={hub.clock()} theme={themeOf(cookieValues(request, THEME_COOKIE)[0])}>
      <SignIn
        action="/signin"
        hub={new URL(request.url).host}
        command={`${hub.settings.commandName} open`}
        idleHours={SESSION_IDLE_MS / HOUR_MS}
        back={back === "/" ? undefined : back}
        notice={notice}
      />
    </SoloLayout>
  );
}

/** The form again for who showed what is not accepted; with another word for who did so too often. Programs are told by the status. */
function refused(hub: Hub, refusals: Refusals, request: Request, back: string, notice: Notice): Answer {
  hub.metrics.add("errors");
  try {
    refusals.count("signin");
  } catch (error) {
    if (!(error instanceof HubError && error.code === "rate_limited")) throw error;
    const text = "Wait a minute. A link or a token that is right is accepted all the same.";
    return { html: page(hub, request, back, { tone: "bad", title: "Too many attempts that were not accepted", text }), status: error.status };
  }
  return { html: page(hub, request, back, notice), status: 401 };
}

/** Shows the form; with `?link=` signs in and leads on to a clean address. A look ahead (HEAD) uses nothing up. */
export async function signInPage(hub: Hub, refusals: Refusals, request: Request): Promise<Answer> {
  const { searchParams } = new URL(request.url);
  const back = backOf(searchParams.get("back"));
  const link = searchParams.get("link");
  if (link === null || request.method !== "GET")
    return page(
      hub,
      request,
      back,
      back === "/" ? undefined : { tone: "mute", title: "You are signed out", text: "Sign in to go on where you were." },
    );
  try {
    const secret = newSecret("kxs");
    await hub.engine.write("", (tx) => sessions.redeem(tx, link, { session: secret, csrf: csrfOf(secret), origin: "dashboard" }));
    return begun(hub, request, secret, back);
  } catch (error) {
    if (!(error instanceof HubError && error.code === "signin_link_invalid")) throw error;
    return refused(hub, refusals, request, back, {
      tone: "attn",
      title: "This link no longer works",
      text: "A sign-in link works once and for 60 seconds. Ask for another.",
    });
  }
}

/** Signs in with a token from the form. */
export async function signIn(hub: Hub, refusals: Refusals, request: Request): Promise<Answer> {
  const type = request.headers.get("content-type") ?? "";
  if (!type.toLowerCase().startsWith("application/x-www-form-urlencoded")) requireJson(request);
  const form = new URLSearchParams(new TextDecoder().decode(await readBytes(request)));
  const back = backOf(form.get("back"));
  const who = await whoHas(hub, (form.get("token") ?? "").trim());
  if (!who)
    return refused(hub, refusals, request, back, {
      tone: "bad",
      title: "This token is not accepted",
      text: `It is unknown, revoked, expired, or made for agents. Run ${hub.settings.commandName} open on the hub's machine instead.`,
    });
  const secret = newSecret("kxs");
  await hub.engine.write("", (tx) => sessions.begin(tx, who, { session: secret, csrf: csrfOf(secret), origin: "dashboard" }));
  return begun(hub, request, secret, back);
}

async function whoHas(hub: Hub, token: string): Promise<{ role: sessions.Role; project: string | null; tokenId: string | null } | undefined> {
  if (token === "") return undefined;
  const hash = sha256(token);
  if (hash === hub.settings.adminTokenHash || hash === hub.settings.localAdminTokenHash) return { role: "admin", project: null, tokenId: null };
  const stored = await tokens.identify(hub.engine.read, token, hub.clock());
  return stored && stored.scope !== "project" ? { role: stored.scope, project: stored.project, tokenId: stored.id } : undefined;
}

const begun = (hub: Hub, request: Request, secret: string, back: string) =>
  new Response(null, {
    status: 303,
    headers: {
      location: back,
      "set-cookie": sessionCookie(hub, request, secret, SESSION_AGE_MS / 1000),
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
    },
  });

/** Ends the session here and now, also its streams. */
export async function signOut(hub: Hub, visit: Visit): Promise<Response> {
  sessions.requireCsrf(visit.session, sentCsrf(visit));
  await hub.engine.write("", (tx) => sessions.end(tx, visit.by, visit.session.id));
  return new Response(null, {
    status: 303,
    headers: {
      location: "/signin",
      "set-cookie": sessionCookie(hub, visit.request, "", 0),
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
    },
  });
}

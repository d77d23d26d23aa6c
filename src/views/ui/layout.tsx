// The document around every page. Invariant: no inline script or style, nothing from another host, and htmx is configured here once.
/** @jsxImportSource #jsx */
import { assetUrl } from "../assets/assets.ts";
import type { Child, Html } from "../jsx/jsx-runtime.ts";
import { Csrf } from "./button.tsx";
import { Dialog, KeySheet } from "./dialog.tsx";
import { Icon } from "./icon.tsx";
import { LiveIndicator } from "./live.tsx";
import {
  Brand,
  Nav,
  type NavCounts,
  PLACES,
  type Place,
  type ProjectChoice,
  ProjectSwitcher,
  placeHref,
  type SavedViewsProps,
  TabBar,
  TopBar,
} from "./nav.tsx";
import { CommandPalette, type PaletteGroup } from "./palette.tsx";

export type Theme = "auto" | "light" | "dark";
/** The cookie in which the browser keeps the reader's choice; the server writes it into the page before it is painted. */
export const THEME_COOKIE = "kxm_theme";
/** Reads the theme from a cookie's value; anything else follows the system. */
export const themeOf = (cookie: string | undefined): Theme => (cookie === "light" || cookie === "dark" ? cookie : "auto");

/**
 * htmx without what a strict policy forbids or what we do not use: no style of its own, `hx-*` only (no `data-hx-*`), same
 * origin only, our one extension, a reload on back, so that a page is never older than it looks.
 */
const HTMX_CONFIG = JSON.stringify({
  prefix: "",
  includeIndicatorCSS: false,
  mode: "same-origin",
  extensions: "kxm",
  history: "reload",
  defaultTimeout: 20_000,
});

type DocumentProps = { title: string; now: number; theme: Theme; csrf?: string; events?: string; children: Child };

const Document = ({ title, now, theme, csrf, events, children }: DocumentProps): Html => (
  <html lang="en" data-now={now} data-theme={theme === "auto" ? undefined : theme} data-events={events}>
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover" />
      <meta name="color-scheme" content="light dark" />
      <meta name="htmx-config" content={HTMX_CONFIG} />
      <title>{title} · KXM</title>
      <link rel="icon" href={assetUrl("logo.svg")} type="image/svg+xml" />
      <link rel="stylesheet" href={assetUrl("app.css")} />
      <script src={assetUrl("htmx.js")} defer></script>
      <script src={assetUrl("app.js")} defer></script>
    </head>
    <body hx-headers:inherited={csrf && JSON.stringify({ "x-csrf-token": csrf })}>{children}</body>
  </html>
);

export type LayoutProps = {
  /** Of the document: what the page shows, in plain words. */
  title: string;
  /** The place that is current in the rail. */
  place?: Place;
  /** The current project; without one the page is over all projects. */
  project?: { id: string; name: string; sub?: Child };
  /** Where the switcher leads. */
  projects: readonly ProjectChoice[];
  counts: NavCounts;
  /** Lists the reader keeps under a name. */
  saved?: SavedViewsProps;
  /** Address of the fragment with the rail's places and counts (`Nav` with the same props); without it counts stay as sent. */
  navHref?: string;
  /** Address of the stream of signals (`/ui/events?project=…`); without it the page is not live and says so. */
  events?: string;
  csrf: string;
  /** Who is looking: `operator`, `viewer`, `admin`, and where to sign out. */
  session: { role: "viewer" | "operator" | "admin"; signOut: string };
  theme: Theme;
  /** The hub's clock, epoch milliseconds. */
  now: number;
  /** Shown at the foot of the rail. */
  version: string;
  /** Further lines of the palette, before the places, and the fragment that searches. */
  palette?: { groups?: readonly PaletteGroup[]; href?: string };
  /** Results of the act that led here. */
  flashes?: Child;
  /** Dialogs of this page. */
  dialogs?: Child;
  children: Child;
};

const placesForPalette = (project?: string): PaletteGroup => ({
  title: "Go to",
  items: Object.entries(PLACES).map(([name, { icon, text, go }]) => ({ icon, text, hint: `g ${go}`, href: placeHref(name as Place, project) })),
});

/** A page of the dashboard in its frame: rail, bars, palette, keys, live state, the regions where results and news are announced. */
export const Layout = (props: LayoutProps): Html => {
  const { place, project, counts } = props;
  const home = placeHref("overview", project?.id);
  const name = project?.name ?? "All projects";
  return (
    <Document title={props.title} now={props.now} theme={props.theme} csrf={props.csrf} events={props.events}>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <div class="shell">
        <TopBar home={home} project={name} />
        <aside class="side" id="nav" popover="auto" aria-label="Places and state">
          <Brand home={home} />
          <ProjectSwitcher name={name} sub={project?.sub} choices={props.projects} />
          <Nav place={place} project={project?.id} counts={counts} refetch={props.navHref} saved={props.saved} />
          <RailFoot csrf={props.csrf} session={props.session} version={props.version} settings={placeHref("settings", project?.id)} />
        </aside>
        <main id="main" class="main" tabindex="-1">
          {props.children}
        </main>
        <TabBar place={place} project={project?.id} counts={counts} />
      </div>
      <div class="flashes" id="flash" role="status" aria-live="polite">
        {props.flashes}
      </div>
      <div class="visually-hidden" id="announce" role="status" aria-live="polite"></div>
      <CommandPalette groups={[...(props.palette?.groups ?? []), placesForPalette(project?.id)]} href={props.palette?.href} />
      <Dialog id="keysheet" title="Keys">
        <KeySheet places={Object.values(PLACES).map(({ text, go }) => [text, go] as const)} />
      </Dialog>
      {props.dialogs}
    </Document>
  );
};

const RailFoot = ({ csrf, session, version, settings }: { csrf: string; session: LayoutProps["session"]; version: string; settings: string }) => (
  <div class="side__foot">
    <LiveIndicator />
    <div class="side__tools">
      <a href={settings} title={`KXM ${version}: about this hub`}>
        {session.role}
      </a>
      <button class="btn btn--quiet btn--icon btn--s" type="button" data-theme-next aria-label="Switch theme: system, light, dark" title="Theme">
        <Icon name="auto" />
      </button>
      <button class="btn btn--quiet btn--icon btn--s" type="button" data-open="keysheet" aria-label="Keys" title="Keys (?)">
        <Icon name="keys" />
      </button>
      <form method="post" action={session.signOut}>
        <Csrf token={csrf} />
        <button class="btn btn--quiet btn--icon btn--s" type="submit" aria-label="Sign out" title="Sign out">
          <Icon name="signout" />
        </button>
      </form>
    </div>
  </div>
);

/** A page without the frame: signing in, an error, a sign-out. */
export const SoloLayout = ({ title, now, theme, children }: { title: string; now: number; theme: Theme; children: Child }): Html => (
  <Document title={title} now={now} theme={theme}>
    <main id="main" class="solo">
      <div class="solo__card">{children}</div>
    </main>
    <div class="visually-hidden" id="announce" role="status" aria-live="polite"></div>
  </Document>
);

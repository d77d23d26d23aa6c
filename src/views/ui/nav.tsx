// The places of the dashboard and the ways to them: rail, top bar, bottom bar, project switcher.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Keys } from "./button.tsx";
import { Icon, type IconName, Wordmark } from "./icon.tsx";
import { KEEPS_WHAT_WAS, LiveIndicator, liveAttributes } from "./live.tsx";
import { Count, counted } from "./reference.tsx";
import { Name, visible } from "./untrusted.tsx";

type PlaceEntry = { path: string; icon: IconName; text: string; go?: string };

/** Every screen: its path, its icon, its name, the second key after `g`. One table for rail, bottom bar, palette and keys. */
export const PLACES = {
  overview: { path: "/", icon: "overview", text: "Overview", go: "o" },
  approvals: { path: "/approvals", icon: "approvals", text: "Approvals", go: "a" },
  search: { path: "/search", icon: "search", text: "Search", go: "f" },
  runs: { path: "/runs", icon: "runs", text: "Runs", go: "r" },
  messages: { path: "/messages", icon: "messages", text: "Messages", go: "m" },
  leases: { path: "/leases", icon: "leases", text: "Leases", go: "l" },
  agents: { path: "/agents", icon: "agents", text: "Agents", go: "n" },
  runtimes: { path: "/runtimes", icon: "runtimes", text: "Runtimes", go: "t" },
  sync: { path: "/sync", icon: "sync", text: "Sync", go: "s" },
  context: { path: "/context", icon: "context", text: "Context", go: "c" },
  journal: { path: "/journal", icon: "journal", text: "Journal", go: "j" },
  cost: { path: "/cost", icon: "cost", text: "Cost", go: "d" },
  webhooks: { path: "/webhooks", icon: "webhooks", text: "Webhooks", go: "w" },
  audit: { path: "/audit", icon: "audit", text: "Audit", go: "u" },
  settings: { path: "/settings", icon: "settings", text: "Settings", go: "e" },
} as const satisfies Record<string, PlaceEntry>;

export type Place = keyof typeof PLACES;

const GROUPS: readonly (readonly [title: string | null, places: readonly Place[]])[] = [
  [null, ["overview", "approvals", "search"]],
  ["Work", ["runs", "messages", "leases"]],
  ["Fleet", ["agents", "runtimes", "sync"]],
  ["Knowledge", ["context", "journal"]],
  ["Hub", ["cost", "webhooks", "audit", "settings"]],
];
/** The reader's own lists stand above this group. */
const FIRST_TITLE = "Work";
const COMPACT: readonly Place[] = ["overview", "approvals", "runs", "agents"];

/** How many things a place holds. `attn` when a person is needed, `bad` when something is broken. */
export type NavCounts = Partial<Record<Place, { count: number; tone?: "attn" | "bad" }>>;

/** The address of a place within a project, or over all of them. */
export const placeHref = (place: Place, project?: string): string =>
  project ? `${PLACES[place].path}?project=${encodeURIComponent(project)}` : PLACES[place].path;

const NavCount = ({ of }: { of?: { count: number; tone?: "attn" | "bad" } }) =>
  of && of.count > 0 ? <span class={["nav__count", of.tone && `nav__count--${of.tone}`]}>{counted(of.count)}</span> : null;

/** A list that somebody keeps under a name of their own. */
export type SavedEntry = { name: string; icon: IconName; href: string; count?: string; current?: boolean };
export type SavedViewsProps = {
  views: readonly SavedEntry[];
  /** Where the list on this page is saved, when it can be. */
  save?: string;
  /** Where views are renamed and deleted. */
  manage?: string;
  /** Some counts are older than the log: the rail asks once more. */
  behind?: boolean;
};

export type NavProps = { place?: Place; project?: string; counts: NavCounts; refetch?: string; saved?: SavedViewsProps };

/** The reader's own lists with their counts, and the way to save the one that is open. Nothing when there is neither. */
const SavedViews = ({ views, save, manage, behind, refetch }: SavedViewsProps & { refetch?: string }) =>
  views.length === 0 && save === undefined ? null : (
    <div class="nav" id="saved-views">
      <span class="nav__label">{manage === undefined ? "Saved" : <a href={manage}>Saved</a>}</span>
      {views.map(({ name, icon, href, count, current }) => (
        <a class="nav__item" href={href} aria-current={current ? "page" : undefined} title={visible(name)}>
          <Icon name={icon} />
          <span class="nav__name">
            <Name text={name} />
          </span>
          {count !== undefined && <span class="nav__count">{count}</span>}
        </a>
      ))}
      {save !== undefined && (
        <a class="nav__item nav__item--quiet" href={save} data-open="ask-save-view" title="Save this list under a name">
          <Icon name="star" />
          <span>Save this list…</span>
        </a>
      )}
      {behind && refetch !== undefined && <RailAgain href={refetch} />}
    </div>
  );

/** Asks for the rail once more, a moment after it was shown. */
const RailAgain = ({ href }: { href: string }) => (
  <i hidden hx-get={href} hx-trigger="load delay:1s" hx-target="#nav-places" hx-swap="outerMorph" {...KEEPS_WHAT_WAS}></i>
);

/** The list of places with their counts. `refetch` is the address of its fragment; counts then follow every topic. */
export const Nav = ({ place, project, counts, refetch, saved }: NavProps) => (
  <nav
    aria-label="Main"
    id="nav-places"
    {...(refetch ? liveAttributes({ topic: ["approvals", "runs", "messages", "leases", "agents", "runtimes", "sync"], href: refetch }) : {})}
  >
    {GROUPS.map(([title, places]) => (
      <>
        {title === FIRST_TITLE && saved && <SavedViews {...saved} refetch={refetch} />}
        <div class="nav">
          {title && <span class="nav__label">{title}</span>}
          {places.map((name) => (
            <a
              class="nav__item"
              href={placeHref(name, project)}
              aria-current={place === name ? "page" : undefined}
              title={PLACES[name].text}
              data-go={PLACES[name].go}
            >
              <Icon name={PLACES[name].icon} />
              <span>{PLACES[name].text}</span>
              <NavCount of={counts[name]} />
            </a>
          ))}
        </div>
      </>
    ))}
  </nav>
);

/** Four places at the bottom of a phone, and "More", which opens the rail as a sheet without script. */
export const TabBar = ({ place, project, counts }: NavProps) => (
  <nav class="tabbar" aria-label="Main, compact">
    {COMPACT.map((name) => (
      <a href={placeHref(name, project)} aria-current={place === name ? "page" : undefined}>
        <Icon name={PLACES[name].icon} />
        {PLACES[name].text}
        {name === "approvals" && <NavCount of={counts[name]} />}
      </a>
    ))}
    <button type="button" popovertarget="nav">
      <Icon name="list" />
      More
    </button>
  </nav>
);

/** A project one may switch to. `href` keeps the place and changes the project. */
export type ProjectChoice = { name: string; href: string; count?: number; current?: boolean };

/** The current project and the others. Works without script. */
export const ProjectSwitcher = ({ name, sub, choices }: { name: string; sub?: Child; choices: readonly ProjectChoice[] }) => (
  <details class="switcher menu" data-menu>
    <summary title="Change project">
      <span class="visually-hidden">Project </span>
      <span class="switcher__text">
        <span class="switcher__name">{name}</span>
        {sub && <span class="switcher__sub">{sub}</span>}
      </span>
      <Icon name="updown" />
    </summary>
    <div class="menu__list">
      {choices.map((choice) => (
        <a class="menu__item" href={choice.href} aria-current={choice.current ? "true" : undefined}>
          <Icon name={choice.current ? "check" : "right"} />
          <span class="truncate">{choice.name}</span>
          {choice.count !== undefined && <Count of={choice.count} />}
        </a>
      ))}
    </div>
  </details>
);

/** The bar at the top of a phone. */
export const TopBar = ({ home, project }: { home: string; project: string }) => (
  <header class="topbar">
    <a href={home} aria-label="KXM, overview">
      <Wordmark />
    </a>
    <span class="topbar__project">{project}</span>
    <LiveIndicator />
    <button class="btn btn--quiet btn--icon" type="button" data-open="palette" aria-label="Command palette">
      <Icon name="search" />
    </button>
  </header>
);

/** The logo and the way to the palette, at the top of the rail. */
export const Brand = ({ home }: { home: string }) => (
  <div class="side__brand">
    <a href={home} aria-label="KXM, overview">
      <Wordmark />
    </a>
    <button class="side__find" type="button" data-open="palette" title="Command palette">
      <span class="visually-hidden">Command palette </span>
      <Icon name="search" />
      <Keys of={["Ctrl", "K"]} />
    </button>
  </div>
);

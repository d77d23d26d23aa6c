// A screen of the dashboard as plain data: its address, the role it needs, and a function from one visit to a page, a fragment or a way onwards.
// The list of all screens (screens.ts) makes the router; the fragment a live region refetches is a screen like any other.

import type { SessionRow } from "../db/schema.ts";
import type { Hub } from "../hub/hub.ts";
import type { Html } from "./jsx/jsx-runtime.ts";
import type { LayoutProps } from "./ui/layout.tsx";

/** What a screen says after an act: shown once, in the region that announces results. */
export type FlashText = { tone: "ok" | "bad" | "attn" | "run"; text: string; hint?: string };

/** What a page gives the frame around it; the rest of the frame is the visit's. */
export type PageProps = Pick<LayoutProps, "title" | "place" | "dialogs" | "children"> & { live?: boolean };

/** One request of somebody who is signed in. */
export interface Visit {
  hub: Hub;
  session: SessionRow;
  /** For audit notes and event actors. */
  by: { actor: string; role: SessionRow["role"]; origin: "dashboard" };
  /** Milliseconds by the hub's clock, one value for the whole answer. */
  now: number;
  /** The project in the address, or the only one the session may see; undefined = all projects. */
  project: string | undefined;
  /** The place in the project's log before anything was read for this answer; undefined over all projects. A page's stream goes on from there. */
  since: string | undefined;
  /** Projects the session may see, by name. */
  projects: readonly string[];
  url: URL;
  /** Parameters of the path, decoded. */
  params: Readonly<Record<string, string>>;
  /** Fields of a posted form; empty for GET. */
  form: URLSearchParams;
  /** Whether htmx asks: then a fragment is enough. */
  partial: boolean;
  /** The secret every form carries. */
  csrf: string;
  request: Request;
  /** The whole document around a page's content. */
  page(props: PageProps): Promise<Html>;
  /** Leads to an address of ours with a result to show there. Works without JavaScript; htmx follows it. */
  redirect(to: string, flash?: FlashText): Response;
  /** @throws HubError role_forbidden unless the session may act (operator) or administer (admin) */
  require(role: "operator" | "admin"): void;
  /** @throws HubError role_forbidden for a project the session may not see */
  requireProject(project: string): void;
}

/** What a screen answers: a page or a fragment, with another status than 200 when a form is shown again, or a way onwards. */
export type Answer = Html | Response | { html: Html; status: number };

export interface Screen {
  method: "GET" | "POST";
  path: `/${string}`;
  /** What the visitor must be. Forms that change something need operator or admin. */
  role: "viewer" | "operator" | "admin";
  run(visit: Visit): Promise<Answer> | Answer;
}

/** Types a screen; returns it unchanged. */
export const screen = (spec: Screen): Screen => spec;

// A page that keeps itself true: one component over one data object, sent once inside the frame and again alone whenever its topics change.
/** @jsxImportSource #jsx */
import { fragmentHref } from "./address.ts";
import type { Child, Html } from "./jsx/jsx-runtime.ts";
import { asTyped } from "./listing.ts";
import { type PageProps, type Screen, screen, type Visit } from "./screen.ts";
import { Live } from "./ui/live.tsx";

type LivePage<Data> = {
  /** Where the page lives; its fragment lives under `/ui`. */
  path: `/${string}`;
  /** Id of the region, unique on the page. */
  id: string;
  place: NonNullable<PageProps["place"]>;
  /** Of a list: the keys of its filter. An address that has them as parameters leads to the one that the filter writes. */
  qualifiers?: readonly string[];
  /** What changes it. */
  topic: string | readonly string[];
  /** Everything the page shows, as plain data. Must check which projects the session may see. */
  load(visit: Visit): Promise<Data> | Data;
  /** Of the document. */
  title(data: Data): string;
  /** All of the page, its dialogs included. A pure function of the data and the visit's time, role and address. */
  view(data: Data, visit: Visit): Child;
};

/** @returns the screen of the page and that of its fragment, for the list of screens */
export function livePage<Data>({ path, id, place, qualifiers = [], topic, load, title, view }: LivePage<Data>): readonly Screen[] {
  const region = (data: Data, visit: Visit): Html => (
    <Live id={id} topic={topic} href={fragmentHref(visit.url)}>
      {view(data, visit)}
    </Live>
  );
  const page = async (visit: Visit) => {
    const typed = asTyped(visit.url, qualifiers);
    if (typed !== undefined) return visit.redirect(typed);
    const data = await load(visit);
    return visit.page({ title: title(data), place, children: region(data, visit) });
  };
  const fragment = async (visit: Visit) => region(await load(visit), visit);
  return [screen({ method: "GET", path, role: "viewer", run: page }), screen({ method: "GET", path: `/ui${path}`, role: "viewer", run: fragment })];
}

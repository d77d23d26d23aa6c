// Lists kept under a name: their places in the rail with live counts, the question that saves one, and the page where they are renamed and deleted.
/** @jsxImportSource #jsx */
import * as savedViews from "../hub/saved-views.ts";
import { SAVED_VIEW_NAME_MAX, SAVED_VIEW_QUERY_MAX, SAVED_VIEWS_MAX } from "../protocol/limits.ts";
import { act, fieldOf } from "./acts.tsx";
import { here, pagePath } from "./address.ts";
import { link } from "./links.ts";
import type { Tally } from "./listing.ts";
import { Ask, AskedHere, type Question } from "./question.tsx";
import { countsOf, isList, LISTS, savedHref } from "./saved-counts.ts";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Button } from "./ui/button.tsx";
import { ConfirmDialog } from "./ui/dialog.tsx";
import { Empty } from "./ui/feedback.tsx";
import { TextField } from "./ui/form.tsx";
import { PLACES, type Place, type SavedViewsProps } from "./ui/nav.tsx";
import { PageHead, Row } from "./ui/page.tsx";
import { Quiet, Ref, Sub } from "./ui/reference.tsx";
import { Table } from "./ui/table.tsx";
import { Line } from "./ui/untrusted.tsx";

const ID_MAX = 64;
/** What an address says about a moment and not about the list. */
const PASSING = ["after", "act", "pick"];

/** The list of an address without what is passing: the same list gives the same text. */
function listOf(url: URL): { place: Place; query: string } | undefined {
  const path = pagePath(url);
  const place = Object.keys(LISTS).find((name) => PLACES[name as Place].path === path) as Place | undefined;
  if (place === undefined || url.searchParams.has("entry")) return undefined;
  const query = new URLSearchParams([...url.searchParams].filter(([name, value]) => !PASSING.includes(name) && value !== ""));
  query.sort();
  return { place, query: query.toString() };
}

const tallyText = (tally: Tally): string | undefined => tally && `${tally.count}${tally.more ? "+" : ""}`;

/** What somebody keeps, of the lists there are. */
async function known({ hub, session }: Visit): Promise<savedViews.SavedView[]> {
  return (await savedViews.list(hub.engine.read, session)).filter(({ place }) => isList(place));
}

/** The views in the rail. @param at the address of the page the rail belongs to */
export async function railViews(visit: Visit, at: URL): Promise<SavedViewsProps> {
  const views = await known(visit);
  const { tallies, behind } = await countsOf(visit, views);
  const current = listOf(at);
  const isCurrent = (view: savedViews.SavedView) => current !== undefined && view.place === current.place && view.query === current.query;
  const filtered = current !== undefined && new URLSearchParams(current.query).keys().some((name) => name !== "project");
  return {
    views: views.map((view, index) => ({
      name: view.name,
      icon: PLACES[view.place as Place].icon,
      href: savedHref(view),
      count: tallyText(tallies[index]),
      current: isCurrent(view),
    })),
    save: filtered && !views.some(isCurrent) ? here(at, { act: SAVE }) : undefined,
    manage: views.length > 0 ? link("/views", { project: visit.project }) : undefined,
    behind,
  };
}

const SAVE = "save-view";
const saveQuestion = (url: URL): Question | undefined => {
  const list = listOf(url);
  if (!list) return undefined;
  return {
    name: SAVE,
    button: "Save this list…",
    title: `Save this list of ${PLACES[list.place].text.toLowerCase()}`,
    action: "/views",
    confirm: "Save",
    cancel: "Leave it",
    confirmKind: "primary",
    fields: (id) => (
      <>
        <input type="hidden" name="place" value={list.place} />
        <input type="hidden" name="query" value={list.query} />
        <p>It gets a place of its own beside the others, with a live count. Only you see it.</p>
        <NameField field={id} hint="a saved list of the same name is replaced" />
      </>
    ),
  };
};

const NameField = ({ field, value, hint }: { field: string; value?: string; hint?: string }) => (
  <TextField
    id={`${field}-name`}
    name="name"
    label="Name"
    {...(value !== undefined && { value })}
    {...(hint !== undefined && { hint })}
    required
    maxlength={SAVED_VIEW_NAME_MAX}
    autofocus
  />
);

/** The dialog that the rail's button opens. */
export const SaveDialog = ({ visit }: { visit: Visit }) => {
  const question = saveQuestion(visit.url);
  if (!question) return null;
  const id = `ask-${SAVE}`;
  return (
    <ConfirmDialog
      id={id}
      title={question.title}
      action={question.action}
      csrf={visit.csrf}
      target={`#${id}`}
      confirm={question.confirm}
      cancel={question.cancel}
      kind={question.confirmKind}
    >
      {question.fields(id)}
    </ConfirmDialog>
  );
};

/** The same question as a part of the page, for those without script. */
export const SaveAskedHere = ({ visit }: { visit: Visit }) => {
  const question = saveQuestion(visit.url);
  return question ? <AskedHere questions={[question]} visit={visit} /> : null;
};

const save = screen({
  method: "POST",
  path: "/views",
  role: "viewer", // it changes nothing that anybody else sees
  run: (visit) => {
    const place = visit.form.get("place") ?? "";
    const query = visit.form.get("query") ?? "";
    const back = isList(place) && query.length <= SAVED_VIEW_QUERY_MAX ? savedHref({ place, query }) : "/";
    return act(visit, back, async () => {
      const name = fieldOf(visit.form, "name", SAVED_VIEW_NAME_MAX);
      const list = isList(place) ? listOf(new URL(savedHref({ place, query }), visit.url)) : undefined;
      if (!list) return { tone: "bad", text: "That list cannot be saved." };
      const { session, hub, by } = visit;
      const { replaced } = await hub.engine.write(session.project ?? "", (tx) => savedViews.save(tx, by, session, { ...list, name }));
      return { tone: "ok", text: replaced ? "Saved; it replaces the list of that name." : "Saved. It has a place of its own now, with its count." };
    });
  },
});

const NAMELESS = { tone: "bad", text: "There is no such saved list any more." } as const;

const rename = screen({
  method: "POST",
  path: "/views/rename",
  role: "viewer",
  run: (visit) =>
    act(visit, "/views", async () => {
      const { hub, session, by, form } = visit;
      const change = { id: fieldOf(form, "view", ID_MAX), name: fieldOf(form, "name", SAVED_VIEW_NAME_MAX) };
      const renamed = await hub.engine.write(session.project ?? "", (tx) => savedViews.rename(tx, by, session, change));
      return renamed ? { tone: "ok", text: "Renamed." } : NAMELESS;
    }),
});

const remove = screen({
  method: "POST",
  path: "/views/delete",
  role: "viewer",
  run: (visit) =>
    act(visit, "/views", async () => {
      const { hub, session, by, form } = visit;
      const id = fieldOf(form, "view", ID_MAX);
      const removed = await hub.engine.write(session.project ?? "", (tx) => savedViews.remove(tx, by, session, id));
      return removed ? { tone: "ok", text: "Deleted. The list itself is as it was." } : NAMELESS;
    }),
});

function questionsOf({ id, name }: savedViews.SavedView): [rename: Question, remove: Question] {
  const which = <input type="hidden" name="view" value={id} />;
  return [
    {
      name: `rename-${id}`,
      button: "Rename…",
      small: true,
      title: "Rename this saved list",
      action: "/views/rename",
      confirm: "Rename",
      cancel: "Leave it",
      confirmKind: "primary",
      fields: (field) => (
        <>
          {which}
          <NameField field={field} value={name} />
        </>
      ),
    },
    {
      name: `delete-${id}`,
      button: "Delete…",
      small: true,
      kind: "warn",
      title: "Delete this saved list?",
      action: "/views/delete",
      confirm: "Delete",
      cancel: "Keep it",
      fields: () => (
        <>
          {which}
          <p>Only the name and its filters go. What the list shows stays.</p>
        </>
      ),
    },
  ];
}

type Shown = { view: savedViews.SavedView; tally: Tally };

const ViewsTable = ({ shown, visit }: { shown: readonly Shown[]; visit: Visit }) => (
  <Table
    caption="Saved lists, by name"
    rows={shown}
    id={({ view }) => view.id}
    columns={[
      {
        head: "Name",
        kind: "main",
        cell: ({ view }) => (
          <>
            <Ref href={savedHref(view)}>
              <Line text={view.name} />
            </Ref>
            <Sub>{PLACES[view.place as Place].text}</Sub>
          </>
        ),
      },
      { head: "Filters", phone: "line", cell: ({ view }) => <Filters query={view.query} /> },
      { head: "Now", kind: "num", tight: true, cell: ({ tally }) => tallyText(tally) ?? <Quiet>not counted</Quiet> },
      {
        head: "",
        kind: "acts",
        cell: ({ view }) => (
          <Row>
            {questionsOf(view).map((question) => (
              <Ask question={question} visit={visit} />
            ))}
          </Row>
        ),
      },
    ]}
  />
);

const Filters = ({ query }: { query: string }) => {
  const said = [...new URLSearchParams(query)].map(([name, value]) => (name === "q" ? value : `${name} ${value}`));
  return said.length === 0 ? <Quiet>none</Quiet> : <Line text={said.join(" · ")} max={120} />;
};

const page = screen({
  method: "GET",
  path: "/views",
  role: "viewer",
  run: async (visit) => {
    const views = await known(visit);
    const { tallies } = await countsOf(visit, views);
    const shown = views.map((view, index) => ({ view, tally: tallies[index] }));
    return visit.page({
      title: "Saved lists",
      children: (
        <>
          <PageHead title="Saved lists" sub={[`${views.length} of ${SAVED_VIEWS_MAX}`, "only you see them"]} />
          <AskedHere questions={views.flatMap(questionsOf)} visit={visit} />
          {shown.length > 0 ? (
            <ViewsTable shown={shown} visit={visit} />
          ) : (
            <Empty title="No list is saved yet." acts={<Button href={link("/runs", { project: visit.project, view: "failed" })}>Failed runs</Button>}>
              Filter any list, then choose “Save this list…” on the left: it gets a name, a place there and a live count.
            </Empty>
          )}
        </>
      ),
    });
  },
});

export const screens: readonly Screen[] = [page, save, rename, remove];

// Starting a run from here: which project on which machine, what to do. The machine is asked; it decides and says what came of it.
/** @jsxImportSource #jsx */
import * as commands from "../hub/commands.ts";
import * as runtimes from "../hub/runtimes.ts";
import { HubError } from "../protocol/errors.ts";
import { IDENTIFIER } from "../protocol/sync-event.ts";
import { act, fieldOf, optionalFieldOf } from "./acts.tsx";
import { commandsLink } from "./commands.tsx";
import { link } from "./links.ts";
import { projectsOf } from "./listing.ts";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Button, Csrf } from "./ui/button.tsx";
import { Command, Empty } from "./ui/feedback.tsx";
import { Fields, type Option, SelectField, TextAreaField, TextField } from "./ui/form.tsx";
import { Columns, PageHead, Row, Section } from "./ui/page.tsx";
import { shortId } from "./ui/reference.tsx";
import { visible } from "./ui/untrusted.tsx";

const PROMPT_MAX = 32_000;
const TITLE_MAX = 200;
const WORKFLOW_MAX = 64;
const NAME_SHOWN = 60;

type Place = { project: string; runtimeId: string; projectId: string };
const writePlace = ({ project, runtimeId, projectId }: Place): string => [encodeURIComponent(project), runtimeId, projectId].join("/");
function placeOf(text: string): Place {
  const [project, runtimeId, projectId, more] = text.split("/");
  if (!project || !runtimeId || !projectId || more !== undefined) throw new HubError("protocol_error", "choose where the run is to be");
  return { project: decodeURIComponent(project), runtimeId, projectId };
}

/** Every project that a Runtime reports, the ones that answer first. */
async function placesOf(visit: Visit): Promise<Option[]> {
  const projects = projectsOf(visit);
  const found = await Promise.all(projects.map((project) => runtimes.list(visit.hub, project)));
  const places = found.flat().flatMap(({ project, runtimeId, host, presence, report }) =>
    (report?.outbox ?? []).map(({ projectId, name, paused }) => {
      const words = [
        visible(name ?? projectId).slice(0, NAME_SHOWN),
        `on ${host ? visible(host).slice(0, NAME_SHOWN) : shortId(runtimeId)}`,
        ...(projects.length > 1 ? [`of ${visible(project).slice(0, NAME_SHOWN)}`] : []),
        ...(paused ? ["(paused: it will wait)"] : []),
        ...(presence === "online" ? [] : ["(lost contact: it will wait)"]),
      ];
      return { online: presence === "online", option: { value: writePlace({ project, runtimeId, projectId }), text: words.join(" ") } };
    }),
  );
  return places.sort((a, b) => Number(b.online) - Number(a.online)).map(({ option }) => option);
}

const StartForm = ({ places, visit }: { places: readonly Option[]; visit: Visit }) => (
  <form method="post" action={link("/runs/new", { project: visit.project })}>
    <Csrf token={visit.csrf} />
    <input type="hidden" name="key" value={visit.hub.newId("req")} />
    <Fields>
      <SelectField id="start-place" name="place" label="Where" options={places} value={visit.url.searchParams.get("place") ?? undefined} />
      <TextAreaField
        id="start-prompt"
        name="prompt"
        label="What to do"
        hint="Goes to the machine and to the agents of the run; no list or page shows it again."
        required
        maxlength={PROMPT_MAX}
        rows={8}
      />
      <TextField id="start-workflow" name="workflow" label="Workflow" hint="the project’s default when left empty" maxlength={WORKFLOW_MAX} />
      <TextField id="start-title" name="title" label="Title" hint="for lists; the first line of what to do when left empty" maxlength={TITLE_MAX} />
      <Row>
        <Button kind="primary" icon="run" type="submit">
          Start the run
        </Button>
        <Button href={link("/runs", { project: visit.project })}>Leave it</Button>
      </Row>
    </Fields>
  </form>
);

const form = screen({
  method: "GET",
  path: "/runs/new",
  role: "operator",
  run: async (visit) => {
    const places = await placesOf(visit);
    return visit.page({
      title: "Start a run",
      place: "runs",
      children: (
        <>
          <PageHead
            title="Start a run"
            crumbs={[{ text: "Runs", href: link("/runs", { project: visit.project }) }, { text: "Start" }]}
            sub={["the machine is asked; it runs it in its own time, also while this hub is away"]}
          />
          <Columns
            main={
              <Section title="A run" padded>
                {places.length === 0 ? (
                  <>
                    <Empty title="No machine has a project here yet.">A Runtime tells the hub of its projects once it runs in a checkout.</Empty>
                    <Command text="kxm init && kxm run 'Say hello'" />
                  </>
                ) : (
                  <StartForm places={places} visit={visit} />
                )}
              </Section>
            }
            aside={
              <Section title="Same from a terminal" note="in the checkout" padded>
                <Command text="kxm run --detach 'what to do'" />
              </Section>
            }
          />
        </>
      ),
    });
  },
});

const start = screen({
  method: "POST",
  path: "/runs/new",
  role: "operator",
  run: async (visit) => {
    let sent: string | undefined;
    const back = link("/runs/new", { project: visit.project, place: visit.form.get("place") ?? undefined });
    const answer = await act(visit, back, async () => {
      const place = placeOf(visit.form.get("place") ?? "");
      visit.requireProject(place.project);
      const workflowId = optionalFieldOf(visit.form, "workflow", WORKFLOW_MAX);
      if (workflowId !== undefined && !IDENTIFIER.test(workflowId))
        throw new HubError("protocol_error", "a workflow’s name has lower-case words joined by dashes", {
          hint: "Look in .kxm/workflows of the project.",
        });
      const displayTitle = optionalFieldOf(visit.form, "title", TITLE_MAX);
      const payload = { prompt: fieldOf(visit.form, "prompt", PROMPT_MAX), ...(workflowId && { workflowId }), ...(displayTitle && { displayTitle }) };
      const { project, runtimeId, projectId } = place;
      const idempotencyKey = optionalFieldOf(visit.form, "key", 64);
      sent = (await commands.send(visit.hub, visit.by, { project, kind: "start", runtimeId, projectId, payload, idempotencyKey })).command.id;
      return { tone: "ok", text: "The machine is asked to start the run." };
    });
    return sent === undefined ? answer : visit.redirect(commandsLink([sent]));
  },
});

export const screens: readonly Screen[] = [form, start];

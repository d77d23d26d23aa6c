// The form that adds a receiver of events. What is refused is shown again as it was filled in; the secret stands in one answer only.
/** @jsxImportSource #jsx */
import { checkAddress } from "../http/outbound.ts";
import * as endpoints from "../hub/webhook-endpoints.ts";
import { HubError } from "../protocol/errors.ts";
import { newSigningSecret } from "../protocol/webhook-endpoints.ts";
import { fieldOf, optionalFieldOf, refusal } from "./acts.tsx";
import { link, webhookLink } from "./links.ts";
import { ProjectField } from "./project-field.tsx";
import { type FlashText, type Screen, screen, type Visit } from "./screen.ts";
import { secretOnce } from "./secret-once.tsx";
import { Button, Csrf } from "./ui/button.tsx";
import { Command, Empty, Flash } from "./ui/feedback.tsx";
import { Check, Choices, Fields, TextField } from "./ui/form.tsx";
import { PageHead, Row, Section } from "./ui/page.tsx";

const URL_MAX = 2000;
const EVENTS_MAX = 1000;
const PATTERNS_MAX = 32;

/** The form for a new receiver, as it was filled in. */
const EndpointForm = ({ visit, refused }: { visit: Visit; refused?: FlashText }) => {
  const { form, projects } = visit;
  return (
    <form method="post" action={link("/webhooks/new", { project: visit.project })}>
      <Csrf token={visit.csrf} />
      {refused && <Flash {...refused} />}
      <Fields>
        <ProjectField
          id="endpoint-project"
          name="project"
          projects={visit.project === undefined ? projects : [visit.project]}
          value={form.get("project") ?? visit.project}
        />
        <TextField
          id="endpoint-url"
          name="url"
          label="Address"
          hint="https, of a public host"
          placeholder="https://ci.example.org/hooks/kxm"
          value={form.get("url") ?? ""}
          required
          maxlength={URL_MAX}
        />
        <TextField
          id="endpoint-events"
          name="events"
          label="Events"
          hint="topic.type or topic.*, with spaces between; all when left empty"
          placeholder="approvals.* messages.replied"
          value={form.get("events") ?? ""}
          maxlength={EVENTS_MAX}
        />
        <Choices legend="What leaves the hub">
          <Check
            name="bodies"
            value="1"
            label="Also send message texts"
            note="without it only metadata leaves the hub"
            checked={form.get("bodies") === "1"}
          />
          <Check
            name="private"
            value="1"
            label="This host and port may be private"
            note="on this machine or network, also over http"
            checked={form.get("private") === "1"}
          />
        </Choices>
        <Row>
          <Button kind="primary" type="submit">
            Add the endpoint
          </Button>
          <Button href={link("/webhooks", { project: visit.project })}>Leave it</Button>
        </Row>
      </Fields>
    </form>
  );
};

const formPage = (visit: Visit, refused?: FlashText) =>
  visit.page({
    title: "Add an endpoint",
    place: "webhooks",
    live: false,
    children: (
      <>
        <PageHead
          title="Add an endpoint"
          crumbs={[{ text: "Webhooks", href: link("/webhooks", { project: visit.project }) }, { text: "Add" }]}
          sub={["it hears of what happens from now on"]}
        />
        <Section title="A receiver" padded>
          {visit.projects.length === 0 ? (
            <>
              <Empty title="There is no project yet.">A project begins with its first agent.</Empty>
              <Command text="kxm init" />
            </>
          ) : (
            <EndpointForm visit={visit} refused={refused} />
          )}
        </Section>
      </>
    ),
  });

const addForm = screen({ method: "GET", path: "/webhooks/new", role: "admin", run: (visit) => formPage(visit) });

const add = screen({
  method: "POST",
  path: "/webhooks/new",
  role: "admin",
  run: async (visit) => {
    const { form, hub } = visit;
    visit.requireProject(form.get("project") ?? "");
    try {
      const [project, url] = [fieldOf(form, "project", 128), fieldOf(form, "url", URL_MAX)];
      const eventTypes = (optionalFieldOf(form, "events", EVENTS_MAX) ?? "").split(/[\s,]+/).filter(Boolean);
      if (eventTypes.length > PATTERNS_MAX) throw new HubError("protocol_error", `events names more than ${PATTERNS_MAX} kinds`);
      const [allowBodies, allowPrivate] = [form.get("bodies") === "1", form.get("private") === "1"];
      checkAddress(url, allowPrivate);
      const secret = newSigningSecret();
      const row = await hub.engine.write(project, (tx) =>
        endpoints.create(tx, visit.by, { project, url, eventTypes, allowBodies, allowPrivate, secret }),
      );
      return secretOnce(visit, {
        title: "The endpoint is added",
        place: "webhooks",
        from: { text: "Webhooks", href: webhookLink(row.id, { project: visit.project }) },
        secret,
        children: "The receiver verifies each delivery with it, as Standard Webhooks describes. The hub signs with it and shows it to nobody again.",
      });
    } catch (error) {
      if (!(error instanceof HubError) || error.status >= 500) throw error;
      return { html: await formPage(visit, refusal(error)), status: error.status };
    }
  },
});

export const screens: readonly Screen[] = [addForm, add];

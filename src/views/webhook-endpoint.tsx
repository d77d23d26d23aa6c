// The page of one receiver: how it stands, its delivery log, and what admins do to it: test, new secret, start again, remove.
/** @jsxImportSource #jsx */
import type { DeliveryRow, WebhookRow } from "../db/schema.ts";
import * as deliveries from "../hub/webhook-deliveries.ts";
import * as endpoints from "../hub/webhook-endpoints.ts";
import { HubError } from "../protocol/errors.ts";
import { VIEW_ROWS_MAX } from "../protocol/limits.ts";
import { newSigningSecret } from "../protocol/webhook-endpoints.ts";
import { act, fieldOf, optionalFieldOf } from "./acts.tsx";
import { here } from "./address.ts";
import { FileLinks } from "./file-links.tsx";
import { link, webhookLink } from "./links.ts";
import { livePage } from "./live-page.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { secretOnce } from "./secret-once.tsx";
import { Act, Button, Csrf } from "./ui/button.tsx";
import { Empty } from "./ui/feedback.tsx";
import { TextField } from "./ui/form.tsx";
import { Columns, Facts, PageHead, Row, Section } from "./ui/page.tsx";
import { Id } from "./ui/reference.tsx";
import { Pager } from "./ui/table.tsx";
import { Ago } from "./ui/time.tsx";
import { Line, visible } from "./ui/untrusted.tsx";
import { Deliveries, NEWEST } from "./webhook-deliveries.tsx";
import { EndpointStatus } from "./webhook-endpoints.tsx";

const STATUS_LOOKS_AT = 10;
const KEY_MAX = 128;
const REASON_MAX = 500;
type EndpointData = { endpoint: WebhookRow; newest: DeliveryRow[]; log: DeliveryRow[]; next: string | undefined };

/** The endpoint of an address or a form, for those who may see its project. @throws HubError endpoint_not_found */
async function endpointOf({ hub, session }: Visit, id: string): Promise<WebhookRow> {
  const row = await hub.engine.read.webhookEndpoints.find(id);
  if (!row || (session.project !== null && session.project !== row.project))
    throw new HubError("endpoint_not_found", "there is no such webhook endpoint");
  return row;
}

async function load(visit: Visit): Promise<EndpointData> {
  const { webhookEndpoints } = visit.hub.engine.read;
  const endpoint = await endpointOf(visit, visit.params["id"]!);
  const rows = await webhookEndpoints.log(endpoint.id, visit.url.searchParams.get("after") ?? NEWEST, VIEW_ROWS_MAX + 1);
  const log = rows.slice(0, VIEW_ROWS_MAX);
  return {
    endpoint,
    newest: await webhookEndpoints.log(endpoint.id, NEWEST, STATUS_LOOKS_AT),
    log,
    next: rows.length > log.length ? log.at(-1)!.id : undefined,
  };
}

const Acts = ({ endpoint: { id, disabledAt }, visit }: { endpoint: WebhookRow; visit: Visit }) => (
  <>
    <Act action={`/webhooks/${id}/test`} csrf={visit.csrf}>
      <Button type="submit">Send a test</Button>
    </Act>
    {disabledAt === null ? (
      <Button href={here(visit.url, { act: "disable" })}>Disable…</Button>
    ) : (
      <Act action={`/webhooks/${id}/enable`} csrf={visit.csrf}>
        <Button type="submit">Enable</Button>
      </Act>
    )}
    <Button href={here(visit.url, { act: "rotate" })}>New secret…</Button>
    <Button kind="warn" href={here(visit.url, { act: "remove" })}>
      Remove…
    </Button>
  </>
);

const QUESTIONS = {
  disable: {
    title: "Disable this endpoint?",
    says: "It is told of nothing until somebody enables it, and what happens meanwhile is not sent later. What waits now is given up and can be replayed.",
    confirm: "Disable the endpoint",
    kind: "danger",
  },
  rotate: {
    title: "Make a new secret?",
    says: "The old one signs beside it for a day, so that the receiver can change over without losing a delivery.",
    confirm: "Make a new secret",
    kind: "primary",
  },
  remove: {
    title: "Remove this endpoint?",
    says: "It is told of nothing any more, and its delivery log goes with it.",
    confirm: "Remove the endpoint",
    kind: "danger",
  },
} as const;

/** What is asked before an act, as a part of the page: it works without script. */
const Question = ({ of, id, visit }: { of: keyof typeof QUESTIONS; id: string; visit: Visit }) => {
  const { title, says, confirm, kind } = QUESTIONS[of];
  return (
    <Section title={title} padded>
      <form class="form" method="post" action={`/webhooks/${id}/${of}`}>
        <Csrf token={visit.csrf} />
        {of === "rotate" && <input type="hidden" name="key" value={visit.hub.newId("req")} />}
        <p>{says}</p>
        {of === "disable" && (
          <TextField
            id="disable-reason"
            name="reason"
            label="Reason"
            hint="shown beside the endpoint and kept in the audit"
            required
            maxlength={REASON_MAX}
          />
        )}
        <Row>
          <Button kind={kind} type="submit">
            {confirm}
          </Button>
          <Button href={here(visit.url, { act: undefined })}>Leave it</Button>
        </Row>
      </form>
    </Section>
  );
};

const Log = ({ data: { endpoint, log, next }, visit }: { data: EndpointData; visit: Visit }) => {
  const later = visit.url.searchParams.has("after");
  return (
    <Section title="Delivery log">
      {log.length === 0 ? (
        <Empty title="Nothing was sent yet.">
          The next event it asks for is; {visit.session.role === "admin" ? "or send a test now." : "an admin can send a test."}
        </Empty>
      ) : (
        <Deliveries rows={log} endpoints={new Map([[endpoint.id, endpoint]])} visit={visit} />
      )}
      {log.length > 0 && (
        <Pager
          shown={
            <>
              {log.length} shown, newest first · <FileLinks list={`webhooks/${endpoint.id}`} url={visit.url} />
            </>
          }
          newer={later ? here(visit.url, { after: undefined }) : undefined}
          older={next === undefined ? undefined : here(visit.url, { after: next })}
        />
      )}
    </Section>
  );
};

const EndpointView = ({ data, visit }: { data: EndpointData; visit: Visit }) => {
  const { endpoint, newest } = data;
  const admin = visit.session.role === "admin";
  const act = visit.url.searchParams.get("act") ?? "";
  const asked = admin && Object.hasOwn(QUESTIONS, act) ? (act as keyof typeof QUESTIONS) : undefined;
  const secrets = endpoints.secretsInForce(endpoint, visit.now).length;
  return (
    <>
      <PageHead
        title={<Line text={endpoint.url} max={120} />}
        crumbs={[{ text: "Webhooks", href: link("/webhooks", { project: visit.project }) }, { text: <Line text={endpoint.project} /> }]}
        sub={[<EndpointStatus endpoint={endpoint} newest={newest} now={visit.now} />]}
        actions={admin && <Acts endpoint={endpoint} visit={visit} />}
      />
      {asked && <Question of={asked} id={endpoint.id} visit={visit} />}
      <Columns
        below={asked !== undefined}
        main={<Log data={data} visit={visit} />}
        aside={
          <Section title="Facts">
            <Facts
              rows={[
                ["Id", <Id value={endpoint.id} />],
                ["Project", <Line text={endpoint.project} />],
                ["Events", <Line text={endpoint.eventTypes.join(", ")} />],
                ["Message texts", endpoint.allowBodies === 1 ? "are sent" : "stay here"],
                ["Private address", endpoint.allowPrivate === 1 ? "allowed" : "refused"],
                ["Secrets", secrets === 1 ? "one signs" : `${secrets} sign, the old ones for a day`],
                ["Added", <Ago at={endpoint.createdAt} now={visit.now} />],
              ]}
            />
          </Section>
        }
      />
    </>
  );
};

const page = livePage<EndpointData>({
  path: "/webhooks/:id",
  id: "webhook",
  place: "webhooks",
  topic: "webhooks",
  load,
  title: ({ endpoint }) => visible(endpoint.url),
  view: (data, visit) => <EndpointView data={data} visit={visit} />,
});

const test = screen({
  method: "POST",
  path: "/webhooks/:id/test",
  role: "admin",
  run: async (visit) => {
    const { id, project } = await endpointOf(visit, visit.params["id"]!);
    return act(visit, webhookLink(id), async () => {
      await visit.hub.engine.write(project, (tx) => deliveries.test(tx, visit.by, id));
      return { tone: "ok", text: "A test event is on its way.", hint: "The log shows what the receiver answers." };
    });
  },
});

const enable = screen({
  method: "POST",
  path: "/webhooks/:id/enable",
  role: "admin",
  run: async (visit) => {
    const { id, project } = await endpointOf(visit, visit.params["id"]!);
    return act(visit, webhookLink(id), async () => {
      await visit.hub.engine.write(project, (tx) => endpoints.enable(tx, visit.by, id));
      return { tone: "ok", text: "The endpoint is told of events again.", hint: "What happened meanwhile is not sent; replay what it needs." };
    });
  },
});

const disable = screen({
  method: "POST",
  path: "/webhooks/:id/disable",
  role: "admin",
  run: async (visit) => {
    const { id, project } = await endpointOf(visit, visit.params["id"]!);
    return act(visit, webhookLink(id), async () => {
      const reason = fieldOf(visit.form, "reason", REASON_MAX);
      await visit.hub.engine.write(project, (tx) => endpoints.disableByHand(tx, visit.by, id, reason));
      return { tone: "ok", text: "The endpoint is disabled.", hint: "It is told of nothing until it is enabled." };
    });
  },
});

const rotate = screen({
  method: "POST",
  path: "/webhooks/:id/rotate",
  role: "admin",
  run: async (visit) => {
    const { id, project } = await endpointOf(visit, visit.params["id"]!);
    const wanted = { secret: newSigningSecret(), key: optionalFieldOf(visit.form, "key", KEY_MAX) };
    const { secret } = await visit.hub.engine.write(project, (tx) => endpoints.rotate(tx, visit.by, id, wanted));
    return secretOnce(visit, {
      title: "The endpoint has a new secret",
      place: "webhooks",
      from: { text: "Webhooks", href: webhookLink(id) },
      secret,
      children: "Deliveries carry a signature of the old and of the new secret for a day.",
    });
  },
});

const remove = screen({
  method: "POST",
  path: "/webhooks/:id/remove",
  role: "admin",
  run: async (visit) => {
    const { id, project } = await endpointOf(visit, visit.params["id"]!);
    return act(visit, link("/webhooks", { project: visit.project }), async () => {
      await visit.hub.engine.write(project, (tx) => endpoints.remove(tx, visit.by, id));
      return { tone: "ok", text: "The endpoint and its log are removed." };
    });
  },
});

export const screens: readonly Screen[] = [...page, test, enable, disable, rotate, remove];

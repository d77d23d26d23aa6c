// Deliveries to receivers: what was sent, what came back, when it is tried again; and the way to send one again.
/** @jsxImportSource #jsx */
import type { DeliveryRow, WebhookRow } from "../db/schema.ts";
import * as deliveries from "../hub/webhook-deliveries.ts";
import { HubError } from "../protocol/errors.ts";
import { act } from "./acts.tsx";
import { download, type ExportColumn } from "./export.ts";
import { EXPORT_ROWS_MAX } from "./file-links.tsx";
import { webhookLink } from "./links.ts";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Act, Button } from "./ui/button.tsx";
import { Id, Ref, Sub } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";
import { Table } from "./ui/table.tsx";
import { Ago, Left, took } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

/** Sorts after every id of a delivery. */
export const NEWEST = "dlv_~";

/** What came back from an attempt, in a few words. */
const answerOf = ({ status, error }: DeliveryRow["attempts"][number]) => (status === undefined ? <Line text={error ?? "no answer"} /> : `${status}`);

/** How a delivery stands, and the last answer to it. */
const DeliveryStatus = ({ delivery: { state, attempts, nextAt }, now }: { delivery: DeliveryRow; now: number }) => {
  const last = attempts.at(-1);
  if (state === "delivered") return <Status state="settled" word="delivered" why={last && answerOf(last)} />;
  if (state === "failed") return <Status state="failed" why={last && answerOf(last)} />;
  if (!last) return <Status state="pending" why="not tried yet" />;
  return (
    <Status
      state="retry pending"
      why={
        <>
          {answerOf(last)}
          {nextAt !== null && nextAt > now && (
            <>
              , again in <Left until={nextAt} now={now} />
            </>
          )}
        </>
      }
    />
  );
};

type DeliveriesProps = { rows: readonly DeliveryRow[]; endpoints: ReadonlyMap<string, WebhookRow>; visit: Visit; named?: boolean };

/** The log, newest first. `named`: rows say which receiver they went to. */
export const Deliveries = ({ rows, endpoints, visit, named }: DeliveriesProps) => (
  <Table
    caption="Deliveries, newest first"
    rows={rows}
    id={({ id }) => `delivery-${id}`}
    columns={[
      {
        head: "Delivery",
        kind: "main",
        cell: ({ id, eventType, eventSeq, webhookId }) => (
          <>
            <Line text={eventType} />
            <Sub>
              <Id value={id} />
              {eventType === "webhooks.test" ? " · test" : ` · event ${eventSeq}`}
              {named && (
                <>
                  {" · "}
                  <Ref href={webhookLink(webhookId)}>
                    <Line text={endpoints.get(webhookId)?.url ?? webhookId} max={60} />
                  </Ref>
                </>
              )}
            </Sub>
          </>
        ),
      },
      { head: "Answer", phone: "line", cell: (delivery) => <DeliveryStatus delivery={delivery} now={visit.now} /> },
      { head: "Tries", kind: "num", tight: true, cell: ({ attempts }) => attempts.length },
      { head: "Took", kind: "num", tight: true, cell: ({ attempts }) => (attempts.length === 0 ? "–" : took(attempts.at(-1)!.ms)) },
      { head: "When", kind: "num", tight: true, cell: ({ createdAt, attempts }) => <Ago at={attempts.at(-1)?.at ?? createdAt} now={visit.now} /> },
      {
        head: "",
        kind: "acts",
        cell: ({ id, state }) =>
          state !== "pending" &&
          visit.session.role !== "viewer" && (
            <Act action="/webhooks/replay" csrf={visit.csrf} fields={{ id }}>
              <Button small icon="retry" type="submit">
                Replay
              </Button>
            </Act>
          ),
      },
    ]}
  />
);

const replay = screen({
  method: "POST",
  path: "/webhooks/replay",
  role: "operator",
  run: async (visit) => {
    const id = visit.form.get("id") ?? "";
    const known = await visit.hub.engine.read.webhookEndpoints.findDelivery(id);
    if (!known || (visit.session.project !== null && visit.session.project !== known.project))
      throw new HubError("delivery_not_found", "there is no such delivery");
    return act(visit, webhookLink(known.webhookId), async () => {
      await visit.hub.engine.write(known.project, (tx) => deliveries.replay(tx, visit.by, id));
      return { tone: "ok", text: "The delivery is sent again.", hint: "It keeps its id: a receiver that has it already will know." };
    });
  },
});

const EXPORT: readonly ExportColumn<DeliveryRow>[] = [
  ["id", ({ id }) => id],
  ["event", ({ eventType }) => eventType],
  ["seq", ({ eventSeq }) => eventSeq],
  ["state", ({ state }) => state],
  ["attempts", ({ attempts }) => attempts.length],
  ["lastAnswer", ({ attempts }) => attempts.at(-1)?.status ?? attempts.at(-1)?.error],
  ["createdAt", ({ createdAt }) => new Date(createdAt).toISOString()],
  ["finishedAt", ({ finishedAt }) => finishedAt && new Date(finishedAt).toISOString()],
];

/** An endpoint's log as a file, from this page on, without what was sent. */
async function exportDeliveries(visit: Visit): Promise<Response> {
  const { webhookEndpoints } = visit.hub.engine.read;
  const endpoint = await webhookEndpoints.find(visit.params["id"]!);
  if (!endpoint || (visit.session.project !== null && visit.session.project !== endpoint.project))
    throw new HubError("endpoint_not_found", "there is no such webhook endpoint");
  const rows = await webhookEndpoints.log(endpoint.id, visit.url.searchParams.get("after") ?? NEWEST, EXPORT_ROWS_MAX);
  return download("deliveries", visit.params["format"]!, EXPORT, rows);
}

export const screens: readonly Screen[] = [
  replay,
  screen({ method: "GET", path: "/webhooks/:id/export/:format", role: "viewer", run: exportDeliveries }),
];

// The log of incoming deliveries over HTTP: what came and what was made of it, without bodies.
import * as arrivals from "../hub/webhook-arrivals.ts";
import { HubError } from "../protocol/errors.ts";
import { ArrivalsAnswer, ArrivalsQuery } from "../protocol/webhook-arrivals.ts";
import { projectOf } from "./credentials.ts";
import { type Route, route } from "./route.ts";

const list = route({
  method: "GET",
  path: "/v1/webhook-arrivals",
  operationId: "listWebhookArrivals",
  tag: "webhooks",
  summary: "The log of incoming deliveries of a project, newest first: accepted, duplicate, ignored or refused, and why. Never their bodies.",
  credential: "viewer",
  query: ArrivalsQuery,
  answers: { 200: ArrivalsAnswer },
  errors: ["webhook_not_found"],
  run: async ({ hub, caller, query }) => {
    const { definitionId, outcome, after, limit } = query;
    const project = projectOf(caller, query.project);
    if (definitionId !== undefined && hub.definitions.get(definitionId)?.project !== project)
      throw new HubError("webhook_not_found", `${project} has no workflow definition ${definitionId}`);
    const of = definitionId === undefined ? { project, outcome: outcome === "all" ? undefined : outcome } : { definitionId };
    const { rows, next } = await arrivals.list(hub.engine.read, of, { after: cursorOf(after), limit });
    return { status: 200, body: { arrivals: rows.map(arrivals.arrivalOf), ...(next && { next: `${next.at}.${next.id}` }) } };
  },
});

/** @throws HubError protocol_error */
function cursorOf(text: string | undefined): { at: number; id: string } | undefined {
  if (text === undefined) return undefined;
  const [, at, id] = /^(\d{1,16})\.(arr_[\w-]{1,64})$/.exec(text) ?? [];
  if (at === undefined || id === undefined) throw new HubError("protocol_error", "after is not the next of a page");
  return { at: Number(at), id };
}

export const webhookArrivalRoutes: readonly Route[] = [list];

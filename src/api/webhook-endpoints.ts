// Outgoing webhooks over HTTP: endpoints, their secrets, and the delivery log with replay.
import { checkAddress } from "../http/outbound.ts";
import type { Hub } from "../hub/hub.ts";
import * as deliveries from "../hub/webhook-deliveries.ts";
import * as endpoints from "../hub/webhook-endpoints.ts";
import { HubError } from "../protocol/errors.ts";
import {
  DeliveriesQuery,
  DeliveryAnswer,
  DeliveryList,
  DisableBody,
  EndpointAnswer,
  EndpointBody,
  EndpointCreated,
  EndpointList,
  EndpointParams,
  EndpointsQuery,
  newSigningSecret,
  RotateQuery,
} from "../protocol/webhook-endpoints.ts";
import { byOf, projectOf, requireProject, type TokenCaller } from "./credentials.ts";
import { type Route, route } from "./route.ts";

const ENDPOINTS_MAX = 200;
const END = "dlv_~"; // sorts after every id

/** The endpoint, for those who may see its project. @throws HubError endpoint_not_found */
async function endpointFor(hub: Hub, caller: TokenCaller, id: string) {
  const row = await hub.engine.read.webhookEndpoints.find(id);
  if (!row || (caller.project !== null && caller.project !== row.project))
    throw new HubError("endpoint_not_found", `there is no webhook endpoint ${id}`);
  return row;
}

const create = route({
  method: "POST",
  path: "/v1/webhook-endpoints",
  operationId: "createWebhookEndpoint",
  tag: "webhook endpoints",
  summary: "Adds a receiver of a project's events; its secret is shown once.",
  credential: "admin-configured",
  body: EndpointBody,
  answers: { 201: EndpointCreated },
  errors: ["invalid_webhook_url"],
  run: async ({ hub, caller, body, request }) => {
    requireProject(caller, body.project);
    checkAddress(body.url, body.allowPrivate);
    const secret = newSigningSecret();
    const row = await hub.engine.write(body.project, (tx) => endpoints.create(tx, byOf(caller, request), { ...body, secret }));
    return { status: 201, body: { endpoint: endpoints.toEndpoint(row), secret } };
  },
});

const list = route({
  method: "GET",
  path: "/v1/webhook-endpoints",
  operationId: "listWebhookEndpoints",
  tag: "webhook endpoints",
  summary: "Lists the receivers of a project's events.",
  credential: "viewer",
  query: EndpointsQuery,
  answers: { 200: EndpointList },
  errors: [],
  run: async ({ hub, caller, query }) => {
    const rows = await hub.engine.read.webhookEndpoints.ofProject(projectOf(caller, query.project), ENDPOINTS_MAX);
    return { status: 200, body: { endpoints: rows.map(endpoints.toEndpoint) } };
  },
});

const rotate = route({
  method: "POST",
  path: "/v1/webhook-endpoints/:id/rotate",
  operationId: "rotateWebhookSecret",
  tag: "webhook endpoints",
  summary: "Makes a new secret; the old one signs on for a day. The same key again answers with the secret that the first request made.",
  credential: "admin-configured",
  params: EndpointParams,
  query: RotateQuery,
  answers: { 200: EndpointCreated },
  errors: ["endpoint_not_found"],
  run: async ({ hub, caller, params, query, request }) => {
    const { project } = await endpointFor(hub, caller, params.id);
    const wanted = { secret: newSigningSecret(), key: query.idempotencyKey };
    const { row, secret } = await hub.engine.write(project, (tx) => endpoints.rotate(tx, byOf(caller, request), params.id, wanted));
    return { status: 200, body: { endpoint: endpoints.toEndpoint(row), secret } };
  },
});

const enable = route({
  method: "POST",
  path: "/v1/webhook-endpoints/:id/enable",
  operationId: "enableWebhookEndpoint",
  tag: "webhook endpoints",
  summary: "Starts a disabled receiver again, from now on.",
  credential: "admin-configured",
  params: EndpointParams,
  answers: { 200: EndpointAnswer },
  errors: ["endpoint_not_found"],
  run: async ({ hub, caller, params, request }) => {
    const { project } = await endpointFor(hub, caller, params.id);
    return {
      status: 200,
      body: { endpoint: endpoints.toEndpoint(await hub.engine.write(project, (tx) => endpoints.enable(tx, byOf(caller, request), params.id))) },
    };
  },
});

const disable = route({
  method: "POST",
  path: "/v1/webhook-endpoints/:id/disable",
  operationId: "disableWebhookEndpoint",
  tag: "webhook endpoints",
  summary: "Stops a receiver: it is told of nothing until it is enabled. A repeat changes nothing.",
  credential: "admin-configured",
  params: EndpointParams,
  body: DisableBody,
  answers: { 200: EndpointAnswer },
  errors: ["endpoint_not_found"],
  run: async ({ hub, caller, params, body, request }) => {
    const { project } = await endpointFor(hub, caller, params.id);
    const row = await hub.engine.write(project, (tx) => endpoints.disableByHand(tx, byOf(caller, request), params.id, body.reason));
    return { status: 200, body: { endpoint: endpoints.toEndpoint(row) } };
  },
});

const remove = route({
  method: "DELETE",
  path: "/v1/webhook-endpoints/:id",
  operationId: "removeWebhookEndpoint",
  tag: "webhook endpoints",
  summary: "Removes a receiver with its log.",
  credential: "admin-configured",
  params: EndpointParams,
  answers: { 204: null },
  errors: ["endpoint_not_found"],
  run: async ({ hub, caller, params, request }) => {
    const { project } = await endpointFor(hub, caller, params.id);
    await hub.engine.write(project, (tx) => endpoints.remove(tx, byOf(caller, request), params.id));
    return { status: 204 };
  },
});

const test = route({
  method: "POST",
  path: "/v1/webhook-endpoints/:id/test",
  operationId: "testWebhookEndpoint",
  tag: "webhook endpoints",
  summary: "Queues a test event for a receiver.",
  credential: "admin-configured",
  params: EndpointParams,
  answers: { 202: DeliveryAnswer },
  errors: ["endpoint_not_found"],
  run: async ({ hub, caller, params, request }) => {
    const { project } = await endpointFor(hub, caller, params.id);
    return {
      status: 202,
      body: { delivery: endpoints.toDelivery(await hub.engine.write(project, (tx) => deliveries.test(tx, byOf(caller, request), params.id))) },
    };
  },
});

const log = route({
  method: "GET",
  path: "/v1/webhook-endpoints/:id/deliveries",
  operationId: "listWebhookDeliveries",
  tag: "webhook endpoints",
  summary: "The delivery log of a receiver, newest first.",
  credential: "viewer",
  params: EndpointParams,
  query: DeliveriesQuery,
  answers: { 200: DeliveryList },
  errors: ["endpoint_not_found"],
  run: async ({ hub, caller, params, query }) => {
    await endpointFor(hub, caller, params.id);
    const rows = await hub.engine.read.webhookEndpoints.log(params.id, query.after ?? END, query.limit + 1);
    const page = rows.slice(0, query.limit);
    return { status: 200, body: { deliveries: page.map(endpoints.toDelivery), ...(rows.length > page.length && { next: page.at(-1)!.id }) } };
  },
});

const replay = route({
  method: "POST",
  path: "/v1/webhook-deliveries/:id/replay",
  operationId: "replayWebhookDelivery",
  tag: "webhook endpoints",
  summary: "Sends a finished delivery again under the same id.",
  credential: "operator",
  params: EndpointParams,
  answers: { 202: DeliveryAnswer },
  errors: ["delivery_not_found"],
  run: async ({ hub, caller, params, request }) => {
    const known = await hub.engine.read.webhookEndpoints.findDelivery(params.id);
    if (!known || (caller.project !== null && caller.project !== known.project))
      throw new HubError("delivery_not_found", `there is no delivery ${params.id}`);
    return {
      status: 202,
      body: {
        delivery: endpoints.toDelivery(await hub.engine.write(known.project, (tx) => deliveries.replay(tx, byOf(caller, request), params.id))),
      },
    };
  },
});

export const webhookEndpointRoutes: readonly Route[] = [create, list, rotate, enable, disable, remove, test, log, replay];

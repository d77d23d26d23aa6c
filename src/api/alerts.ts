// Alerts over HTTP: what an operator should look at, and saying what was found.
import * as alerts from "../hub/alerts.ts";
import { AcknowledgeBody, AlertAnswer, AlertsAnswer, IdParams, OpenQuery } from "../protocol/alerts.ts";
import { byOf, projectOf } from "./credentials.ts";
import { type Route, route } from "./route.ts";

const list = route({
  method: "GET",
  path: "/v1/alerts",
  operationId: "listAlerts",
  tag: "alerts",
  summary: "Lists the alerts of a project, newest first.",
  credential: "viewer",
  query: OpenQuery,
  answers: { 200: AlertsAnswer },
  errors: [],
  run: async ({ hub, caller, query }) => ({ status: 200, body: await alerts.list(hub.engine.read, projectOf(caller, query.project), query) }),
});

const acknowledge = route({
  method: "POST",
  path: "/v1/alerts/:id/acknowledge",
  operationId: "acknowledgeAlert",
  tag: "alerts",
  summary: "Notes what was found about an alert. A repeat changes nothing.",
  credential: "operator",
  params: IdParams,
  body: AcknowledgeBody,
  answers: { 200: AlertAnswer },
  errors: ["alert_not_found"],
  run: async ({ hub, caller, params, body, request }) => {
    const { project } = await alerts.find(hub.engine.read, params.id, caller.project);
    const noted = await hub.engine.write(project, (tx) => alerts.acknowledge(tx, byOf(caller, request), params.id, body.reason));
    return { status: 200, body: { alert: alerts.alertOf(noted) } };
  },
});

export const alertRoutes: readonly Route[] = [list, acknowledge];

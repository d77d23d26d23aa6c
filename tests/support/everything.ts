// A hub on which every page of the dashboard has something to show, and the address of each page on it.
import { storeWork } from "../../src/cli/hub-store.ts";
import * as budgets from "../../src/hub/budgets.ts";
import * as commands from "../../src/hub/commands.ts";
import * as savedViews from "../../src/hub/saved-views.ts";
import * as tokens from "../../src/hub/tokens.ts";
import * as upkeep from "../../src/hub/upkeep.ts";
import * as arrivals from "../../src/hub/webhook-arrivals.ts";
import * as deliveries from "../../src/hub/webhook-deliveries.ts";
import * as endpoints from "../../src/hub/webhook-endpoints.ts";
import { newSecret } from "../../src/protocol/ids.ts";
import type { DashboardWorld } from "./dashboard.ts";
import { fixing, JIRA_FIX } from "./lived-in.ts";
import { LIVELY, type Lively, liven } from "./lively.ts";
import { withWorkflows } from "./workflows.ts";

const HOSTILE = "<img src=x onerror=1>\u202e";

const HOUR = 3_600_000;
const BY = { actor: "admin", role: "admin", origin: "cli" };

export interface Everything extends Lively {
  /** Path of a screen as it is declared → an address of it that shows something, for an admin. */
  addresses: Readonly<Record<string, readonly string[]>>;
}

/** Fills a world: a lively project, a workflow of another one with its journal, a receiver with a delivery, a token, a saved list. */
export async function fillEverything(world: DashboardWorld): Promise<Everything> {
  const { hub, clock } = world;
  const { read, write } = hub.engine;
  const end = clock.now;
  clock.now = end - 5 * HOUR;
  const workflow = await fixing(await withWorkflows(world, JIRA_FIX));
  clock.now = end;
  const lively = await liven(hub, clock);
  const endpoint = await write(LIVELY, (tx) =>
    endpoints.create(tx, BY, {
      project: LIVELY,
      url: "https://ci.example.org/hooks/kxm",
      eventTypes: ["approvals.*"],
      allowBodies: false,
      allowPrivate: false,
      secret: newSecret("whsec"),
    }),
  );
  await write(LIVELY, (tx) => deliveries.test(tx, BY, endpoint.id));
  await deliveries.deliverDue(hub, { post: async () => ({ status: 410, retryAfter: null }), random: () => 0.5 });
  const token = await write("", (tx) =>
    tokens.create(tx, BY, { secret: newSecret("kxm"), name: "ci", scope: "operator", project: null, expiresAt: null }),
  );
  for (const [project, amount] of [
    [LIVELY, 15],
    ["", 900],
  ] as const)
    await write(project, (tx) => budgets.set(tx, BY, { project, period: "day", currency: "USD", amount }));
  await comeIn(world);
  hub.storeWork = storeWork({ databaseUrl: undefined, dataPath: world.location, stateDir: world.location.replace(/[^/]*$/, "state") }, hub.clock);
  for (const kind of ["backup", "verify"] as const) await (await upkeep.start(hub, BY, kind)).settled;
  const admin = { role: "admin", project: null, tokenId: null } as const;
  await write("", (tx) => savedViews.save(tx, BY, admin, { name: "Broken runs", place: "runs", query: `project=${LIVELY}&view=failed` }));
  const [approval] = await read.approvals.pendingPage(LIVELY, 1);
  const [conflict] = await read.conflicts.openPage(LIVELY, "~", 1);
  const [alert] = await read.alerts.openPage(LIVELY, "~", 1);
  const [lease] = await read.leases.held(LIVELY, "", 1);
  const [runtime] = await read.runtimes.ofProject(LIVELY, 1);
  const { projectId, runId } = lively.run;
  const { command } = await commands.send(hub, BY, { project: LIVELY, kind: "cancel", projectId, runId, payload: { reason: "not any more" } });
  const within = `project=${LIVELY}`;
  const of = (path: string) => `${path}${path.includes("?") ? "&" : "?"}${within}`;
  const agent = `/agents/${lively.agents["implementer"]!.id}`;
  return {
    ...lively,
    addresses: {
      "/": [of("/")],
      "/start": ["/start"],
      "/agents": [of("/agents"), of("/agents?show=needs")],
      "/agents/:id": [of(agent)],
      "/agents/:id/end": [of(`${agent}/end?act=retire`)],
      "/messages": [of("/messages"), of("/messages?box=dead")],
      "/messages/:id": [of(`/messages/${lively.openMessage}`)],
      "/messages/:id/cancel": [of(`/messages/${lively.openMessage}/cancel`)],
      "/messages/new": [of("/messages/new?to=reviewer")],
      "/approvals": [of("/approvals")],
      "/approvals/outcome": [of(`/approvals/outcome?decision=approve&pick=${approval!.id}+${approval!.contentHash}`)],
      "/approvals/reject": [of(`/approvals/reject?pick=${approval!.id}+${approval!.contentHash}`)],
      "/approvals/:id": [of(`/approvals/${approval!.id}`)],
      "/runs": [of("/runs"), of("/runs?view=all&q=status:failed&act=save-view")],
      "/runs/new": [of("/runs/new")],
      "/messages/matching": ["/messages/matching?act=cancel"],
      "/runs/cancel": [of(`/runs/cancel?pick=${projectId}/${runId}`)],
      "/runs/:projectId/:runId": [of(`/runs/${projectId}/${runId}`), of(`/runs/${projectId}/${runId}?events=trouble&event=3`)],
      "/workflows/:runId": [`/workflows/${workflow}?project=shop`],
      "/commands": [of(`/commands?id=${command.id}`)],
      "/runtimes": [of("/runtimes")],
      "/runtimes/:runtimeId": [of(`/runtimes/${runtime!.runtimeId}`)],
      "/sync": [of("/sync"), of("/sync?tab=alerts")],
      "/sync/:id": [of(`/sync/${conflict!.id}`), of(`/sync/${alert!.id}`)],
      "/leases": [of("/leases")],
      "/leases/:name": [of(`/leases/${encodeURIComponent(lease!.name)}`)],
      "/webhooks": [of("/webhooks")],
      "/webhooks/incoming": ["/webhooks/incoming", "/webhooks/incoming?outcome=refused"],
      "/webhooks/new": [of("/webhooks/new")],
      "/webhooks/:id": [of(`/webhooks/${endpoint.id}`), of(`/webhooks/${endpoint.id}?act=rotate`)],
      "/audit": ["/audit"],
      "/search": [of("/search?q=ledger")],
      "/views": ["/views"],
      "/journal": ["/journal?project=shop", "/journal?project=shop&show=signals"],
      "/context": [of("/context"), of("/context?key=retry/payments")],
      "/context/pool": [of("/context/pool?role=planner&task=refunds&words=ledger")],
      "/settings": ["/settings", "/settings?tab=retention", "/settings?tab=store"],
      "/settings/tokens/new": ["/settings/tokens/new"],
      "/settings/tokens/revoke": [`/settings/tokens/revoke?id=${token.id}`],
      "/settings/tokens/open": ["/settings/tokens/open?of=shop"],
      "/cost": [of("/cost"), "/cost?days=1&by=machine&act=budget", of("/cost?days=30&by=model")],
    },
  };
}

/** Deliveries of a workflow of the other project: a repeat, and ones that claim what they like. */
async function comeIn({ hub }: DashboardWorld): Promise<void> {
  const arrival = { project: "shop", definitionId: [...hub.definitions.keys()][0]!, kind: "start" } as const;
  hub.arrivals.note({ ...arrival, verified: true, deliveryId: HOSTILE, event: HOSTILE, program: HOSTILE }, { outcome: "ignored", reason: HOSTILE });
  for (let n = 0; n < 3; n++)
    hub.arrivals.note(
      { ...arrival, verified: false, deliveryId: `${HOSTILE}${n}`, sender: "203.0.113.9", program: "curl/8.5" },
      { outcome: "refused", code: "webhook_signature_invalid", reason: "the signature does not match" },
    );
  await arrivals.flush(hub);
}

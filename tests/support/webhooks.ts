// Webhooks of a lively hub: definitions that deliveries start, receivers of which one fails, and a log in both directions.
import * as arrivals from "../../src/hub/webhook-arrivals.ts";
import * as deliveries from "../../src/hub/webhook-deliveries.ts";
import * as endpoints from "../../src/hub/webhook-endpoints.ts";
import { parseDefinitions } from "../../src/hub/workflows/definitions.ts";
import { newSigningSecret } from "../../src/protocol/webhook-endpoints.ts";
import { signBody, signEnvelope } from "../../src/protocol/webhook-signature.ts";
import type { DashboardWorld } from "./dashboard.ts";

const SECRET = "0123456789abcdef-start";
const BY = { actor: "ses_a", role: "admin" };
const stage = (id: string) => ({ id, instructions: "Do it", requiredEvidence: ["log"] });

const definitionsOf = (project: string) => [
  { id: "jira-fix", source: "jira", project, target: "planner", secret: SECRET, promptTemplate: "Fix it", stages: ["a", "b", "c", "d"].map(stage) },
  {
    id: "github-pr",
    source: "github",
    project,
    target: "reviewer",
    secret: SECRET,
    event: "pull_request",
    promptTemplate: "Review it",
    stages: ["a", "b"].map(stage),
  },
  { id: "nightly-audit", project, target: "security-review", secret: SECRET, promptTemplate: "Audit it", stages: ["a"].map(stage) },
];

/** Gives a hub webhooks in both directions and lets things happen to them. @param project whose agents planner, reviewer and security-review exist */
export async function hook(world: DashboardWorld, project: string): Promise<{ endpoints: string[] }> {
  const { definitions, problems } = parseDefinitions(JSON.stringify(definitionsOf(project)), {});
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
  world.hub.definitions = definitions;
  await arrive(world);
  const made: string[] = [];
  for (const url of ["https://ci.example.org/hooks/kxm", "https://hooks.example.net/kxm?team=payments-platform-and-ledger"]) {
    const request = { project, url, eventTypes: ["approvals.*", "workflows.started"], allowBodies: false, allowPrivate: false };
    const { id } = await world.hub.engine.write(project, (tx) => endpoints.create(tx, BY, { ...request, secret: newSigningSecret() }));
    made.push(id);
    for (let n = 0; n < 3; n++) await world.hub.engine.write(project, (tx) => deliveries.test(tx, BY, id));
  }
  const post: deliveries.Post = async ({ url }) => ({ status: url.includes("ci.") ? 200 : 503, retryAfter: null });
  await deliveries.deliverDue(world.hub, { post, random: () => 0.5 });
  return { endpoints: made };
}

/** Starts, a repeat, one that nobody wants, and forged ones. */
async function arrive({ call, hub, clock }: DashboardWorld): Promise<void> {
  const bytes = (payload: object) => new TextEncoder().encode(JSON.stringify(payload));
  const send = async (definitionId: string, deliveryId: string, payload: object, more: Record<string, string> = {}) => {
    clock.now += 1_000;
    const body = bytes(payload);
    const timestamp = String(Math.floor(clock.now / 1_000));
    const signature = signEnvelope(SECRET, { kind: "start", timestamp, deliveryId, definitionId, runId: "", signalKey: "" }, body);
    const headers = { "x-kxm-signature": signature, "x-kxm-timestamp": timestamp, "x-kxm-delivery-id": deliveryId, ...more };
    await call("POST", `/v1/webhooks/${definitionId}`, { body, headers });
  };
  const fromGithub = async (deliveryId: string, event: string, payload: object) => {
    clock.now += 1_000;
    const body = bytes(payload);
    const headers = { "x-hub-signature-256": signBody(SECRET, body), "x-github-delivery": deliveryId, "x-github-event": event };
    await call("POST", "/v1/webhooks/github-pr", { body, headers: { ...headers, "user-agent": "GitHub-Hookshot/2f1a" } });
  };
  for (const n of [1, 2, 3]) await fromGithub(`6f2e0b1${n}-44aa-11ef`, "pull_request", { action: "opened", number: n });
  await fromGithub("6f2e0b11-44aa-11ef", "pull_request", { action: "opened", number: 1 });
  await fromGithub("6f2e0b19-44aa-11ef", "issue_comment", { action: "created" });
  await send("nightly-audit", "n-30", {}, { "user-agent": "curl/8.5" });
  for (const n of [1, 2, 3, 4]) await send("jira-fix", `d-8824${n}`, {}, { "x-kxm-signature": "sha256=00", "user-agent": "python-requests/2.32" });
  await send("jira-fix", "d-88251", { issue: { key: "PAY-7" } }, { "user-agent": "Atlassian HttpClient" });
  await arrivals.flush(hub);
}

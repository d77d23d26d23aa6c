// Outgoing webhooks: endpoints of a project that are told of its events, signed by the Standard Webhooks scheme, with a log of deliveries.
import { createHmac } from "node:crypto";
import { type Static, Type } from "@sinclair/typebox";
import { flag, integer, optionalText, text, textList } from "./fields.ts";
import { nearest } from "./nearest.ts";

/** How long an old secret still signs beside the new one. */
export const SECRET_OVERLAP_MS = 86_400_000;
/** Endpoints a project may have. */
export const ENDPOINTS_MAX = 50;
/** Waits between attempts, in milliseconds: at once, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h (the scheme's suggestion). Each ±10 %. */
export const ATTEMPT_WAITS_MS: readonly number[] = [
  0, 5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 50_400_000, 72_000_000, 86_400_000,
];
export const DELIVERY_STATES = ["pending", "delivered", "failed"] as const;

/** What events are about, as patterns name it. */
export const EVENT_TOPICS = [
  "agents",
  "messages",
  "leases",
  "sync",
  "runtimes",
  "approvals",
  "workflows",
  "journal",
  "context",
  "webhooks",
  "alerts",
  "settings",
] as const;
/** `topic.type`, `topic.*` or `*`. */
export const EVENT_PATTERN = /^(\*|[a-z]+\.(\*|[a-z_.]+))$/;
/** Whether an event's `topic.type` fits one of the patterns. */
export const matchesEvent = (patterns: readonly string[], type: string): boolean =>
  patterns.some((pattern) => pattern === "*" || pattern === type || (pattern.endsWith(".*") && type.startsWith(pattern.slice(0, -1))));

/** What is wrong with a pattern, in a sentence; undefined when nothing is. A mistyped topic would never fit an event. */
export function wrongPattern(pattern: string): string | undefined {
  const shown = pattern.slice(0, 64);
  if (!EVENT_PATTERN.test(pattern)) return `${shown} is not topic.type, topic.* or *`;
  const topic = pattern.split(".")[0]!;
  if (pattern === "*" || (EVENT_TOPICS as readonly string[]).includes(topic)) return undefined;
  const close = nearest(topic, EVENT_TOPICS);
  const instead = close === undefined ? `topics are ${EVENT_TOPICS.join(", ")}` : `did you mean ${close}${shown.slice(topic.length)}?`;
  return `${shown} names no topic: ${instead}`;
}

/** A new signing secret: 32 random bytes, base64, as the scheme writes it. Shown once; kept readable at the hub, because it must sign. */
export const newSigningSecret = (): string => `whsec_${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64")}`;

/**
 * The three headers of a delivery.
 * @param secrets those in force, newest first: during a rotation the receiver may still know only the old one
 * @param seconds Unix time of this attempt
 */
export function signedHeaders(secrets: readonly string[], id: string, seconds: number, body: string): Record<string, string> {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
    return `v1,${createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64")}`;
  });
  return { "webhook-id": id, "webhook-timestamp": String(seconds), "webhook-signature": signatures.join(" ") };
}

export const EndpointBody = Type.Object({
  project: text(128),
  url: text(2000, { description: "https address of the receiver" }),
  eventTypes: textList(32, { itemMax: 128, description: "topic.type, topic.* or *; all when empty" }),
  allowBodies: flag({ description: "Also send message texts; without it only metadata leaves the hub" }),
  allowPrivate: flag({ description: "Exactly this host and port may be on this machine or network, also over http" }),
});
export type EndpointBody = Static<typeof EndpointBody>;
export const EndpointParams = Type.Object({ id: text(64) });
export const RotateQuery = Type.Object({
  idempotencyKey: optionalText(128, { description: "The same key again makes no further secret." }),
});
export const DisableBody = Type.Object({ reason: text(500, { description: "Shown beside the endpoint, and kept in the audit log." }) });
export const EndpointsQuery = Type.Object({ project: optionalText(128) });
export const DeliveriesQuery = Type.Object({ after: optionalText(64), limit: integer({ default: 50, min: 1, max: 200 }) });

export const WebhookEndpoint = Type.Object({
  id: Type.String(),
  project: Type.String(),
  url: Type.String(),
  eventTypes: Type.Array(Type.String()),
  allowBodies: Type.Boolean(),
  allowPrivate: Type.Boolean(),
  createdAt: Type.String(),
  disabledAt: Type.Optional(Type.String()),
  disabledReason: Type.Optional(Type.String()),
});
export type WebhookEndpoint = Static<typeof WebhookEndpoint>;
export const WebhookDelivery = Type.Object({
  id: Type.String(),
  endpointId: Type.String(),
  eventType: Type.String(),
  eventSeq: Type.Integer(),
  state: Type.Union(DELIVERY_STATES.map((word) => Type.Literal(word))),
  attempts: Type.Array(
    Type.Object({ at: Type.String(), status: Type.Optional(Type.Integer()), error: Type.Optional(Type.String()), ms: Type.Integer() }),
  ),
  nextAt: Type.Optional(Type.String()),
  createdAt: Type.String(),
  finishedAt: Type.Optional(Type.String()),
});
export type WebhookDelivery = Static<typeof WebhookDelivery>;
export const EndpointCreated = Type.Object({
  endpoint: WebhookEndpoint,
  secret: Type.String({ description: "Shown once; verify deliveries with it" }),
});
export const EndpointAnswer = Type.Object({ endpoint: WebhookEndpoint });
export const EndpointList = Type.Object({ endpoints: Type.Array(WebhookEndpoint) });
export const DeliveryList = Type.Object({ deliveries: Type.Array(WebhookDelivery), next: Type.Optional(Type.String()) });
export const DeliveryAnswer = Type.Object({ delivery: WebhookDelivery });

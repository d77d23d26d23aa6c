// The log of incoming deliveries: what came, from whom, and what was made of it. Never a body.
import { type Static, Type } from "@sinclair/typebox";
import { integer, oneOf, optionalText } from "./fields.ts";
import { PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX } from "./limits.ts";

export const ARRIVAL_OUTCOMES = ["accepted", "duplicate", "ignored", "refused"] as const;
const optional = Type.Optional;

export const WebhookArrival = Type.Object({
  id: Type.String(),
  project: Type.String(),
  definitionId: Type.String(),
  kind: Type.Union([Type.Literal("start"), Type.Literal("signal")]),
  outcome: Type.Union(ARRIVAL_OUTCOMES.map((word) => Type.Literal(word))),
  verified: Type.Boolean({ description: "Its signature was right; else the delivery id and the event are only claimed." }),
  code: optional(Type.String({ description: "Error code of a refusal." })),
  reason: optional(Type.String()),
  deliveryId: optional(Type.String()),
  event: optional(Type.String()),
  sender: optional(Type.String({ description: "The address it came from, as the hub saw it." })),
  program: optional(Type.String({ description: "What the sender calls itself." })),
  runId: optional(Type.String()),
  signalKey: optional(Type.String()),
  count: Type.Integer({ minimum: 1, description: "How many alike: deliveries without a right signature are counted by hour and reason." }),
  at: Type.String({ description: "When the newest of them came." }),
});
export type WebhookArrival = Static<typeof WebhookArrival>;

export const ArrivalsQuery = Type.Object({
  project: optionalText(128, { description: "The hub project; a token of one project may leave it out." }),
  definitionId: optionalText(64, { description: "Only deliveries to this definition; then outcome is not looked at." }),
  outcome: oneOf(["all", ...ARRIVAL_OUTCOMES], { default: "all" }),
  after: optionalText(100, { description: "next of the page before." }),
  limit: integer({ default: PAGE_ROWS_DEFAULT, min: 1, max: PAGE_ROWS_MAX }),
});
export const ArrivalsAnswer = Type.Object({
  arrivals: Type.Array(WebhookArrival),
  next: optional(Type.String({ description: "Send it as after for the next page; absent on the last." })),
});
export type ArrivalsAnswer = Static<typeof ArrivalsAnswer>;

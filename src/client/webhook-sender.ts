// Signing a delivery to the hub's incoming webhooks.
import { sha256 } from "../protocol/canonical.ts";
import { type Envelope, signEnvelope } from "../protocol/webhook-signature.ts";

/** Path and headers of a signed start or signal. @param deliveryId made from route and body when left out, so that a retry is the same delivery */
export function signedDelivery(
  secret: string,
  envelope: Omit<Envelope, "timestamp" | "deliveryId">,
  body: string,
  { now, deliveryId = `kxm-${sha256(JSON.stringify([envelope, body])).slice(0, 32)}` }: { now: number; deliveryId?: string | undefined },
): { path: string; headers: Record<string, string> } {
  const timestamp = String(Math.floor(now / 1000));
  const signature = signEnvelope(secret, { ...envelope, timestamp, deliveryId }, new TextEncoder().encode(body));
  const { kind, definitionId, runId, signalKey } = envelope;
  const start = `/v1/webhooks/${encodeURIComponent(definitionId)}`;
  const path = kind === "start" ? start : `${start}/runs/${encodeURIComponent(runId)}/signals/${encodeURIComponent(signalKey)}`;
  return { path, headers: { "x-kxm-signature": signature, "x-kxm-timestamp": timestamp, "x-kxm-delivery-id": deliveryId } };
}

// Signatures of incoming webhooks: the kxm-webhook-v1 envelope and the providers' body-only form. Used by the hub to verify and by clients to sign.
import { createHmac, timingSafeEqual } from "node:crypto";
import { HubError } from "./errors.ts";

/** How far a signed timestamp may be from the hub's clock, either way. */
export const TIMESTAMP_TOLERANCE_S = 300;
const ENVELOPE = "kxm-webhook-v1";

/** What the envelope binds a body to. Empty run and key for a start. */
export type Envelope = { kind: "start" | "signal"; timestamp: string; deliveryId: string; definitionId: string; runId: string; signalKey: string };

/** HMAC-SHA256 over seven newline-terminated fields and the raw body, as `sha256=<hex>`. @throws HubError webhook_signature_invalid when a field holds a line break */
export function signEnvelope(secret: string, { kind, timestamp, deliveryId, definitionId, runId, signalKey }: Envelope, body: Uint8Array): string {
  const fields = [ENVELOPE, kind, timestamp, deliveryId, definitionId, runId, signalKey];
  if (fields.some((field) => /[\r\n]/.test(field))) throw new HubError("webhook_signature_invalid", "a signed field holds a line break");
  return `sha256=${createHmac("sha256", secret)
    .update(fields.map((field) => `${field}\n`).join(""))
    .update(body)
    .digest("hex")}`;
}

/** The providers' form: HMAC-SHA256 over the raw body alone. */
export const signBody = (secret: string, body: Uint8Array): string => `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;

/** Compares in time that does not depend on where two signatures differ. */
export function sameSignature(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given.toLowerCase()), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Who signed a delivery and under which id. `body` deliveries are the providers', whose replay identity is the body. */
export type Verified = { deliveryId: string; form: "envelope" | "body" };
export type HeaderReader = (name: string) => string | null;

/**
 * Verifies a start or signal.
 * @param source whose body-only form is accepted for starts; signals take the envelope only
 * @param now the hub's clock, milliseconds
 * @throws HubError webhook_signature_missing, webhook_signature_unsupported, webhook_signature_invalid, webhook_timestamp_expired
 */
export function verifyDelivery(options: {
  header: HeaderReader;
  body: Uint8Array;
  secret: string;
  source: "jira" | "github" | "generic";
  envelope: Omit<Envelope, "timestamp" | "deliveryId">;
  now: number;
}): Verified {
  const { header, body, secret, source, envelope, now } = options;
  const signature = header("x-kxm-signature");
  if (signature !== null) {
    const timestamp = header("x-kxm-timestamp") ?? "";
    const deliveryId = header("x-kxm-delivery-id") ?? "";
    requireSha256(signature);
    if (!sameSignature(signature, signEnvelope(secret, { ...envelope, timestamp, deliveryId }, body))) throw invalid();
    const seconds = /^\d{1,12}$/.test(timestamp) ? Number(timestamp) : Number.NaN;
    if (!(Math.abs(now / 1000 - seconds) <= TIMESTAMP_TOLERANCE_S))
      throw new HubError("webhook_timestamp_expired", "the signed timestamp is too far from the hub's clock");
    return { deliveryId, form: "envelope" };
  }
  const provider = envelope.kind === "start" ? providerSignature(header, source) : undefined;
  if (!provider) throw new HubError("webhook_signature_missing", "the request carries no signature that this route accepts");
  requireSha256(provider.signature);
  if (!sameSignature(provider.signature, signBody(secret, body))) throw invalid();
  return { deliveryId: provider.deliveryId, form: "body" };
}

const invalid = () => new HubError("webhook_signature_invalid", "the signature does not match");
function requireSha256(signature: string) {
  if (!signature.toLowerCase().startsWith("sha256=")) throw new HubError("webhook_signature_unsupported", "only sha256 signatures are accepted");
}

/** For provider deliveries only that provider's delivery header is read. */
function providerSignature(header: HeaderReader, source: "jira" | "github" | "generic") {
  if (source === "generic") return undefined;
  const signature = header("x-hub-signature-256") ?? (source === "jira" ? header("x-hub-signature") : null);
  return signature === null
    ? undefined
    : { signature, deliveryId: header(source === "jira" ? "x-atlassian-webhook-identifier" : "x-github-delivery") ?? "" };
}

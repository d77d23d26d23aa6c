// Signatures of incoming webhooks: what is accepted, and that every signed part counts.
import { describe, expect, test } from "bun:test";
import { signBody, signEnvelope, verifyDelivery } from "../../src/protocol/webhook-signature.ts";

const secret = "0123456789abcdef-secret";
const now = 1_700_000_000_000;
const body = new TextEncoder().encode('{"a":1}');
const envelope = { kind: "signal" as const, definitionId: "def", runId: "run_1", signalKey: "ci" };
const signed = (change: Record<string, string> = {}, signedWith = secret) => {
  const fields = { ...envelope, timestamp: String(now / 1000), deliveryId: "d-1", ...change } as Parameters<typeof signEnvelope>[1];
  return {
    "x-kxm-signature": signEnvelope(signedWith, fields, body),
    "x-kxm-timestamp": fields.timestamp,
    "x-kxm-delivery-id": fields.deliveryId,
  } as Record<string, string>;
};
const verify = (headers: Record<string, string>, more: Partial<Parameters<typeof verifyDelivery>[0]> = {}) => {
  try {
    return verifyDelivery({ header: (name) => headers[name] ?? null, body, secret, source: "generic", envelope, now, ...more });
  } catch (error) {
    return (error as { code: string }).code;
  }
};

test("a genuine envelope names its delivery", () => {
  expect(verify(signed())).toEqual({ deliveryId: "d-1", form: "envelope" });
});

test("the envelope is the documented bytes", () => {
  const expected = new Bun.CryptoHasher("sha256", secret).update(`kxm-webhook-v1\nsignal\n${now / 1000}\nd-1\ndef\nrun_1\nci\n{"a":1}`).digest("hex");
  expect(signed()["x-kxm-signature"]).toBe(`sha256=${expected}`);
});

describe("changing one signed part makes the signature wrong:", () => {
  for (const part of ["kind", "timestamp", "deliveryId", "definitionId", "runId", "signalKey"]) {
    test(part, () => {
      const headers = signed({ [part]: part === "kind" ? "start" : part === "timestamp" ? String(now / 1000 - 1) : "other" });
      expect(verify({ ...headers, "x-kxm-timestamp": String(now / 1000), "x-kxm-delivery-id": "d-1" })).toBe("webhook_signature_invalid");
    });
  }
  test("body", () => expect(verify(signed(), { body: new TextEncoder().encode('{"a":2}') })).toBe("webhook_signature_invalid"));
  test("secret", () => expect(verify(signed({}, "another-secret-of-16"))).toBe("webhook_signature_invalid"));
});

test("a genuine signature is refused more than 300 seconds from the hub's clock, either way", () => {
  const at = (seconds: number) => verify(signed({ timestamp: String(now / 1000 + seconds) }));
  expect([at(-300), at(300)]).toEqual([
    { deliveryId: "d-1", form: "envelope" },
    { deliveryId: "d-1", form: "envelope" },
  ]);
  expect([at(-301), at(301)]).toEqual(["webhook_timestamp_expired", "webhook_timestamp_expired"]);
});

test("the signature is judged before the age", () => {
  expect(verify({ ...signed({ timestamp: "1" }), "x-kxm-signature": `sha256=${"0".repeat(64)}` })).toBe("webhook_signature_invalid");
});

test("a body-only signature starts jira and github definitions with that provider's delivery header only", () => {
  const start = { ...envelope, kind: "start" as const, runId: "", signalKey: "" };
  const github = { "x-hub-signature-256": signBody(secret, body), "x-github-delivery": "gh-1" };
  expect(verify(github, { source: "github", envelope: start })).toEqual({ deliveryId: "gh-1", form: "body" });
  expect(verify(github, { source: "jira", envelope: start })).toEqual({ deliveryId: "", form: "body" });
  expect(verify({ "x-hub-signature": signBody(secret, body), "x-atlassian-webhook-identifier": "j-1" }, { source: "jira", envelope: start })).toEqual(
    { deliveryId: "j-1", form: "body" },
  );
  expect(verify(github, { source: "generic", envelope: start })).toBe("webhook_signature_missing");
  expect(verify(github, { source: "github" })).toBe("webhook_signature_missing");
  expect(verify({ ...github, "x-hub-signature-256": `sha1=${"0".repeat(40)}` }, { source: "github", envelope: start })).toBe(
    "webhook_signature_unsupported",
  );
  expect(verify({ ...github, "x-hub-signature-256": signBody("another-secret-of-16", body) }, { source: "github", envelope: start })).toBe(
    "webhook_signature_invalid",
  );
});

test("a line break in a signed field is never signed", () => {
  expect(() => signed({ deliveryId: "d\n1" })).toThrow("line break");
});

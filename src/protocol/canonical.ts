// Canonical JSON: keys sorted by UTF-16 code units at every level, no whitespace. The hash of these bytes is the identity of a record.

/** Canonical text of a JSON value: object keys sorted, members that are undefined dropped, numbers and strings as JSON.stringify writes them. */
export function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const members = value as Record<string, unknown>;
  const keys = Object.keys(members).filter((key) => members[key] !== undefined);
  return `{${keys
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(members[key])}`)
    .join(",")}}`;
}

/** SHA-256 of UTF-8 text or bytes as 64 lower-case hex digits. */
export const sha256 = (data: string | Uint8Array): string => new Bun.CryptoHasher("sha256").update(data).digest("hex");

/** The `sha256:<hex>` form that sync events and their hashes use on the wire. */
export const taggedSha256 = (data: string | Uint8Array): string => `sha256:${sha256(data)}`;

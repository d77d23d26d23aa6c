// Identifiers: `<prefix>_<32 lower-case hex>`, sortable by creation time (UUID version 7). Clients treat them as opaque.

/** What a prefix stands for. One place, so that no two concepts share one. */
export const ID_PREFIXES = {
  agt: "agent",
  msg: "message",
  run: "workflow run",
  journal: "journal entry",
  approval: "degradation approval",
  trans: "transition record",
  ctx: "context item",
  req: "request",
  apr: "approval request",
  cmd: "runtime command",
  alt: "alert",
  tok: "token",
  ses: "session",
  view: "saved view",
  cfl: "sync conflict",
  whk: "outgoing webhook endpoint",
  dlv: "webhook delivery",
  arr: "incoming webhook delivery",
  bud: "budget",
  job: "backup or check of the store",
  gen: "store generation",
  hub: "hub process",
} as const;

/** A prefix of the table above. */
export type IdPrefix = keyof typeof ID_PREFIXES;

/** A new id. Time-sortable: ids made later sort later. */
export const newId = (prefix: IdPrefix): string => `${prefix}_${Bun.randomUUIDv7("hex").replaceAll("-", "")}`;

/** Secrets shown once: 256 random bits, base64url, with a prefix that scanners can find (`kxa_` agent key, `kxp_` project token, `kxm_` operator token, `kxs_` session, `kxl_` sign-in link). */
export type SecretPrefix = "kxa" | "kxp" | "kxm" | "kxs" | "kxl" | "whsec";

/** A new 256-bit secret with its prefix. Store only its SHA-256. */
export const newSecret = (prefix: SecretPrefix): string =>
  `${prefix}_${crypto.getRandomValues(new Uint8Array(32)).toBase64({ alphabet: "base64url", omitPadding: true })}`;

/** The opaque ids of Runtimes, projects, runs, events and artifacts in sync traffic. */
export const OPAQUE_ID = /^[a-z][a-z0-9]{1,15}_[A-Za-z0-9][A-Za-z0-9_-]{5,127}$/;

// The settings a hub runs with, already parsed (cli/settings.ts reads the environment). Tokens are held as SHA-256 only.
import {
  MESSAGE_RETENTION_MS_DEFAULT,
  MESSAGE_TTL_MS_DEFAULT,
  RATE_LIMIT_MAX_DEFAULT,
  RATE_LIMIT_WINDOW_MS_DEFAULT,
  STALE_MS_DEFAULT,
  STREAMS_PER_TOKEN_MAX,
} from "../protocol/limits.ts";

/** What an operator can set, checked and with its defaults. */
export interface HubSettings {
  /** Name or address the hub listens on. */
  host: string;
  /** SHA-256 of KXM_AUTH_TOKEN, when one is set: expected on every project without a token of its own. */
  adminTokenHash: string | undefined;
  /** SHA-256 of the token this hub made for its own operator on first start (0600 file). Opens admin routes, never asked of agents. */
  localAdminTokenHash: string | undefined;
  /** Project → SHA-256 of its token from KXM_PROJECT_TOKENS. */
  projectTokenHashes: ReadonlyMap<string, string>;
  /** Whether the hub listens on this machine only. */
  loopback: boolean;
  /** Whether the store outlives the process. */
  durable: boolean;
  /** Silence after which an agent or Runtime is stale. Milliseconds. */
  staleMs: number;
  messageTtlMs: number;
  messageRetentionMs: number;
  /** Requests per bucket and window; undefined switches the limit off (benchmarks only). */
  rateLimit: { max: number; windowMs: number } | undefined;
  /** Host names, lower case and without port, that requests may carry besides the loopback names. */
  allowedHosts: readonly string[];
  /** Where people reach the hub when a proxy with TLS stands in front: scheme, host, port. */
  publicUrl: string | undefined;
  /** Whether MCP also offers the tools that users of MCP Agent Mail know by name. */
  agentMailNames: boolean;
  /** What people at the hub's machine type for `kxm`. */
  commandName: string;
  /** Open streams one agent or token may hold. */
  streamsPerToken: number;
}

/** Settings of a hub on this machine without any token: what tests and demos start from. */
export const defaultSettings = (): HubSettings => ({
  host: "127.0.0.1",
  adminTokenHash: undefined,
  localAdminTokenHash: undefined,
  projectTokenHashes: new Map(),
  loopback: true,
  durable: true,
  staleMs: STALE_MS_DEFAULT,
  messageTtlMs: MESSAGE_TTL_MS_DEFAULT,
  messageRetentionMs: MESSAGE_RETENTION_MS_DEFAULT,
  rateLimit: { max: RATE_LIMIT_MAX_DEFAULT, windowMs: RATE_LIMIT_WINDOW_MS_DEFAULT },
  allowedHosts: [],
  publicUrl: undefined,
  agentMailNames: false,
  commandName: "kxm",
  streamsPerToken: STREAMS_PER_TOKEN_MAX,
});

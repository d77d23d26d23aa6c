// The local API of this machine's Runtime, for the command line: finds it, makes sure that it is the real one, and asks. Needs Bun (the registry is SQLite).
import { Database } from "bun:sqlite";
import { existsSync, readFileSync } from "node:fs";
import { RUNTIME_ERRORS, type RuntimeErrorCode, RuntimeRefusal } from "../protocol/runtime-errors.ts";
import type { CommandKind, CommandPayload } from "../protocol/sync.ts";
import { ask, type Connection, HubRefusal, HubUnreachable } from "./http.ts";
import { statePaths } from "./state-paths.ts";

const PROOF_TIMEOUT_MS = 2_000;
const ANSWER_TIMEOUT_MS = 10_000;
const SCAN_TIMEOUT_MS = 1_800_000;
/** Longest wait of an events request. */
const WAIT_MS_MAX = 25_000;

/** Where a running Runtime listens. */
export type Endpoint = { url: string; token: string; runtimeId: string; pid: number };

/**
 * Finds the Runtime of a state root and proves that what listens there has its token.
 * @param root the state root; see `stateRoot`
 * @throws RuntimeRefusal runtime_not_running, runtime_imposter
 */
export async function findRuntime(root: string): Promise<LocalRuntime> {
  const endpoint = readEndpoint(root);
  await prove(endpoint);
  return localRuntime(endpoint);
}

/** What the registry says of a running Runtime. @throws RuntimeRefusal runtime_not_running */
export function readEndpoint(root: string): Endpoint {
  const paths = statePaths(root);
  const none = (why: string) => new RuntimeRefusal("runtime_not_running", `no Runtime runs on this machine: ${why}`);
  if (!existsSync(paths.registry)) throw none("it was never started");
  const db = new Database(paths.registry, { readwrite: true, create: false });
  try {
    db.run("pragma busy_timeout = 250");
    type Row = { runtimeId: string; pid: number; port: number | null; state: string };
    const row = db.query<Row, []>("select runtime_id as runtimeId, pid, port, state from supervisor where id = 1").get();
    if (row?.state !== "running" || !row.port) throw none(row?.state === "running" ? "it is starting" : "it was stopped");
    return { url: `http://127.0.0.1:${row.port}`, token: readFileSync(paths.token, "utf8").trim(), runtimeId: row.runtimeId, pid: row.pid };
  } catch (error) {
    if (error instanceof RuntimeRefusal) throw error;
    throw none((error as Error).message);
  } finally {
    db.close();
  }
}

/** HMAC-SHA256 of a nonce under the token, in hex: what the real Runtime answers. */
export const proofOf = (token: string, nonce: string): string => new Bun.CryptoHasher("sha256", token).update(nonce).digest("hex");

/** The token is sent to nobody who does not prove first that they have it. */
async function prove({ url, token, pid }: Endpoint) {
  const nonce = crypto.getRandomValues(new Uint8Array(16)).toHex();
  let answer: { body: { proof?: unknown } };
  try {
    answer = await ask({ url }, "GET", "/healthz", { query: { nonce }, timeoutMs: PROOF_TIMEOUT_MS });
  } catch (cause) {
    if (cause instanceof HubUnreachable && /nothing listens/.test(cause.message))
      throw new RuntimeRefusal("runtime_not_running", `the Runtime (process ${pid}) does not listen at ${url}`, { cause });
    throw new RuntimeRefusal("runtime_imposter", `what answers at ${url} did not prove to be this machine's Runtime`, { cause });
  }
  if (answer.body?.proof !== proofOf(token, nonce))
    throw new RuntimeRefusal("runtime_imposter", `what answers at ${url} is not this machine's Runtime`);
}

export type LocalRuntime = ReturnType<typeof localRuntime>;
/** A command for a run or project, with an id that makes a repeat harmless. */
export type LocalCommand<K extends CommandKind> = { commandId: string; kind: K; runId?: string; payload: CommandPayload<K>; actor: string };

/** Calls on a Runtime that was found. @throws (each) RuntimeRefusal with the Runtime's code; runtime_not_running when it went away */
function localRuntime(endpoint: Endpoint) {
  const to: Connection = { url: endpoint.url, token: endpoint.token };
  const call = async (method: "GET" | "POST", path: string, exchange: Parameters<typeof ask>[3] = {}): Promise<any> => {
    try {
      return (await ask(to, method, path, { timeoutMs: ANSWER_TIMEOUT_MS, ...exchange })).body;
    } catch (error) {
      throw inRuntimeWords(error, endpoint);
    }
  };
  const project = (key: string) => `/v1/projects/${key}`;
  return {
    endpoint,
    /** Calls a route by its path: for those an engine adds. */
    get: (path: string, query: Record<string, string | number | undefined> = {}) => call("GET", path, { query }),
    post: (path: string, body: Record<string, unknown> = {}) => call("POST", path, { body }),
    /** The supervisor, its projects and how sync goes. */
    status: () => call("GET", "/v1/status"),
    /** Registers a checkout and answers its key. @param checkout.hubProject the hub's project it reports to, if not the machine's */
    register: (checkout: {
      root: string;
      projectId: string;
      name: string;
      configRevision?: string;
      hubProject?: string;
    }): Promise<{ projectKey: string }> => call("POST", "/v1/projects", { body: checkout }),
    /** Newest first. */
    runs: (key: string, page: { status?: string; before?: number; limit?: number } = {}) => call("GET", `${project(key)}/runs`, { query: page }),
    run: (key: string, runId: string) => call("GET", `${project(key)}/runs/${runId}`),
    /** Events of a run after a sequence; waits for the first new one when asked to. @param page.waitMs 0..25000 */
    events: (key: string, runId: string, page: { after?: number; limit?: number; waitMs?: number } = {}) => {
      const waitMs = Math.min(page.waitMs ?? 0, WAIT_MS_MAX);
      return call("GET", `${project(key)}/runs/${runId}/events`, { query: { ...page, waitMs }, timeoutMs: waitMs + ANSWER_TIMEOUT_MS });
    },
    /** Applies a command once. @throws RuntimeRefusal with the command's own refusal */
    command: <K extends CommandKind>(key: string, command: LocalCommand<K>) => call("POST", `${project(key)}/commands`, { body: command }),
    /** Parked rows back to pending, of one project or all, of one code or all. */
    syncRetry: (of: { projectKey?: string; code?: string } = {}) => call("POST", "/v1/sync/retry", { body: of }),
    /** Binds this machine to a hub, or unbinds it with no url. */
    bind: (hub: { url?: string; project?: string; token?: string }) => call("POST", "/v1/hub", { body: hub }),
    /** Looks at everything that is kept with today's rules for secrets; takes as long as there is much. */
    redactScan: (): Promise<{ files: number; texts: number; findings: { file: string; place: string; kind: string; count: number }[] }> =>
      call("POST", "/v1/redact/scan", { timeoutMs: SCAN_TIMEOUT_MS }),
    /** Asks it to end cleanly. */
    shutdown: () => call("POST", "/v1/shutdown"),
  };
}

function inRuntimeWords(error: unknown, { url, pid }: Endpoint): unknown {
  if (error instanceof HubUnreachable)
    return new RuntimeRefusal("runtime_not_running", `the Runtime (process ${pid}) went away from ${url}`, { cause: error });
  if (error instanceof HubRefusal && Object.hasOwn(RUNTIME_ERRORS, error.code))
    return new RuntimeRefusal(error.code as RuntimeErrorCode, error.message, { hint: error.hint, detail: error.extras, cause: error });
  return error;
}

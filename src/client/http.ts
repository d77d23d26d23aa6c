// One HTTP exchange with a hub. Knows addresses, JSON and refusals, nothing of what is asked. Runs in Node 20, Bun and browsers.
import { keepLoopbackDirect } from "./loopback.ts";

const READY_MS = 5_000;
/** A refusal is a few members; what is longer is none. */
const REFUSAL_BYTES_MAX = 1_048_576;

/** Where a hub is and what its callers show it. */
export interface Connection {
  /** Such as `http://127.0.0.1:7331`, without a path. */
  url: string;
  /** Bearer token, when the hub asks for one. */
  token?: string | undefined;
  /** Replaces the global fetch (tests, agents behind a proxy). */
  fetch?: ((request: Request) => Promise<Response>) | undefined;
}

/** The hub said no: its code, its sentence, what to do next, and the flat extra members of the answer. */
export class HubRefusal extends Error {
  override readonly name = "HubRefusal";
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string | undefined,
    readonly requestId: string | undefined,
    readonly extras: Record<string, unknown>,
  ) {
    super(message);
  }
  /** Seconds after which the same request may be sent again, when the hub said so. */
  get retryAfterSeconds(): number | undefined {
    return this.extras["retryAfterSeconds"] as number | undefined;
  }
}

/** No answer from the address: nothing listens, the line broke, or what answered is no hub. */
export class HubUnreachable extends Error {
  override readonly name = "HubUnreachable";
  constructor(
    readonly url: string,
    why: string,
    options?: ErrorOptions & { hint?: string | undefined },
  ) {
    super(`no hub answers at ${url}: ${why}`, options);
    this.hint = options?.hint;
  }
  /** What to do about it, where the failure tells. */
  readonly hint: string | undefined;
}

/** The caller's own time limit passed before the hub answered. */
export class HubTimeout extends Error {
  override readonly name = "HubTimeout";
}

/** One request. `body` is sent as JSON; a POST without one sends `{}`. `json` is a body that is JSON text already. */
export interface Exchange {
  body?: unknown;
  json?: string;
  headers?: Record<string, string>;
  query?: Record<string, string | number | boolean | undefined>;
  /** Ends the wait. Milliseconds; none = as long as the hub takes. */
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
  /** Longest answer that is read, in bytes; what answers more is no hub. None = whatever comes. */
  maxBytes?: number | undefined;
}

/** What came back. */
export interface Answered<T> {
  status: number;
  body: T;
  headers: Headers;
}

/**
 * Sends one request and reads the JSON answer.
 * @throws HubRefusal for every status of 400 and above, HubUnreachable without an answer, HubTimeout after timeoutMs
 */
export async function ask<T = any>(to: Connection, method: "GET" | "POST" | "DELETE", path: string, exchange: Exchange = {}): Promise<Answered<T>> {
  const response = await open(to, method, path, exchange);
  const text = await textOf(response, exchange.maxBytes).catch((cause) => {
    throw ended(to.url, exchange, cause);
  });
  if (text === undefined) throw new HubUnreachable(to.url, `its answer is longer than ${exchange.maxBytes} bytes`);
  return { status: response.status, body: (text === "" ? undefined : readAnswer(to.url, text)) as T, headers: response.headers };
}

/** The body as text; undefined when it is longer than may be, and what is left is not read. */
async function textOf(response: Response, maxBytes: number | undefined): Promise<string | undefined> {
  if (maxBytes === undefined || !response.body) return response.text();
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > maxBytes) {
      await reader.cancel().catch(() => undefined);
      return undefined;
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** The same without reading the body: for streams and downloads. The caller reads or cancels it. */
export async function open(to: Connection, method: "GET" | "POST" | "DELETE", path: string, exchange: Exchange = {}): Promise<Response> {
  const { body, json = JSON.stringify(body ?? {}), headers = {}, query = {}, timeoutMs, signal } = exchange;
  const url = new URL(path, to.url);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value));
  const signals = [signal, timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)].filter((one) => one !== undefined);
  const request = new Request(url, {
    method,
    headers: {
      ...(method === "POST" && { "content-type": "application/json" }),
      ...(to.token !== undefined && { authorization: `Bearer ${to.token}` }),
      ...headers,
    },
    ...(method === "POST" && { body: json }),
    ...(signals.length > 0 && { signal: AbortSignal.any(signals) }),
    redirect: "error", // a hub never redirects an API call; a token must not follow one elsewhere
  });
  if (!to.fetch) keepLoopbackDirect(url.hostname);
  const send = to.fetch ?? fetch;
  const response = await send(request).catch((cause) => {
    throw ended(to.url, exchange, cause);
  });
  if (response.status >= 400) throw await refusalOf(to.url, response);
  return response;
}

/** What a hub says of itself at /ready. */
export interface Readiness {
  /** Whether a write would be durable now. */
  ok: boolean;
  /** `sqlite`, or `memory` when what is stored goes with the process. */
  storage: string;
  /** Why not, and what an operator should do. */
  message?: string;
}

/** Asks the hub at an address whether it can write. It needs no token. @throws HubUnreachable, HubTimeout */
export async function askReady(url: string, timeoutMs = READY_MS): Promise<Readiness> {
  keepLoopbackDirect(new URL(url).hostname);
  const response = await fetch(new URL("/ready", url), { signal: AbortSignal.timeout(timeoutMs), redirect: "error" }).catch((cause) => {
    throw ended(url, { timeoutMs }, cause);
  });
  const body = readAnswer(url, await response.text().catch(() => "")) as Partial<Readiness> | null;
  if (typeof body?.ok !== "boolean" || typeof body.storage !== "string")
    throw new HubUnreachable(url, `what answered is not a KXM hub (status ${response.status})`);
  return { ok: body.ok, storage: body.storage, ...(body.message !== undefined && { message: body.message }) };
}

function ended(url: string, { timeoutMs, signal }: Exchange, cause: unknown): Error {
  if (signal?.aborted) return signal.reason instanceof Error ? signal.reason : new DOMException("aborted", "AbortError");
  if (cause instanceof Error && cause.name === "TimeoutError")
    return new HubTimeout(`the hub at ${url} did not answer within ${timeoutMs} ms`, { cause });
  const { why, hint } = troubleOf(new URL(url), cause);
  return new HubUnreachable(url, why, { cause, hint });
}

/** What a failed connection says about the address; Bun and Node name most failures alike, Node one level below. */
function troubleOf({ protocol, host, hostname }: URL, cause: unknown): { why: string; hint?: string } {
  const { code, cause: within } = (cause ?? {}) as { code?: unknown; cause?: { code?: unknown } };
  const name = [code, within?.code].find((one) => typeof one === "string") ?? "";
  if (/^(?:ConnectionRefused|ECONNREFUSED)$/.test(name)) return { why: "nothing listens there" };
  if (/^(?:ENOTFOUND|EAI_AGAIN)$/.test(name))
    return { why: `the name ${hostname} is not known here`, hint: "Check the address for a typing mistake." };
  if (protocol === "https:" && /^(?:EPROTO$|ERR_SSL_)/.test(name))
    return {
      why: "what listens there does not speak TLS",
      hint: `A hub itself speaks plain HTTP: write http://${host}, or put a proxy with TLS in front of it.`,
    };
  if (protocol === "https:" && /CERT|ISSUER|UNABLE_TO_VERIFY/.test(name))
    return {
      why: `its certificate is not trusted here (${name})`,
      hint: "Name its authority's certificate with NODE_EXTRA_CA_CERTS, or correct the certificate.",
    };
  if (!/^(?:ECONNRESET|ConnectionClosed|UND_ERR_SOCKET)$/.test(name)) return { why: "the connection failed" };
  // A server that takes the first bytes of TLS for a bad request may close before they were answered, too.
  const hint =
    protocol === "http:" ? `If TLS is in front of that hub, write https://${host}.` : `If that hub speaks plain HTTP, write http://${host}.`;
  return { why: "the connection was closed before an answer came", hint };
}

function readAnswer(url: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new HubUnreachable(url, "what answered is not a KXM hub", { cause });
  }
}

async function refusalOf(url: string, response: Response): Promise<Error> {
  const text = (await textOf(response, REFUSAL_BYTES_MAX).catch(() => "")) ?? "";
  if (response.status === 413 && text === "") return new HubRefusal(413, "payload_too_large", "the body is too large", undefined, undefined, {});
  const body = readAnswer(url, text) as Record<string, unknown> | null;
  if (typeof body?.["code"] !== "string") return new HubUnreachable(url, `what answered is not a KXM hub (status ${response.status})`);
  const { error, code, requestId, hint, ...extras } = body;
  const wait = Number(response.headers.get("retry-after") ?? Number.NaN);
  if (wait >= 0) extras["retryAfterSeconds"] = wait;
  return new HubRefusal(response.status, code as string, String(error ?? code), hint as string | undefined, requestId as string | undefined, extras);
}

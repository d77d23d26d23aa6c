// A route of the JSON API as plain data: where it is, who may call it, what goes in and out, and one call into the rules.
// The table of all routes makes the router, the OpenAPI document and the credential tests.
import type { Static, TObject, TSchema } from "@sinclair/typebox";
import type { Hub } from "../hub/hub.ts";
import type { ErrorCode } from "../protocol/errors.ts";
import type { AgentCaller, Credential, TokenCaller } from "./credentials.ts";

type CallerOf<C extends Credential> = C extends "agent"
  ? AgentCaller
  : C extends `agent-or-${string}`
    ? AgentCaller | TokenCaller
    : C extends "none"
      ? undefined
      : TokenCaller;
type Read<S> = S extends TObject ? Static<S> : Record<string, never>;

/** The part of Bun's server that routes need: lifting the idle timeout of a stream or long poll, and where a request came from. */
export type StreamServer =
  | { timeout(request: Request, seconds: number): void; requestIP?(request: Request): { address: string } | null }
  | null
  | undefined;

/** One request, checked and read. */
export interface Call<P, Q, B, C extends Credential> {
  hub: Hub;
  caller: CallerOf<C>;
  params: Read<P>;
  query: Read<Q>;
  body: Read<B>;
  request: Request;
  server: StreamServer;
  requestId: string;
  /** Headers that belong on a Response the route makes itself (streams). */
  headers: Record<string, string>;
}

/** What a route answers: a status with a JSON body, or a Response of its own. */
export type Answer = { status: number; body?: unknown; headers?: Record<string, string> } | Response;

export interface Route<
  P extends TObject | undefined = any,
  Q extends TObject | undefined = any,
  B extends TObject | undefined = any,
  C extends Credential = any,
> {
  method: "GET" | "POST" | "DELETE";
  path: `/${string}`;
  /** Unique verb-noun name: operationId in OpenAPI. */
  operationId: string;
  tag: string;
  /** One sentence for the reference. */
  summary: string;
  credential: C;
  /** Where the agent id of an agent route stands, when it is not the header. The name of a path or query parameter. */
  agentIdFrom?: { path?: string; query?: string };
  /** The body's `name` is that of the agent which calls: a token made for one agent may use this route for that name, and no other such route. */
  namesAgent?: true;
  params?: P;
  query?: Q;
  body?: B;
  /** The route reads the body itself, as raw bytes (signatures). */
  rawBody?: boolean;
  /** The route reads the fields itself, because the wire judges the state before them. It is given the body as sent. */
  fieldsLate?: boolean;
  /** Status → schema of the JSON body; null for none, "stream" for server-sent events, "text" for plain text. */
  answers: Record<number, TSchema | null | "stream" | "text">;
  /** Refusals beside those every route of its kind has. */
  errors: readonly ErrorCode[];
  /** An operation that only opens a stream or changes something must not be called from other origins; GETs that only read leave it out. */
  guarded?: boolean;
  run(call: Call<P, Q, B, C>): Promise<Answer> | Answer;
}

/** Types a route; returns it unchanged. */
export const route = <
  const C extends Credential,
  P extends TObject | undefined = undefined,
  Q extends TObject | undefined = undefined,
  B extends TObject | undefined = undefined,
>(
  spec: Route<P, Q, B, C>,
): Route => spec as Route;

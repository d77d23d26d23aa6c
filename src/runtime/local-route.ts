// The shape of a route of the local API: a path with named parts, and a function from the request to a JSON value.

/** A request on 127.0.0.1 whose token was right. */
export type LocalRequest = {
  params: Record<string, string>;
  query: URLSearchParams;
  /** The JSON object that was sent; `{}` when there was none. */
  body: Record<string, unknown>;
  /** Aborted when the caller went away or the supervisor stops: for waits. */
  signal: AbortSignal;
};
export type LocalRoute = {
  method: "GET" | "POST";
  /** Such as `/v1/projects/:projectKey/runs`. */
  path: string;
  /** Answers with a JSON value. @throws RuntimeRefusal for what cannot be done */
  answer(request: LocalRequest): unknown;
};

// The stream of an agent: new requests, replies, and who comes and goes.

import { streamAnswer } from "../http/sse.ts";
import { EventsQuery } from "../protocol/events.ts";
import { type Route, route } from "./route.ts";

const events = route({
  method: "GET",
  path: "/v1/events",
  operationId: "streamEvents",
  tag: "agents",
  summary: "Streams an agent's requests, replies and the comings and goings of its project as server-sent events; resumes by Last-Event-ID.",
  credential: "agent",
  agentIdFrom: { query: "agentId" },
  query: EventsQuery,
  answers: { 200: "stream" },
  errors: ["presence_stream_forbidden", "too_many_streams"],
  guarded: true,
  run: ({ hub, caller, query, request, server, headers }) => {
    const { agent, token } = caller;
    const asked = { agent, token, presenceOnly: query.presenceOnly, lastEventId: request.headers.get("last-event-id") };
    hub.streams.admit(asked);
    return streamAnswer({
      request,
      server,
      stopping: hub.stopping,
      headers: { ...headers, ...(query.presenceOnly && { "x-kxm-events-mode": "presence" }) },
      produce: (sink) => hub.streams.serve(asked, sink),
    });
  },
});

export const streamRoutes: readonly Route[] = [events];

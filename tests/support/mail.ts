// Messages made the way agents make them, through the API, for tests of the dashboard.
import type { DashboardWorld } from "./dashboard.ts";
import type { Registered } from "./lived-in.ts";

type Sent = { id: string; seq: number };
/** Sends a message as an agent. */
export async function send(world: DashboardWorld, from: Registered, to: Registered, more: Record<string, unknown> = {}): Promise<Sent> {
  const body = { target: to.id, content: "please look", allowOffline: true, ...more };
  const answer = await world.call("POST", "/v1/messages", { body, headers: from.headers });
  if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
  return answer.body.message;
}
/** Says that the recipient has a message, or has begun on it. */
export const acknowledge = (world: DashboardWorld, agent: Registered, id: string, phase?: "turn") =>
  world.call("POST", `/v1/messages/${id}/ack`, { body: { ...(phase && { phase }) }, headers: agent.headers });
export const reply = (world: DashboardWorld, agent: Registered, id: string, content = "done") =>
  world.call("POST", `/v1/messages/${id}/reply`, { body: { content }, headers: agent.headers });

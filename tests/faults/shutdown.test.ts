// R37. Stopping under load: every answer is whole or missing, none is lost that was given, streams are told to come back, and the end is quick.
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ask, HubRefusal, HubUnreachable } from "../../src/client/http.ts";
import { openPlace, type Place } from "../support/program.ts";

const ROUNDS = process.env["KXM_FAULTS"] === "full" ? 100 : 8;
const CLIENTS = 12;

/** Sends until the hub is gone; returns the ids it acknowledged. */
async function sendUntilGone(url: string, name: string): Promise<{ headers: Record<string, string>; acked: string[] }> {
  const { agent, agentKey } = (await ask({ url }, "POST", "/v1/agents/register", { body: { name, project: "p" } })).body;
  const headers = { "x-kxm-agent-id": agent.id, "x-kxm-agent-key": agentKey };
  const acked: string[] = [];
  for (let n = 0; ; n++) {
    try {
      const body = { target: "sink", content: `${name} ${n}`, allowOffline: true, idempotencyKey: String(n) };
      acked.push((await ask({ url }, "POST", "/v1/messages", { body, headers })).body.message.id);
    } catch (error) {
      if (error instanceof HubUnreachable) return { headers, acked };
      if (error instanceof HubRefusal && error.status === 503) continue; // it stops: nothing was tried, or the outcome is unknown
      throw error;
    }
  }
}

/** Reads a stream until it ends; returns everything it said. */
async function listen(url: string, headers: Record<string, string>): Promise<string> {
  const response = await fetch(`${url}/v1/events?agentId=${headers["x-kxm-agent-id"]}`, { headers });
  let text = "";
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) text += decoder.decode(chunk, { stream: true });
  } catch {
    // cut; what it said counts
  }
  return text;
}

async function oneRound(place: Place, round: number, known: { id: string; headers: Record<string, string> }[]) {
  const hub = await place.startHub();
  for (const { id, headers } of known) {
    const { status } = await ask({ url: hub.url }, "GET", `/v1/messages/${id}`, { headers });
    expect(status).toBe(200); // what the hub before acknowledged
  }
  const { agent, agentKey } = (await ask({ url: hub.url }, "POST", "/v1/agents/register", { body: { name: "sink", project: "p" } })).body;
  const stream = listen(hub.url, { "x-kxm-agent-id": agent.id, "x-kxm-agent-key": agentKey });
  const clients = Array.from({ length: CLIENTS }, (_, n) => sendUntilGone(hub.url, `c${round}-${n}`));
  while ((await ask({ url: hub.url }, "GET", "/health")).body.agents < CLIENTS + 1);
  const { code, ms } = await hub.end(round % 2 === 0 ? "SIGTERM" : "SIGINT");
  expect(code).toBe(0);
  expect(ms).toBeLessThan(5_000);
  expect(await stream).toContain("retry: ");
  expect(existsSync(join(place.folder, ".kxm/state/kxm.db-wal"))).toBe(false);
  const done = await Promise.all(clients);
  return done.flatMap(({ headers, acked }) => acked.slice(-5).map((id) => ({ id, headers })));
}

test(
  `R37 a hub that is stopped under load ${ROUNDS} times loses nothing it acknowledged`,
  async () => {
    await using place = await openPlace();
    let known: { id: string; headers: Record<string, string> }[] = [];
    let total = 0;
    for (let round = 0; round < ROUNDS; round++) {
      known = await oneRound(place, round, known);
      total += known.length;
    }
    expect(total).toBeGreaterThan(ROUNDS); // or there was no load
    expect((await place.run(["verify"])).code).toBe(0);
  },
  20 * 60_000,
);

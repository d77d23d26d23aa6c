// Counters and gauges in the text form that Prometheus and its kin read. Names are the wire contract's; counters restart at 0 with the process.
import { text } from "../http/answer.ts";
import type { Hub } from "../hub/hub.ts";
import { COUNTERS } from "../hub/metrics.ts";
import { type Route, route } from "./route.ts";

const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";
const COUNT_MESSAGES_EVERY_MS = 10_000;

const counted = new WeakMap<Hub, { at: number; count: Promise<number> }>();

/** Retained messages; counting them reads a whole index, so a scrape may see a number that is some seconds old. */
function retainedMessages(hub: Hub): Promise<number> {
  const known = counted.get(hub);
  const now = hub.clock();
  if (known && Math.abs(now - known.at) < COUNT_MESSAGES_EVERY_MS) return known.count;
  const count = hub.engine.read.ops.countMessages();
  counted.set(hub, { at: now, count });
  count.catch(() => counted.delete(hub));
  return count;
}

const metrics = route({
  method: "GET",
  path: "/metrics",
  operationId: "getMetrics",
  tag: "operations",
  summary: "Counters and gauges of this hub process as text for monitors.",
  credential: "admin",
  answers: { 200: "text" },
  errors: [],
  run: async ({ hub, headers }) => {
    const health = await hub.engine.health();
    const gauges: [string, number][] = [
      ["kxm_online_agents", await hub.engine.read.agents.countOnline()],
      ["kxm_messages", await retainedMessages(hub)],
      ["kxm_agent_streams", hub.streams.size],
      ["kxm_write_queue", health.queued],
      ["kxm_storage_ok", health.ok ? 1 : 0],
      ...(health.walBytes === undefined ? [] : [["kxm_wal_bytes", health.walBytes] as [string, number]]),
    ];
    const counts = hub.metrics.read();
    const lines = [
      ...gauges.map(([name, value]) => `# TYPE ${name} gauge\n${name} ${value}\n`),
      ...COUNTERS.map((name) => `# TYPE kxm_${name}_total counter\nkxm_${name}_total ${counts.get(name)}\n`),
    ];
    return text(200, lines.join(""), CONTENT_TYPE, headers);
  },
});

export const metricsRoutes: readonly Route[] = [metrics];

// Counters of this process for /metrics. They restart at 0 with it.

/** Counter names without the `kxm_` prefix and `_total` ending. */
export const COUNTERS = [
  "requests",
  "errors",
  "credentials_refused",
  "registrations",
  "messages_sent",
  "messages_replied",
  "messages_cancelled",
  "messages_expired",
  "messages_purged",
  "webhooks_accepted",
  "workflow_checkpoints",
  "workflow_waits",
  "workflow_signals",
  "workflow_wait_timeouts",
  "workflow_degradations",
  "workflow_journal_entries",
  "context_requests",
  "attempt_latency_seconds",
  "metered_cost_usd",
  "leases_granted",
  "leases_refused",
  "leases_released",
  "sync_events_accepted",
  "sync_events_duplicate",
  "sync_events_refused",
  "sync_conflicts",
  "runtime_heartbeats",
] as const;
export type Counter = (typeof COUNTERS)[number];

/** Counters by name. */
export interface Metrics {
  add(counter: Counter, by?: number): void;
  read(): ReadonlyMap<Counter, number>;
}

/** Counters that start at nothing. */
export function createMetrics(): Metrics {
  const counts = new Map<Counter, number>(COUNTERS.map((name) => [name, 0]));
  return {
    add: (counter, by = 1) => void counts.set(counter, counts.get(counter)! + by),
    read: () => counts,
  };
}

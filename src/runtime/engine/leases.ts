// Leases of the hub for gates: acquired before the command starts, renewed while it runs, given back after it. Whether it is still held is decided by
// what the hub said last and by our own monotonic clock, never by hope.
import { HubRefusal, HubTimeout, HubUnreachable } from "../../client/http.ts";
import { type Clock, elapsed } from "../clock.ts";
import type { HubAgent } from "../hub-agent.ts";
import type { Log } from "../log.ts";
import type { HeldLease, LeasePort, LeaseWait } from "./context.ts";

/** How long the hub grants it at a time, and how often it is renewed, in milliseconds. */
const LEASE_TTL_MS = 60_000;
const RENEW_MS = 15_000;
/** How long one request may stand in the hub's line, and how long a gate waits in all. */
const LINE_MS = 20_000;
const WAIT_MS_MAX = 600_000;
/** How long a hub may be away before a gate is refused: it may only be starting again. */
const AWAY_MS_MAX = 60_000;
/** How long until a hub is asked again that is away, or has our own name taken. */
const AGAIN_MS = 2_000;
/** It counts as lost this long before the hub's own deadline could pass. */
const MARGIN_MS = 2_000;

/**
 * Refusals that end by themselves. Our own name is taken when an answer to our registration was lost: nobody else has it, and the hub soon takes that one
 * for gone. A lease that was about to be given back for a new fence may have ended meanwhile.
 */
const PASSING = new Set<string>(["lease_held", "duplicate_agent_name", "lease_superseded", "lease_not_found"]);

const isAway = (error: unknown): boolean =>
  error instanceof HubUnreachable || error instanceof HubTimeout || (error instanceof HubRefusal && (error.status >= 500 || error.status === 429));

type Granted = { name: string; fencingToken: number; acquiredAt: string; expiresAt: string };

type LeaseOptions = { log: Log; clock: Clock; ttlMs?: number; renewMs?: number };

/** @param options.ttlMs shorter only in tests */
export function hubLeases(agent: HubAgent, { log, clock, ttlMs = LEASE_TTL_MS, renewMs = RENEW_MS }: LeaseOptions): LeasePort {
  const now = () => elapsed(clock);
  /** One holder per resource inside this machine, too: to the hub all gates here are one agent. */
  const lines = new Map<string, Promise<void>>();
  const path = (name: string, verb: string) => `/v1/leases/${encodeURIComponent(name)}/${verb}`;

  /** Waits for the turn; answers how to give it on. */
  async function turn(name: string): Promise<() => void> {
    const before = lines.get(name) ?? Promise.resolve();
    const mine = Promise.withResolvers<void>();
    lines.set(
      name,
      before.then(() => mine.promise),
    );
    await before;
    return mine.resolve;
  }

  const release = (name: string, fencingToken: number) => agent.ask("POST", path(name, "release"), { body: { fencingToken }, timeoutMs: 10_000 });

  /** The lease, and when it was asked for with success: from then on its time counts. */
  async function grant(name: string, { unwanted: signal, confirm }: LeaseWait): Promise<{ granted: Granted; askedAt: number }> {
    const since = now();
    const pause = () => new Promise<void>((resolve) => clock.after(AGAIN_MS, resolve));
    let awaySince: number | undefined;
    for (let freed = false; ; ) {
      signal?.throwIfAborted();
      confirm?.();
      const askedAt = now();
      try {
        const { body } = await agent.ask("POST", path(name, "acquire"), { body: { ttlMs, waitMs: LINE_MS }, timeoutMs: LINE_MS + 10_000, signal });
        if (!body.renewed) return { granted: body.lease, askedAt };
        // It is still ours from a gate that could not give it back, or got no answer. What is on its way for that one must not end this one's: a new fence.
        if (freed) await pause(); // a hub that says so again and again is not asked without end
        confirm?.();
        await release(name, body.lease.fencingToken);
        freed = true;
      } catch (error) {
        awaySince = isAway(error) ? (awaySince ?? askedAt) : undefined;
        const passes = awaySince === undefined ? error instanceof HubRefusal && PASSING.has(error.code) : now() - awaySince < AWAY_MS_MAX;
        if (!passes || now() - since > WAIT_MS_MAX) throw error;
        if (!(error instanceof HubRefusal && error.code === "lease_held")) await pause();
      }
    }
  }

  function hold(granted: Granted, askedAt: number, give: () => void): HeldLease {
    const lost = Promise.withResolvers<string>();
    let heldUntil = askedAt + ttlMs - MARGIN_MS;
    let over = false;
    const end = (why?: string) => {
      if (over) return;
      over = true;
      callOff();
      callOffEnd();
      if (why !== undefined) lost.resolve(why);
    };
    const leave = (why?: string) => {
      end(why);
      give();
    };
    const renew = async () => {
      const asked = now();
      if (asked > heldUntil) return leave("it could not be renewed in time");
      try {
        await agent.ask("POST", path(granted.name, "renew"), { body: { fencingToken: granted.fencingToken, ttlMs }, timeoutMs: renewMs });
        heldUntil = asked + ttlMs - MARGIN_MS;
        watchEnd();
      } catch (error) {
        if (error instanceof HubRefusal && error.status < 500 && error.status !== 429) return leave(error.message);
        log("lease_renewal_failed", { level: "warn", reason: error instanceof Error ? error.message : String(error) });
      }
    };
    const overdue = () => (now() > heldUntil ? "the hub did not answer before it ran out" : undefined);
    // Not only when it is renewed the next time: until then somebody else could have it, and the command would still run.
    const watchEnd = () => {
      callOffEnd();
      if (!over) callOffEnd = clock.after(Math.max(0, heldUntil - now()) + 1, () => (overdue() === undefined ? watchEnd() : leave(overdue())));
    };
    let callOff = () => {};
    let callOffEnd = () => {};
    const nextRenewal = () => {
      callOff = clock.after(renewMs, () => {
        nextRenewal();
        void renew();
      });
    };
    nextRenewal();
    watchEnd();
    return {
      resource: granted.name,
      fence: granted.fencingToken,
      acquiredAt: granted.acquiredAt,
      expiresAt: granted.expiresAt,
      lost: lost.promise,
      overdue,
      // The next one in this machine's line asks only then: before, the hub would take it for this one, and end it with this one's release.
      release: async () => {
        end();
        await release(granted.name, granted.fencingToken).finally(give);
      },
      leave: () => leave(),
    };
  }

  return {
    acquire: async (resource, wait = {}) => {
      const give = await turn(resource);
      try {
        const { granted, askedAt } = await grant(resource, wait);
        return hold(granted, askedAt, give);
      } catch (error) {
        give();
        throw error;
      }
    },
    /** Goes on holding what an earlier supervisor acquired, if it never ran out and nobody else had it since. */
    keep: async (resource, fence) => {
      const give = await turn(resource);
      try {
        const asked = now();
        const { body } = await agent.ask("POST", path(resource, "renew"), { body: { fencingToken: fence, ttlMs }, timeoutMs: renewMs });
        return hold(body.lease, asked, give);
      } catch (error) {
        give();
        throw error;
      }
    },
  };
}

// Leases of the hub for gates: acquired before the command starts, renewed while it runs, given back after it. Whether it is still held is decided by
// what the hub said last and by our own monotonic clock, never by hope.
import { HubRefusal } from "../../client/http.ts";
import { type Clock, elapsed } from "../clock.ts";
import type { HubAgent } from "../hub-agent.ts";
import type { Log } from "../log.ts";
import type { HeldLease, LeasePort } from "./context.ts";

/** How long the hub grants it at a time, and how often it is renewed, in milliseconds. */
const LEASE_TTL_MS = 60_000;
const RENEW_MS = 15_000;
/** How long one request may stand in the hub's line, and how long a gate waits in all. */
const LINE_MS = 20_000;
const WAIT_MS_MAX = 600_000;
/** It counts as lost this long before the hub's own deadline could pass. */
const MARGIN_MS = 2_000;

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

  async function grant(name: string, signal: AbortSignal | undefined): Promise<Granted> {
    const since = now();
    for (;;) {
      try {
        const { body } = await agent.ask("POST", path(name, "acquire"), { body: { ttlMs, waitMs: LINE_MS }, timeoutMs: LINE_MS + 10_000, signal });
        return body.lease;
      } catch (error) {
        if (!(error instanceof HubRefusal && error.code === "lease_held") || now() - since > WAIT_MS_MAX) throw error;
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
      give();
      if (why !== undefined) lost.resolve(why);
    };
    const renew = async () => {
      const asked = now();
      if (asked > heldUntil) return end("it could not be renewed in time");
      try {
        await agent.ask("POST", path(granted.name, "renew"), { body: { fencingToken: granted.fencingToken, ttlMs }, timeoutMs: renewMs });
        heldUntil = asked + ttlMs - MARGIN_MS;
      } catch (error) {
        if (error instanceof HubRefusal && error.status < 500 && error.status !== 429) return end(error.message);
        log("lease_renewal_failed", { level: "warn", reason: error instanceof Error ? error.message : String(error) });
        if (now() > heldUntil) end("the hub did not answer before it ran out");
      }
    };
    let callOff = () => {};
    const nextRenewal = () => {
      callOff = clock.after(renewMs, () => {
        nextRenewal();
        void renew();
      });
    };
    nextRenewal();
    return {
      resource: granted.name,
      fence: granted.fencingToken,
      acquiredAt: granted.acquiredAt,
      expiresAt: granted.expiresAt,
      lost: lost.promise,
      release: async () => {
        end();
        await agent.ask("POST", path(granted.name, "release"), { body: { fencingToken: granted.fencingToken }, timeoutMs: 10_000 });
      },
      leave: () => end(),
    };
  }

  return {
    acquire: async (resource, unwanted) => {
      const give = await turn(resource);
      try {
        unwanted?.throwIfAborted(); // while others of this machine had it
        const asked = now();
        return hold(await grant(resource, unwanted), asked, give);
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

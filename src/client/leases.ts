// Leases as an agent takes and keeps them. A held lease is renewed by itself; when it is no longer certain to be ours, its signal fires and nothing
// renews it any more. The fencing token stays the proof: whatever the lease guards must compare it.
import type { Lease, LeaseDetail, LeaseGranted, LeaseList, LeaseReleased, LeaseValid } from "../protocol/leases.ts";
import { LEASE_TTL_MS_DEFAULT } from "../protocol/limits.ts";
import { backoffMs, pause } from "./backoff.ts";
import { type Calls, isUnknown } from "./calls.ts";
import { HubTimeout } from "./http.ts";

/** How to acquire: how long it lasts without renewal (5000..600000), and how long to stand in line (0..30000), both milliseconds. */
export type Acquiring = { ttlMs?: number; waitMs?: number; signal?: AbortSignal };
/** How to hold: as above, and how often to renew (a third of the ttl). `signal` gives the lease back when it ends. */
export type Holding = Acquiring & { renewEveryMs?: number };

/** A lease that is kept until it is released or lost. */
export interface HeldLease extends AsyncDisposable {
  readonly name: string;
  /** Show it to whatever the lease guards; it must refuse a lower one than it has seen. */
  readonly fencingToken: number;
  /** As the hub granted it last. */
  readonly lease: Lease;
  /** Fires with a LeaseLost once the lease may be somebody else's: stop the guarded work. A release does not fire it. */
  readonly signal: AbortSignal;
  /** Gives it back. What is lost already is not given back again. */
  release(): Promise<void>;
}

/** The lease may be somebody else's by now. `cause` is the hub's refusal, or the last failure to reach it. */
export class LeaseLost extends Error {
  override readonly name = "LeaseLost";
  constructor(
    readonly lease: string,
    why: string,
    options?: ErrorOptions,
  ) {
    super(`the lease ${lease} is lost: ${why}`, options);
  }
}

const ANSWER_MS = 10_000;

/** The calls about leases. @throws (each) HubRefusal, HubUnreachable, HubTimeout */
export function leaseCalls(calls: Calls) {
  const held = new Set<HeldLease>();
  const at = (name: string) => `/v1/leases/${encodeURIComponent(name)}`;
  const acquire = (name: string, { ttlMs, waitMs = 0, signal }: Acquiring = {}): Promise<LeaseGranted> =>
    calls.persist("POST", `${at(name)}/acquire`, { body: { ttlMs, waitMs }, timeoutMs: waitMs + ANSWER_MS, signal });
  const renew = (name: string, fencingToken: number, { ttlMs, timeoutMs = ANSWER_MS }: { ttlMs?: number; timeoutMs?: number } = {}) =>
    calls.call<LeaseGranted>("POST", `${at(name)}/renew`, { body: { fencingToken, ttlMs }, timeoutMs });
  const renewPatiently = (name: string, fencingToken: number, { ttlMs }: { ttlMs: number }): Promise<LeaseGranted> =>
    calls.persist("POST", `${at(name)}/renew`, { body: { fencingToken, ttlMs } });
  const release = (name: string, fencingToken: number): Promise<LeaseReleased> =>
    calls.persist("POST", `${at(name)}/release`, { body: { fencingToken } });
  const hold = async (name: string, holding: Holding = {}): Promise<HeldLease> => {
    const lease = await keep({ renew, renewPatiently, release }, await asked(() => acquire(name, holding)), holding, calls, () => held.delete(lease));
    held.add(lease);
    return lease;
  };

  return {
    /** Takes a lease once, extends one's own, or with `waitMs` stands in line. @throws HubRefusal lease_held */
    acquire,
    /** Extends a lease; its token stays. @throws HubRefusal lease_expired, lease_superseded, lease_not_found */
    renew,
    /** Gives a lease back. */
    release,
    /** Whether a token is the current one: what a guarded resource asks. @throws HubRefusal lease_superseded, lease_expired, lease_not_found */
    check: (name: string, fencingToken: number): Promise<LeaseValid> => calls.call("POST", `${at(name)}/check`, { body: { fencingToken } }),
    /** One lease and who stands in line. @throws HubRefusal lease_not_found */
    get: (name: string): Promise<LeaseDetail> => calls.call("GET", at(name)),
    /** A page of the project's leases. */
    list: (query: { state?: "held" | "lapsed"; after?: string; limit?: number } = {}): Promise<LeaseList> =>
      calls.call("GET", "/v1/leases", { query }),
    /** Takes a lease and keeps it by renewing. @throws HubRefusal lease_held */
    hold,
    /** Holds a lease while `work` runs; its signal says when to stop. @throws HubRefusal lease_held, LeaseLost when it was lost meanwhile, and what work throws */
    during: async <T>(name: string, work: (lease: HeldLease) => Promise<T>, holding: Holding = {}): Promise<T> => {
      const lease = await hold(name, holding);
      try {
        const result = await work(lease);
        lease.signal.throwIfAborted();
        return result;
      } finally {
        await lease.release();
      }
    },
    /** Gives back everything that is held. */
    releaseAll: async (): Promise<void> => void (await Promise.allSettled([...held].map((lease) => lease.release()))),
  };
}

/** A moment on both clocks: one stands still while the machine sleeps, the other may be set. */
type Moment = { steady: number; wall: number };
const moment = (): Moment => ({ steady: performance.now(), wall: Date.now() });
/** Milliseconds since, by whichever clock says more: too early a loss costs a lease, too late a one costs what it guards. */
const since = ({ steady, wall }: Moment): number => Math.max(performance.now() - steady, Date.now() - wall);

type Asked = { granted: LeaseGranted; at: Moment };
async function asked(request: () => Promise<LeaseGranted>): Promise<Asked> {
  const at = moment();
  return { granted: await request(), at };
}

type Renewal = {
  renew(name: string, fencingToken: number, options: { ttlMs: number; timeoutMs: number }): Promise<LeaseGranted>;
  renewPatiently(name: string, fencingToken: number, options: { ttlMs: number }): Promise<LeaseGranted>;
  release(name: string, fencingToken: number): Promise<unknown>;
};

/** Keeps a granted lease. The end is counted from before the request that extended it was sent, so that it never comes later than the hub's. */
async function keep(hub: Renewal, first: Asked, holding: Holding, calls: Calls, onEnd: () => void): Promise<HeldLease> {
  const { ttlMs = LEASE_TTL_MS_DEFAULT, renewEveryMs = ttlMs / 3, signal: outer } = holding;
  let { lease } = first.granted;
  let { at } = first;
  const left = () => ttlMs - since(at);
  const { name, fencingToken } = lease;
  const [lost, over] = [new AbortController(), new AbortController()];
  const end = () => {
    over.abort();
    onEnd();
  };
  const lose = (why: string, cause?: unknown) => {
    if (over.signal.aborted) return;
    end();
    lost.abort(new LeaseLost(name, why, { cause }));
  };
  const extend = async () => {
    const again = await asked(() => hub.renew(name, fencingToken, { ttlMs, timeoutMs: Math.max(1, Math.min(ANSWER_MS, left())) }));
    lease = again.granted.lease;
    at = again.at;
  };
  const release = async () => {
    if (over.signal.aborted) return;
    end();
    await hub.release(name, fencingToken);
  };

  // Who stood in line cannot know when it was granted: begin to count with a renewal.
  if (since(at) > ttlMs / 3) {
    ({ at } = await asked(() => hub.renewPatiently(name, fencingToken, { ttlMs })).catch(async (error) => {
      await release().catch(() => {});
      throw error;
    }));
  }
  void (async () => {
    let trouble: unknown;
    for (let failures = 0; !over.signal.aborted; ) {
      const wait = failures === 0 ? renewEveryMs : Math.min(renewEveryMs, backoffMs(failures, undefined, calls.backoff));
      await pause(Math.min(wait, Math.max(0, left())), over.signal);
      if (over.signal.aborted) return;
      if (left() <= 0) return lose("it could not be renewed in time", trouble);
      try {
        await extend();
        failures = 0;
      } catch (error) {
        if (!isUnknown(error) && !(error instanceof HubTimeout)) return lose((error as Error).message, error);
        trouble = error;
        failures++;
      }
    }
  })();
  const letGo = () => void release().catch(() => {}); // it lapses by itself when the hub cannot be told
  outer?.addEventListener("abort", letGo, { once: true, signal: over.signal });
  calls.signal?.addEventListener("abort", () => lose("nothing renews it any more"), { once: true, signal: over.signal });

  return {
    name,
    fencingToken,
    get lease() {
      return lease;
    },
    signal: lost.signal,
    release,
    [Symbol.asyncDispose]: release,
  };
}

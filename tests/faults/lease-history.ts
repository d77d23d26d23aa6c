// Histories of one lease under many clients: what each asked, what it was told, in which order, and between which readings of the hub's clock.
import type { LeaseOp } from "../support/linearizable.ts";

/** What a client asks of whatever serves the lease. `now` is the test's clock; the hub's never goes back. */
export type Ask = { f: LeaseOp["f"]; who: string; token?: number; ttlMs: number; waitMs: number; now: number };
/** The answer; undefined when there was none and nobody knows what happened. */
export type Told = { ok: boolean; granted?: LeaseOp["granted"]; saw?: LeaseOp["saw"] } | undefined;
export type LeaseService = {
  ask(ask: Ask): Promise<Told>;
  /** Ends what is over by the clock. */
  sweep(now: number): Promise<unknown>;
  /** The newest token of the lease. */
  fence(): Promise<number>;
};

/** Numbers from 0 to 1 that a seed determines. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const TTL_MS = [20, 50, 100];

/**
 * Lets clients work on one lease until `ops` calls were made.
 * @param clock moved on by this, never back
 * @param between called now and then: the place for faults
 */
export async function makeHistory(
  service: LeaseService,
  { ops, clients, seed, clock, between }: { ops: number; clients: number; seed: number; clock: { now: number }; between?: (made: number) => unknown },
): Promise<LeaseOp[]> {
  const random = randomFrom(seed);
  const history: LeaseOp[] = [];
  let [order, made, open] = [0, 0, clients];
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)]!;

  async function client(who: string) {
    let token: number | undefined;
    while (made < ops) {
      made++;
      const f =
        token === undefined ? (random() < 0.9 ? "acquire" : "write") : pick(["acquire", "renew", "release", "write", "write", "write"] as const);
      const given = f === "acquire" ? undefined : (token ?? Math.ceil(random() * 5));
      const [ttlMs, waitMs] = [pick(TTL_MS), f === "acquire" && random() < 0.3 ? pick(TTL_MS) : 0];
      const op: LeaseOp = {
        call: ++order,
        ret: Number.POSITIVE_INFINITY,
        from: clock.now,
        to: 0,
        who,
        f,
        ttlMs,
        waitMs,
        ...(given !== undefined && { token: given }),
      };
      history.push(op);
      const told = await service.ask({ f, who, ttlMs, waitMs, now: clock.now, ...(given !== undefined && { token: given }) });
      op.to = clock.now;
      if (told) {
        Object.assign(op, { ret: ++order, ok: told.ok, ...(told.granted && { granted: told.granted }), ...(told.saw && { saw: told.saw }) });
        if (told.granted) token = told.granted.token;
        // Some clients do not believe that they lost it: their next write must be refused.
        if (f === "release" ? told.ok : !told.ok && random() < 0.5) token = undefined;
      }
      for (let turns = random() * 3; turns > 1; turns--) await new Promise<void>((turn) => setImmediate(turn));
    }
    open--;
  }

  async function time() {
    while (open > 0) {
      if (random() < 0.3) clock.now += Math.ceil(random() * 15);
      await service.sweep(clock.now);
      await between?.(made);
      await new Promise<void>((turn) => setImmediate(turn));
    }
  }
  await Promise.all([...Array.from({ length: clients }, (_, n) => client(`agt_${n}`)), time()]);
  return history;
}

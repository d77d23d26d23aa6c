// R14: whatever many clients see of a lease can be explained by one lease, over restarts, kills, pauses and several hubs.
import { describe, expect, test } from "bun:test";
import type { Hub } from "../../src/hub/hub.ts";
import { openHub } from "../../src/hub/hub.ts";
import { silent } from "../../src/hub/log.ts";
import { defaultSettings } from "../../src/hub/settings.ts";
import { range, sqliteWorld, WORLDS, type World } from "../support/engines.ts";
import { temporaryFolder } from "../support/folders.ts";
import { isLinearizable, type LeaseOp } from "../support/linearizable.ts";
import { type LeaseService, makeHistory, randomFrom } from "./lease-history.ts";
import { servedBy, startLeases } from "./lease-service.ts";
import { FULL } from "./store-client.ts";

const CLIENTS = 16;
const [HISTORIES, OPS] = FULL ? [200, 2_000] : [12, 400];
/** Fewer calls where answers are lost: each of them may have happened at any later time, which makes the search long. */
const OPS_KILLED = FULL ? 500 : 300;
const KILLS_AT = [0.25, 0.5, 0.75];
const MUTANT_OPS = 240;
const SEED = 7331;

const hubOn = (world: World): Hub =>
  openHub({ engine: world.engine, clock: () => world.clock.now, settings: defaultSettings(), log: silent, stopping: new AbortController().signal });
const nameOf = (seed: number) => `r${seed}`;

/** What a mutant breaks, from outside: the product has no switch for it. */
type Mutant = {
  service?: (service: LeaseService, hub: () => Hub, seed: number) => LeaseService;
  restart?: (world: World, seed: number) => Promise<unknown>;
  clock?: (world: World, seed: number) => { now: number };
};

/** A history of one name in four parts with a restart of the store between them. Everybody waits for a restart, so no outcome is unknown. */
async function historyOf(world: World, seed: number, ops: number, mutant: Mutant = {}): Promise<LeaseOp[]> {
  let hub = hubOn(world);
  const served = servedBy(() => [hub], nameOf(seed));
  const service = mutant.service?.(served, () => hub, seed) ?? served;
  const clock = mutant.clock?.(world, seed) ?? world.clock;
  const history: LeaseOp[] = [];
  for (const part of range(4)) {
    const made = await makeHistory(service, { ops: ops / 4, clients: CLIENTS, seed: seed * 10 + part, clock });
    const base = 2 * history.length;
    history.push(...made.map((op) => ({ ...op, call: op.call + base, ret: op.ret + base })));
    await (mutant.restart ?? ((it) => it.reopen()))(world, seed);
    hub = hubOn(world);
  }
  return history;
}

describe("R14: one lease explains every history", () => {
  test.each(WORLDS)(
    `%s: ${HISTORIES} histories of ${OPS} calls by ${CLIENTS} clients, with restarts`,
    async (kind, open) => {
      await using world = await open();
      const histories = kind === "sqlite" ? HISTORIES : Math.ceil(HISTORIES / 5);
      for (const n of range(histories)) {
        const history = await historyOf(world, SEED + n, OPS);
        expect({ seed: SEED + n, linearizable: isLinearizable(history) }).toEqual({ seed: SEED + n, linearizable: true });
        expect(history.filter(({ f, ok }) => f === "acquire" && ok).length).toBeGreaterThan(OPS / 50);
        expect(history.filter(({ f, ok }) => f === "write" && ok === false).length).toBeGreaterThan(0);
      }
    },
    FULL ? 1_200_000 : 120_000,
  );

  test.each(WORLDS)(
    "%s: the same through two hubs at once",
    async (_, open) => {
      await using world = await open();
      const [one, two] = [hubOn(world), hubOn(world)];
      for (const n of range(Math.ceil(HISTORIES / 4))) {
        const seed = SEED + 1_000 + n;
        const history = await makeHistory(
          servedBy(() => [one, two], `two${n}`),
          { ops: OPS, clients: CLIENTS, seed, clock: world.clock },
        );
        expect({ seed, linearizable: isLinearizable(history) }).toEqual({ seed, linearizable: true });
      }
    },
    FULL ? 1_200_000 : 120_000,
  );

  test(
    "with a hub that is killed and paused in the middle, answers lost included",
    async () => {
      using folder = temporaryFolder();
      const process = await startLeases(`${folder.path}/kxm.db`);
      const random = randomFrom(SEED);
      const clock = { now: 1_000 };
      let kills = 0;
      try {
        for (const n of range(Math.ceil(HISTORIES / 4))) {
          const seed = SEED + 2_000 + n;
          const killAt = KILLS_AT.map((share) => share * OPS_KILLED);
          const service = process.service(`k${n}`);
          const history = await makeHistory(service, {
            ops: OPS_KILLED,
            clients: CLIENTS,
            seed,
            clock,
            between: async (made) => {
              if (random() < 0.1) await process.pause();
              if (made < (killAt[0] ?? Number.POSITIVE_INFINITY)) return;
              killAt.shift();
              kills++;
              await process.kill();
            },
          });
          expect({ seed, linearizable: isLinearizable(history, await service.fence()) }).toEqual({ seed, linearizable: true });
        }
      } finally {
        await process.stop();
      }
      expect(kills).toBe(KILLS_AT.length * Math.ceil(HISTORIES / 4));
    },
    FULL ? 1_200_000 : 120_000,
  );

  const MUTANTS: Record<string, Mutant> = {
    "tokens are not compared": {
      service: (service, hub, seed) => ({
        ...service,
        async ask(ask) {
          const lease = ask.f === "acquire" ? undefined : await hub().engine.read.leases.find(`p/${nameOf(seed)}`);
          return service.ask(lease ? { ...ask, token: lease.fence } : ask);
        },
      }),
    },
    "tokens begin anew after a restart": {
      async restart(world, seed) {
        await world.engine.write("p", async (tx) => {
          const lease = await tx.leases.lock(`p/${nameOf(seed)}`);
          if (lease) await tx.leases.update({ ...lease, fence: 1, holderId: null, holderName: null, freedAt: 0 });
        });
        await world.reopen();
      },
    },
    "the end is decided by a clock that jumps": {
      clock(world, seed) {
        const [random, clock] = [randomFrom(seed), { now: world.clock.now }];
        Object.defineProperty(world.clock, "now", {
          configurable: true,
          get: () => clock.now + (random() < 0.05 ? 60 : 0),
          set: (now) => void (clock.now = now),
        });
        return clock;
      },
    },
  };

  test.each(Object.entries(MUTANTS))(
    "the checker finds out a hub where %s",
    async (_, mutant) => {
      await using world = await sqliteWorld();
      const caught: boolean[] = [];
      for (const n of range(20)) caught.push(!isLinearizable(await historyOf(world, SEED + 3_000 + n, MUTANT_OPS, mutant)));
      expect(caught.filter(Boolean).length).toBeGreaterThanOrEqual(19);
    },
    120_000,
  );
});

// R13 at its root: the hub's clock under jumps, jitter, sleep and restarts of the machine's.
import { describe, expect, test } from "bun:test";
import { createClock } from "../../src/cli/clock.ts";

const START = 1_800_000_000_000;
const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

/** A machine whose clocks the test moves. */
function machine({ tellsSleep = true } = {}) {
  const it = { wall: START, steady: 5_000, slept: 0 };
  const sources = { wall: () => it.wall, steady: () => it.steady, withSleep: () => (tellsSleep ? it.steady + it.slept + 70_000 : undefined) };
  return {
    clock: createClock(sources),
    restart: () => createClock(sources),
    /** Time passes awake; the program looks after its clock each second. */
    pass(ms: number, clock: { look(): void }) {
      for (let left = ms; left > 0; left -= 1_000) {
        it.wall += Math.min(left, 1_000);
        it.steady += Math.min(left, 1_000);
        clock.look();
      }
    },
    jump: (ms: number) => void (it.wall += ms),
    sleep(ms: number) {
      it.wall += ms;
      it.slept += ms;
    },
  };
}

test("time passes as it does", () => {
  const { clock, pass } = machine();
  expect(clock.now()).toBe(START);
  pass(10 * 60_000, clock);
  expect(clock.now()).toBe(START + 10 * 60_000);
});

describe("a jump of the machine's clock", () => {
  test.each([HOUR_MS, -HOUR_MS, 10 * YEAR_MS, -10 * YEAR_MS])("of %d ms moves nothing", (ms) => {
    const { clock, pass, jump } = machine();
    pass(60_000, clock);
    jump(ms);
    pass(10 * 60_000, clock);
    expect(clock.now()).toBe(START + 11 * 60_000);
  });

  test("a jitter of a second, ten times a second, never runs backwards and adds less than a second to ten minutes", () => {
    const { clock, pass, jump } = machine();
    let last = clock.now();
    let offset = 0;
    for (let n = 0; n < 6_000; n++) {
      const next = ((n * 7_919) % 2_001) - 1_000; // -1000..1000, spread evenly
      jump(next - offset);
      offset = next;
      pass(100, clock);
      const now = clock.now();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
    expect(Math.abs(last - (START + 600_000))).toBeLessThan(1_000);
  });

  test("a small one is made up slowly, forward and back, without ever running backwards", () => {
    for (const ms of [5_000, -5_000]) {
      const { clock, pass, jump } = machine();
      jump(ms);
      pass(10 * 60_000, clock);
      expect(Math.abs(clock.now() - (START + 600_000))).toBeLessThanOrEqual(500); // a lease of ten minutes hardly notices
      let last = clock.now();
      for (let minute = 0; minute < 120; minute++) {
        pass(60_000, clock);
        expect(clock.now()).toBeGreaterThan(last);
        last = clock.now();
      }
      expect(Math.abs(clock.now() - (START + ms + 130 * 60_000))).toBeLessThan(20);
    }
  });
});

describe("sleep", () => {
  test.each([true, false])("of the machine counts (the system tells: %p)", (tellsSleep) => {
    const { clock, pass, sleep } = machine({ tellsSleep });
    pass(60_000, clock);
    sleep(8 * HOUR_MS);
    pass(60_000, clock);
    expect(Math.abs(clock.now() - (START + 8 * HOUR_MS + 120_000))).toBeLessThan(100);
  });
});

describe("a start", () => {
  test("takes over a machine's clock that was corrected meanwhile", () => {
    const { clock, pass, jump, restart } = machine();
    jump(HOUR_MS);
    pass(60_000, clock);
    expect(restart().now()).toBe(START + HOUR_MS + 60_000);
  });

  test("never begins before what the store has seen", () => {
    const { jump, restart, pass } = machine();
    jump(-10 * YEAR_MS);
    const clock = restart();
    expect(clock.notBefore(START)).toBe(10 * YEAR_MS);
    expect(clock.now()).toBe(START);
    pass(60_000, clock);
    expect(clock.now()).toBe(START + 60_000);
    expect(clock.notBefore(START)).toBe(0);
  });
});

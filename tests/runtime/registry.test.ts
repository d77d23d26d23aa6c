// The registry: one record, one owner at a time, by a generation that only rises.
import { expect, test } from "bun:test";
import type { RuntimeRefusal } from "../../src/protocol/runtime-errors.ts";
import { openRegistry } from "../../src/runtime/registry.ts";
import { fakeClock, PROJECT_ID, temporaryFolder } from "./support.ts";

const refusal = (work: () => unknown) => {
  try {
    work();
  } catch (error) {
    return (error as RuntimeRefusal).code;
  }
  return undefined;
};
const candidate = (pid: number) => ({ pid, pidStarted: `start of ${pid}`, tokenHash: "hash", version: "1" });

function setup() {
  const folder = temporaryFolder();
  const clock = fakeClock();
  const alive = new Set<number>();
  const open = () => openRegistry(folder.file("registry.db"), { clock, isSame: (pid, started) => alive.has(pid) && started === `start of ${pid}` });
  return { clock, alive, open, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

test("a live owner is not replaced, a dead one is at once, a silent one only after it was silent the whole time", () => {
  using world = setup();
  const registry = world.open();
  world.alive.add(1).add(2).add(3);
  const first = registry.acquire(candidate(1));
  expect(refusal(() => registry.acquire(candidate(2)))).toBe("runtime_supervisor_conflict");
  world.clock.advance(16_000);
  expect(registry.liveness()).toBe("silent");
  expect(refusal(() => registry.acquire(candidate(2)))).toBe("runtime_supervisor_conflict");
  const seen = registry.supervisor();
  registry.beat(first); // it was only asleep
  expect(refusal(() => registry.acquire(candidate(2), seen))).toBe("runtime_supervisor_conflict");
  world.clock.advance(16_000);
  const second = registry.acquire(candidate(2), registry.supervisor());
  expect(second).toBe(first + 1);
  expect(refusal(() => registry.beat(first))).toBe("runtime_superseded");
  expect(refusal(() => registry.listening(first, 1))).toBe("runtime_superseded");
  registry.release(first); // does nothing: it is not the owner
  expect(registry.supervisor()).toMatchObject({ state: "running", pid: 2 });
  world.alive.delete(2);
  expect(registry.acquire(candidate(3))).toBe(second + 1);
});

test("a pid that somebody else got is a dead owner; a clock that went back makes no one dead", () => {
  using world = setup();
  const registry = world.open();
  world.alive.add(1);
  registry.acquire(candidate(1));
  world.clock.advance(-3_600_000);
  expect(registry.liveness()).toBe("live");
  world.alive.delete(1);
  world.alive.add(2);
  registry.acquire(candidate(2));
  const reused = openRegistry(":memory:", { clock: world.clock, isSame: (pid, started) => pid === 7 && started === "a later start" });
  reused.acquire(candidate(7));
  expect(reused.liveness()).toBe("none");
});

test("the id of the Runtime is the same for ever, and a checkout keeps its home and its project", () => {
  using world = setup();
  const registry = world.open();
  const { runtimeId } = registry;
  const checkout = {
    projectKey: "k1",
    projectId: PROJECT_ID,
    name: "Demo",
    projectRoot: "/a",
    homeRuntimeId: runtimeId,
    configRevision: null,
    hubProject: null,
  };
  registry.register(checkout);
  world.clock.advance(5);
  const again = registry.register({ ...checkout, name: "Renamed", homeRuntimeId: "rtm_ffffffffffffffffffffffff" });
  expect(again).toMatchObject({ name: "Renamed", homeRuntimeId: runtimeId });
  expect(again.usedAt - again.registeredAt).toBe(5);
  expect(refusal(() => registry.register({ ...checkout, projectId: "prj_other_project" }))).toBe("project_conflict");
  registry.close();
  const later = world.open();
  expect(later.runtimeId).toBe(runtimeId);
  expect(later.projectsForRuntime(runtimeId).map(({ projectKey }) => projectKey)).toEqual(["k1"]);
  expect(later.projectsOfOthers(runtimeId)).toEqual([]);
});

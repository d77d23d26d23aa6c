// Commands of the hub over real stores: each is done once, and a store that cannot take its own holds up no other.
import { expect, test } from "bun:test";
import type { RuntimeClient } from "../../../src/client/runtime-client.ts";
import { RuntimeRefusal } from "../../../src/protocol/runtime-errors.ts";
import type { RuntimeCommand } from "../../../src/protocol/sync.ts";
import type { Project } from "../../../src/runtime/contract.ts";
import { openRegistry } from "../../../src/runtime/registry.ts";
import { commandPoll } from "../../../src/runtime/sync/commands.ts";
import { fakeClock, store } from "../support.ts";

const pause = (seq: number, projectId: string, reason: string): RuntimeCommand =>
  ({
    id: `cmd_0000000${seq}`,
    seq,
    kind: "pause",
    projectId,
    payload: { reason },
    actor: "operator",
    createdAt: "2026-01-02T03:04:05.000Z",
  }) as RuntimeCommand;

test("a store that cannot take its commands now holds up no other project, and gets them in order later", async () => {
  const stores = { a: store(), b: store() };
  const projects = Object.entries(stores).map(([key, one]) => ({ key, projectId: `prj_${key}`, store: one }) as unknown as Project);
  const full = new Set(["a"]);
  const done: string[] = [];
  const told: string[] = [];
  const registry = openRegistry(":memory:", { clock: fakeClock() });
  const poll = commandPoll({
    hub: "http://hub#demo",
    registry,
    projects: () => projects,
    target: ({ projectId }) => projects.find((one) => one.projectId === projectId)!,
    leaving: (text) => text,
    log: () => {},
    apply: (project, { id, seq, payload, kind, actor }, hub) => {
      if (full.has(project.key)) throw new RuntimeRefusal("store_unavailable", "the disk is full");
      return project.store.commit((tx) =>
        tx.commands.once({ commandId: id, kind, runId: undefined, request: payload, source: "hub", actor, hub }, () => {
          done.push(`${project.key}${seq}`);
          return null;
        }),
      ) as never;
    },
  });
  const open = [pause(1, "prj_a", "one"), pause(2, "prj_b", "two"), pause(3, "prj_a", "three"), pause(4, "prj_b", "four")];
  const client = {
    commands: async (after: number) => ({ known: open.filter(({ id, seq }) => seq > after && !told.includes(id)), unknown: [] }),
    result: async (id: string, { state }: { state: string }) => void (state === "received" || told.push(id)),
  } as unknown as RuntimeClient;
  expect(await poll.once(client)).toBeGreaterThan(0); // it looks again, from the start
  expect(done).toEqual(["b2", "b4"]);
  expect(told).toEqual(["cmd_00000002", "cmd_00000004"]);
  full.clear();
  expect(await poll.once(client)).toBe(0);
  expect(done).toEqual(["b2", "b4", "a1", "a3"]);
  expect(told).toHaveLength(4);
  for (const one of [...Object.values(stores), registry]) one.close();
});

// What tests of the Runtime share: a folder of their own that goes away, a clock they own, and a store with sensible parts.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../src/runtime/clock.ts";
import { newId } from "../../src/runtime/ids.ts";
import { type KnownSecrets, knownSecrets } from "../../src/runtime/redact/known-secrets.ts";
import { createRedactor } from "../../src/runtime/redact/redactor.ts";
import { type EventStore, openEventStore, type StoreOptions } from "../../src/runtime/store/event-store.ts";
import type { NewRun } from "../../src/runtime/store/runs.ts";

export const HASH = `sha256:${"ab".repeat(32)}`;
export const RUNTIME_ID = "rtm_0123456789abcdef01234567";
export const PROJECT_ID = "prj_0123456789abcdef";

/** A folder that is removed at the end of its block. */
export function temporaryFolder() {
  const path = mkdtempSync(join(tmpdir(), "kxm-runtime-"));
  return { path, file: (name: string) => join(path, name), [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** A clock that moves only when told. */
export function fakeClock(start = Date.UTC(2026, 0, 2, 3, 4, 5)) {
  let now = start;
  const timers = new Set<{ at: number; work: () => void }>();
  const clock: Clock & { advance(ms: number): void } = {
    now: () => now,
    monotonicNs: () => (now - start) * 1e6,
    after: (ms, work) => {
      const timer = { at: now + ms, work };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    advance: (ms) => {
      now += ms;
      for (const timer of [...timers].filter(({ at }) => at <= now).sort((a, b) => a.at - b.at)) if (timers.delete(timer)) timer.work();
    },
  };
  return clock;
}

/** A store in memory or in a file. */
export function store(options: Partial<StoreOptions> & { known?: KnownSecrets } = {}): EventStore {
  const { known = knownSecrets(), ...rest } = options;
  return openEventStore({
    path: ":memory:",
    projectId: PROJECT_ID,
    runtimeId: RUNTIME_ID,
    generation: 1,
    redactor: createRedactor(known),
    clock: fakeClock(),
    newId,
    ...rest,
  });
}

/** Everything a run needs. */
export const aRun = (change: Partial<NewRun> = {}): NewRun & { plan: unknown; planHash: string } => ({
  workflowId: "default",
  displayTitle: "Fix the build",
  source: "cli",
  createdBy: "operator",
  configRevision: HASH,
  executorPolicyRevision: HASH,
  toolPolicyRevision: HASH,
  syncPolicyRevision: HASH,
  memoryRevision: "mem_0123456789abcdef",
  plan: { steps: [] },
  planHash: HASH,
  ...change,
});

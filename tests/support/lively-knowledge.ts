// What a lively project holds to be true: keys with a history, one that two readings contradict, one that waits for its first decision.
import type { Caller } from "../../src/hub/agents.ts";
import * as state from "../../src/hub/context/state.ts";
import type { Hub } from "../../src/hub/hub.ts";
import { LIVELY } from "./lively.ts";

const MINUTE = 60_000;
const OPERATOR = { promoter: "operator", actor: "ses_00000000000000000000000000000001", role: "admin", origin: "dashboard" };

type Told = { key: string; by: string; summary: string; evidence: string; ago: number; promoted?: number };
const TOLD: readonly Told[] = [
  { key: "ledger/rounding", by: "planner", summary: "Half up, per posting.", evidence: "adr:7", ago: 26 * 60, promoted: 25 * 60 },
  { key: "ledger/rounding", by: "reviewer", summary: "Half even, at the boundary only.", evidence: "fx.ts:88", ago: 9 * 60, promoted: 8 * 60 },
  {
    key: "plan/refunds",
    by: "planner",
    summary: "Two entries per refund.\nThe public API stays.",
    evidence: "msg:refunds-two-entries",
    ago: 70,
    promoted: 66,
  },
  { key: "deploy/freeze", by: "release-captain", summary: "No deploys on Fridays after 14:00 UTC.", evidence: "runbook:4", ago: 300, promoted: 290 },
  {
    key: "retry/payments",
    by: "implementer",
    summary: "Retry three times, one second apart.\nThe idempotency key is taken before the first write.\nGive up after ten seconds.",
    evidence: "settle.ts:118",
    ago: 240,
    promoted: 230,
  },
  {
    key: "retry/payments",
    by: "security-review",
    summary:
      "Never retry a capture by itself.\nThe idempotency key is taken before the first write.\nGive up after thirty seconds and ask the operator.",
    evidence: "incident:2026-11-12",
    ago: 18,
  },
  {
    key: "ci/flakes",
    by: "flake-hunter",
    summary: "checkout.e2e fails on Fridays because of the frozen clock.",
    evidence: "run_61b2:bisect",
    ago: 7,
  },
];

/** Plans what agents proposed and what was promoted. @param at plans an act so many milliseconds before the end */
export function tellKnowledge(hub: Hub, cast: Readonly<Record<string, Caller>>, at: (ago: number, act: () => unknown) => void): void {
  for (const { key, by, summary, evidence, ago, promoted } of TOLD) {
    const { id } = cast[by]!;
    let proposalId = "";
    at(ago * MINUTE, async () => {
      const request = { project: LIVELY, key, summary, authority: "evidence", confidence: "verified", evidenceRefs: [evidence] } as const;
      const origin = { caller: id, actor: id, sourceType: "peer" } as const;
      proposalId = await hub.engine.write(LIVELY, (tx) => state.propose(tx, origin, { ...request, evidenceRefs: [evidence] }));
    });
    if (promoted !== undefined)
      at(promoted * MINUTE, () =>
        hub.engine.write(LIVELY, (tx) => state.promote(tx, OPERATOR, { proposalId, project: LIVELY, evidence: [evidence] })),
      );
  }
}

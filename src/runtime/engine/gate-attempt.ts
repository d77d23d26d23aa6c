// Carries out one attempt of a gate: a command without a shell, or a look at files. With a lease it starts only under a live fence, and a fence that is
// lost makes the outcome uncertain. Answers the events that record what was seen.
import { join } from "node:path";
import { canonical, taggedSha256 } from "../../protocol/canonical.ts";
import { type GateArtifacts, type GateCommand, REFERENCES } from "../../protocol/project-files.ts";
import { type Receipt, receiptsIn } from "../../protocol/receipt.ts";
import { environmentFor } from "../harness/environment.ts";
import { notExecuted } from "../harness/launch.ts";
import type { Failure } from "../harness/result.ts";
import type { NewEvent } from "../store/events.ts";
import type { Work } from "./agent-attempt.ts";
import { artifactPiece } from "./artifacts.ts";
import type { HeldLease } from "./context.ts";
import { piece } from "./evidence.ts";
import type { Execution } from "./execution.ts";
import { stepOf } from "./execution.ts";
import type { EvidencePiece } from "./local.ts";
import { effectOf, mayRepeat, RUNTIME_STOPPED } from "./moves.ts";
import { type Ask, type End, startProgram, type Watch, watchProgram } from "./supervise.ts";
import { keepTranscript } from "./transcript.ts";
import { prepareWorkspace } from "./workspaces.ts";

const DRAIN_MS = 5000;
/** Characters of a gate's last words: for people, and to see whether a repeat says something new. */
const TAIL_MAX = 2000;

const identityOf = ({ run, attempt }: Work) => ({ stepId: run.visit!.stepId, stepAttempt: run.visit!.stepAttempt, attemptId: attempt.attemptId });

const watchingOf = ({ context }: Work) => ({ programs: context.machine.programs, clock: context.clock });

/** Fills in what a gate may name of its run. A commit or a branch is that of the first repository unless another is named. */
export const fill = (text: string, run: Execution, stepId: string): string =>
  text.replaceAll(REFERENCES, (_, ofRepository: string | undefined, repository = run.plan.repositories[0]!.id, ofRun = "") => {
    const { base, head, branch = head } = run.repositories[repository]!;
    return ofRepository ? { branch, commit: head, base }[ofRepository]! : { runId: run.runId, stepId }[ofRun as string]!;
  });

/** Runs or re-attaches one attempt. @returns its closing events, or undefined when it was left to another supervisor */
export async function workGate(work: Work): Promise<NewEvent[] | undefined> {
  const { context, run, attempt } = work;
  const step = stepOf(run, run.visit!.stepId);
  const gate = run.plan.gates[step.gate!]!;
  // Its folder is in use: a command that runs, or ran, is only watched.
  if ("argv" in gate && attempt.status === "executing" && attempt.process) return resume(work, step.gate!, gate);
  await prepareWorkspace(context, run, attempt);
  if (!("argv" in gate)) return artifactsExist(work, step.gate!, gate);
  const argv = gate.argv.map((part) => fill(part, run, step.id));
  const program = context.machine.programs.find(argv[0]!, context.env, attempt.workspace.path);
  if (!program)
    return closing(work, {
      failure: { class: "gate_missing", sentence: `the program ${argv[0]} of the gate ${step.gate} is not installed`, retryable: false },
    });
  const cwd = join(attempt.workspace.path, gate.cwd ?? ".");
  if (!context.machine.worktrees.isFolder(cwd))
    return closing(work, {
      failure: {
        class: "gate_cwd_missing",
        sentence: `the gate ${step.gate} runs in ${gate.cwd}, which is no folder of the project`,
        retryable: false,
      },
    });
  const lease = attempt.lease === undefined ? undefined : await acquire(work, attempt.lease);
  const asked = work.stop.said();
  if (asked) return notBegun(work, asked, lease);
  if (lease && "failure" in lease) return closing(work, lease);
  return lettingGo(lease, () => start(work, gate, { gateId: step.gate!, argv: [program, ...argv.slice(1)], cwd }, lease));
}

/** A failure of ours must not leave the lease renewed for nobody: the next try of the attempt stands in the same line for it. */
async function lettingGo<T>(lease: HeldLease | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    lease?.leave();
    throw error;
  }
}

/** The gate is not wanted any more before its command began: nothing happened, and what was granted meanwhile goes back. */
function notBegun(work: Work, asked: Ask, lease: HeldLease | { failure: Failure } | undefined): NewEvent[] | undefined {
  if (lease && "release" in lease) void giveBack(work, lease);
  return asked === "stop" ? closing(work, { cancelled: true }) : undefined;
}

const giveBack = ({ context, attempt }: Work, lease: HeldLease): Promise<void> =>
  lease
    .release()
    .catch((error) => context.log("lease_release_failed", { level: "warn", attemptId: attempt.attemptId, reason: String(error?.message ?? error) }));

/** Whoever asks for the attempt's end also ends its wait in the line. */
async function acquire(work: Work, resource: string): Promise<HeldLease | { failure: Failure } | undefined> {
  const { context, run, stop } = work;
  const unwanted = new AbortController();
  const granted = context.leases
    .acquire(fill(resource, run, run.visit!.stepId), { unwanted: unwanted.signal, confirm: work.confirm })
    .catch((error) => {
      const sentence = error instanceof Error ? error.message : "the hub did not grant the lease";
      return { failure: { class: "lease_unavailable", sentence, retryable: true } };
    });
  const first = await Promise.race([granted, stop.asked]);
  if (typeof first === "object") return first;
  unwanted.abort();
  void granted.then((late) => ("release" in late ? giveBack(work, late) : undefined));
  return undefined;
}

const leaseOf = (lease: HeldLease, attemptId: string) => ({
  id: `lea_${taggedSha256(`${lease.resource} ${attemptId}`).slice(7, 39)}`,
  fencingToken: String(lease.fence),
  acquiredAt: lease.acquiredAt,
  expiresAt: lease.expiresAt,
});

type Launch = { gateId: string; argv: string[]; cwd: string };

async function start(work: Work, gate: GateCommand, { gateId, argv, cwd }: Launch, lease: HeldLease | undefined): Promise<NewEvent[] | undefined> {
  const { context, run, attempt } = work;
  const identity = identityOf(work);
  const held = lease && leaseOf(lease, attempt.attemptId);
  const effect = attempt.effectId ? effectOf(attempt.effectId, attempt.effectClass, attempt.attemptId, lease !== undefined) : undefined;
  const announce: NewEvent[] = [
    ...(held ? [{ type: "lease.acquired" as const, payload: { ...identity, lease: held } }] : []),
    ...(effect
      ? [
          {
            type: "effect.intent_recorded" as const,
            payload: { ...identity, status: "intent_recorded" as const, effect, ...(held && { lease: held }) },
          },
        ]
      : []),
    ...(effect
      ? [{ type: "effect.dispatched" as const, payload: { ...identity, status: "dispatched" as const, effect, ...(held && { lease: held }) } }]
      : []),
  ];
  // The intent is durable before anything outside can happen.
  if (announce.length > 0) work.record(announce);
  const fixed = {
    KXM_RUN_ID: run.runId,
    KXM_STEP_ID: run.visit!.stepId,
    ...(lease && { KXM_LEASE_RESOURCE: lease.resource, KXM_FENCING_TOKEN: String(lease.fence) }),
  };
  const launched = await startProgram(
    context.machine.programs,
    {
      attemptId: attempt.attemptId,
      folder: attempt.folder,
      argv,
      cwd,
      env: environmentFor(context.env, gate.env ?? [], fixed),
      stdin: "",
    },
    {
      confirm: work.confirm,
      record: (process) =>
        work.record([
          {
            type: "attempt.status_changed",
            payload: { ...identity, status: "executing", previousStatus: "created" },
            local: { process, ...(lease && { leaseFence: lease.fence }) },
          },
        ]),
    },
  );
  return finish(work, gateId, gate, { lease, leftMs: attempt.timeoutMs }, (watch) =>
    watchProgram(watchingOf(work), watch, launched.mark, launched.ended),
  );
}

/** Waits for the end of a command, under its lease if it has one. */
async function finish(
  work: Work,
  gateId: string,
  gate: GateCommand,
  { lease, leftMs }: { lease: HeldLease | undefined; leftMs: number },
  wait: (watch: Watch) => Promise<End | undefined>,
): Promise<NewEvent[] | undefined> {
  const { attempt } = work;
  const identity = identityOf(work);
  const held = lease && leaseOf(lease, attempt.attemptId);
  let lost: string | undefined;
  void lease?.lost.then((why) => {
    lost = why;
    work.stop.ask("stop");
  });
  const end = await wait({ attemptId: attempt.attemptId, folder: attempt.folder, drainMs: DRAIN_MS, stop: work.stop, limitMs: leftMs });
  if (!end) {
    lease?.leave();
    return undefined;
  }
  lost ??= lease?.overdue();
  if (lost !== undefined && held) {
    lease!.leave();
    return [
      { type: "lease.lost", payload: { ...identity, lease: held, reason: lost } },
      ...uncertain(work, `the lease ${lease!.resource} was lost while the command ran: ${lost}`),
    ];
  }
  const events = conclude(work, gateId, gate, end);
  if (!lease || !held) return events;
  await giveBack(work, lease);
  return [...events, { type: "lease.released", payload: { ...identity, lease: held } }];
}

/** A command that an earlier supervisor started. Under a lease it counts only if that lease was never lost in between. */
async function resume(work: Work, gateId: string, gate: GateCommand): Promise<NewEvent[] | undefined> {
  const { context, attempt, run } = work;
  let lease: HeldLease | undefined;
  let why: string | undefined;
  if (attempt.lease !== undefined) {
    try {
      lease = await context.leases.keep(fill(attempt.lease, run, run.visit!.stepId), attempt.leaseFence ?? 0);
    } catch (error) {
      why = error instanceof Error ? error.message : String(error);
      work.stop.ask("stop");
    }
  }
  const leftMs = Math.max(0, attempt.timeoutMs - Math.max(0, context.clock.now() - (attempt.startedAt ?? attempt.createdAt)));
  const events = await lettingGo(lease, () =>
    finish(work, gateId, gate, { lease, leftMs }, (watch) => watchProgram(watchingOf(work), watch, attempt.process!)),
  );
  if (why === undefined || events === undefined) return events;
  return uncertain(work, `the Runtime stopped while the command ran, and its lease was lost meanwhile: ${why}`);
}

function conclude(work: Work, gateId: string, gate: GateCommand, end: End): NewEvent[] {
  const { context, run, attempt } = work;
  keepTranscript(context, run.runId, attempt.attemptId, "stdout", end.output.stdout);
  keepTranscript(context, run.runId, attempt.attemptId, "stderr", end.output.stderr);
  const tail = `${end.output.stdout.slice(-TAIL_MAX)}\n${end.output.stderr.slice(-TAIL_MAX)}`.trim().slice(-TAIL_MAX);
  if (end.how !== "ended") {
    if (!mayRepeat(attempt.effectClass))
      return uncertain(work, `the command ${end.how === "lost" ? "vanished" : "was ended"} before it said how it went`);
    if (end.how === "stopped") return closing(work, { cancelled: true, wallMs: end.wallMs });
    // A lost or suspended command is tried again after the restart.
    const failure =
      end.how === "timeout"
        ? { class: "gate_timeout", sentence: `the gate did not end within ${attempt.timeoutMs / 1000} s` }
        : end.how === "suspended"
          ? { class: RUNTIME_STOPPED, sentence: "the Runtime was stopped while the gate ran" }
          : { class: "interrupted", sentence: "the gate's command was ended from outside" };
    return closing(work, { failure: { ...failure, retryable: true }, wallMs: end.wallMs, tail });
  }
  const words = notExecuted(end.output);
  if (words !== undefined) {
    const sentence = `the program ${gate.argv[0]} of the gate ${gateId} ${words}`;
    return closing(work, { failure: { class: "gate_missing", sentence, retryable: false }, wallMs: end.wallMs });
  }
  const passed = end.output.exitCode === 0;
  const evidence = piece(context.newId, {
    key: gateId,
    kind: "gate",
    producer: gateId,
    text: canonical({
      argv: gate.argv,
      commits: Object.fromEntries(attempt.workspace.trees.map(({ id, base }) => [id, base])),
      exitCode: end.output.exitCode,
    }),
  });
  const receipts = passed ? receiptsIn(end.output.stdout) : [];
  const shown = receipts.map((receipt) => piece(context.newId, { key: gateId, kind: "receipt", producer: receipt.provider, text: receipt.id }));
  return closing(work, { passed, evidence: [evidence, ...shown], receipts, exitCode: end.output.exitCode, wallMs: end.wallMs, tail });
}

function artifactsExist(work: Work, gateId: string, gate: GateArtifacts): NewEvent[] {
  const { context, attempt } = work;
  const evidence: EvidencePiece[] = [];
  const missing: string[] = [];
  for (const path of gate.paths) {
    const found = artifactPiece(context.newId, { key: gateId, producer: gateId, path, folder: attempt.workspace.path });
    if (typeof found === "string") missing.push(found);
    else evidence.push(found, { ...found, id: context.newId("evd"), kind: "gate" });
  }
  return closing(work, { passed: missing.length === 0, evidence, tail: missing.join("\n"), wallMs: 0 });
}

type Closing = {
  receipts?: Receipt[];
  failure?: Failure;
  cancelled?: boolean;
  passed?: boolean;
  evidence?: EvidencePiece[];
  exitCode?: number;
  wallMs?: number;
  tail?: string;
};

function closing(work: Work, end: Closing): NewEvent[] {
  const { run, attempt } = work;
  const { failure, cancelled, passed, evidence, exitCode, wallMs = 0, tail } = end;
  const receipts = end.receipts?.map(({ schema: _, ...receipt }) => receipt) ?? [];
  const identity = identityOf(work);
  const error = failure && { class: failure.class, component: stepOf(run, run.visit!.stepId).gate!, retryable: failure.retryable };
  const effect = attempt.effectId && attempt.status === "executing" ? effectOf(attempt.effectId, attempt.effectClass, attempt.attemptId) : undefined;
  return [
    ...(effect ? [{ type: "effect.observed" as const, payload: { ...identity, status: "observed" as const, effect } }] : []),
    ...(effect && receipts.length > 0
      ? [{ type: "effect.receipt_recorded" as const, payload: { ...identity, status: "receipt_recorded" as const, effect, receipts } }]
      : []),
    ...(receipts.length > 0 ? [{ type: "delivery.status_changed" as const, payload: { ...identity, status: "delivered" as const, receipts } }] : []),
    {
      type: "attempt.status_changed",
      payload: {
        ...identity,
        status: cancelled ? "cancelled" : passed ? "passed" : "failed",
        timing: { durationMs: wallMs },
        ...(error && { error, reason: failure.sentence }),
      },
      local: { failure, passed, evidence, exitCode, tail },
    },
    ...(effect ? [{ type: "effect.settled" as const, payload: { ...identity, status: "settled" as const, effect } }] : []),
  ];
}

/** The attempt stays open: nobody can say what happened outside, and it is not tried again by itself. */
export function uncertain(work: Work, reason: string): NewEvent[] {
  const { context, attempt } = work;
  const identity = identityOf(work);
  const effect = effectOf(attempt.effectId ?? context.newId("eff"), attempt.effectClass, attempt.attemptId);
  return [
    { type: "attempt.status_changed", payload: { ...identity, status: "blocked_uncertain", reason } },
    { type: "effect.blocked_uncertain", payload: { ...identity, status: "blocked_uncertain", effect, reason } },
  ];
}

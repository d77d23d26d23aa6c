// What the engine adds to an event beside its payload: it stays on this machine and is what a run is rebuilt from. One shape per event type.

import type { EffectClass } from "../../protocol/project-files.ts";
import type { EvidenceKind, TerminalStatus } from "../../protocol/workflow-file.ts";
import type { ProcessMark } from "../harness/process.ts";
import type { Failure } from "../harness/result.ts";
import type { Repository } from "../project/repositories.ts";

/** Where an attempt works: one folder, laid out as the project is, with a worktree of each repository that it may see. */
export type Workspace = { access: "read" | "write"; path: string; trees: Tree[] };
/** One repository in a workspace. */
export type Tree = Repository & {
  /** The commit it starts from. */
  base: string;
  /** Of one that may be changed: where the result is kept. */
  branch?: string;
};

/** A piece of evidence, bound to the attempt that produced it. */
export type EvidencePiece = {
  id: string;
  key: string;
  kind: EvidenceKind;
  producer: string;
  hash: string;
  /** The text itself, bounded; for people and for later prompts. */
  text: string;
};

/** What a write step changed in one repository. */
export type Changes = {
  repositoryId: string;
  commit: string;
  branch: string;
  added: string[];
  modified: string[];
  deleted: string[];
  linesAdded: number;
  linesRemoved: number;
};

/** The commit a run starts from in a repository, and whether the checkout had changes that are not in it. */
export type Pinned = { base: string; dirty: boolean };
/** Where a run is in a repository: the commit it began at, and the one the next step starts from, which the last write step that passed left on a branch. */
export type Position = Pinned & { head: string; branch?: string };
/** How a step attempt ended. */
export type StepResult = {
  stepId: string;
  stepAttempt: number;
  outcome: string;
  summary: string;
  declared: boolean;
  evidence: EvidencePiece[];
  changes: Changes[];
  failure?: Failure;
  evidenceHash: string;
};
/** Evidence with the attempt that produced it; its text is in that attempt's result. */
export type BoundEvidence = Omit<EvidencePiece, "text"> & { stepId: string; stepAttempt: number };
/** What a run that begins at a step has from the one whose work it goes on with. */
export type Carried = {
  runId: string;
  stepId: string;
  repositories: Record<string, Position>;
  results: Record<string, StepResult>;
  evidence: BoundEvidence[];
  pinned: { planHash?: string; oracle?: string };
};
export type CreatedLocal = { planHash: string; repositories: Record<string, Pinned>; carried?: Carried };
export type EnteredLocal = { visit: number };
export type AttemptLocal = {
  kind: "agent" | "gate";
  folder: string;
  /** Which boot of the machine it was intended in: after another one, missing files prove nothing. */
  boot: string;
  timeoutMs: number;
  effectClass: EffectClass;
  workspace: Workspace;
  /** Id of the program's session. Not called one: names like that are taken for secrets and their values for what must not be kept. */
  conversation?: string;
  /** Of a gate: what it needs a lease of. */
  lease?: string;
  effectId?: string;
};
export type ProcessLocal = { process: ProcessMark; leaseFence?: number };
/** `passed` is what a gate's command or check answered; without it the attempt gave no answer. */
export type EndedLocal = { failure?: Failure; exitCode?: number; dropped?: number; passed?: boolean; evidence?: EvidencePiece[]; tail?: string };
export type ResultLocal = { evidence?: EvidencePiece[]; changes?: Changes[]; failure?: Failure; summary?: string; tail?: string };
export type OutcomeLocal = {
  evidence?: EvidencePiece[];
  changes?: Changes[];
  failure?: Failure;
  declared: boolean;
  evidenceHash: string;
  summary: string;
};
/** How a run that is being stopped will end. */
export type StatusLocal = { endAs?: "failed" | "cancelled" };
export type TransitionLocal = { terminal?: TerminalStatus };
export type WaitingLocal = { approval?: ApprovalContent; deadline?: number };

/** Why somebody is asked. */
export type ApprovalPurpose = "step" | "cost" | "no-progress";
/** Exactly what the decision is about: its hash must come back with it. */
export type ApprovalContent = {
  runId: string;
  purpose: ApprovalPurpose;
  stepId: string;
  stepAttempt: number;
  question: string;
  /** What was done so far: outcome, summary and evidence hashes of the steps before. */
  basis: { stepId: string; outcome: string; summary: string; evidence: string[]; commits?: string[] }[];
  numbers?: Record<string, number | string>;
};

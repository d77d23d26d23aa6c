// What to do about a run that failed, by the class that its reason begins with. One place: the command line and the documentation say the same.
import { RUNTIME_ERRORS } from "./runtime-errors.ts";

/** Classes of failures of the Runtime that are no refusals, each with what somebody can do about it. */
export const FAILURES = {
  outcome_unknown: "Look what it said with `kxm runs logs`; its reply must end with the declared outcome.",
  evidence_missing: "Look at `kxm runs logs`: the step must show the evidence it is asked for.",
  weakened_reproduction: "The reproduction must stay as it was pinned: correct the change, or start a new run.",
  gate_missing: "Install the gate's program, or correct its argv in .kxm/gates.yaml.",
  gate_cwd_missing: "Correct the gate's cwd in .kxm/gates.yaml: it must be a folder below the project's root.",
  gate_timeout: "Look at `kxm runs logs` for what it waits for, or raise the gate's timeoutMs.",
  not_signed_in: "Sign the program in, or set its key where the Runtime runs; `kxm harness list` shows what is known.",
  quota_exhausted: "Wait until the provider's quota renews, or name another model.",
  rate_limited: "Wait a little, or run fewer agents at a time.",
  provider_unavailable: "Try again once the provider answers.",
  provider_error: "Look at `kxm runs logs` for what the provider said.",
  timeout: "Look at `kxm runs logs` for what it did, or raise timeoutMs of the agent or step.",
  wait_timeout: "Send the signal sooner, or raise the step's timeoutMs.",
  output_too_large: "Make the program print less: 8 MiB of each output are kept.",
  no_result: "Look at `kxm runs logs`: the program ended without its structured result.",
  no_answer: "Look at the Runtime's log: the gate ended without an answer.",
  program_failed: "Look at `kxm runs logs` for what the program said before it failed.",
  max_turns: "Give the step less to do, or let the program take more turns.",
  runtime_stopped: "The Runtime was stopped meanwhile: start it, and the step is tried again.",
  interrupted: "Something ended the program from outside: try again, and look for what kills it.",
  lease_unavailable: "Wait until the holder gives it back (`kxm lease list`), or bind this machine to its hub.",
  signal_unknown: "Send a status that the step names in `on:`.",
  resolved_failed: "Somebody resolved it as failed: their reason is in `kxm runs events`.",
  cost_rejected: "Raise limits.maxModelCost, or approve the next time.",
  no_progress: "The same came out again and again: change the instructions or the agent.",
  plan_hash_required: "Let the step that shows the plan pass first.",
  budget_transitions: "Raise limits.maxTransitions, or find out why the run goes round.",
  budget_edge: "Raise the edge's maxTransitions, or find out why the run goes round.",
  budget_step_attempts: "Look at the last attempt with `kxm runs logs`, or raise the step's maxAttempts.",
  budget_run_duration: "Raise limits.maxRunDurationMs, or make the steps shorter.",
  budget_agent_time: "Raise limits.maxAgentTimeMs, or make the steps shorter.",
  budget_model_cost: "Raise limits.maxModelCost, or name a cheaper model.",
  disk_full: "Make room on the disk that holds the Runtime's state.",
  internal_error: "This is a fault of ours: `kxm runtime status` names the log that has the cause.",
} as const satisfies Record<string, string>;

/** What to do about a failed run. @param reason that of the run, such as `timeout: the agent …` */
export function adviceOn(reason: string | undefined): string | undefined {
  const failure = /^([a-z_]+)(?::|$)/.exec(reason ?? "")?.[1];
  if (failure === undefined) return undefined;
  if (Object.hasOwn(FAILURES, failure)) return FAILURES[failure as keyof typeof FAILURES];
  return Object.hasOwn(RUNTIME_ERRORS, failure) ? RUNTIME_ERRORS[failure as keyof typeof RUNTIME_ERRORS].hint : undefined;
}

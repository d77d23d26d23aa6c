// Every refusal KXM can give: one closed table of code, status and default hint. Wire errors, CLI exit texts and docs are made from it.

/** What a code means on the wire: the HTTP status and one sentence that says what to do next. */
export type ErrorRule = { status: number; hint: string };

const RETRY_SAME_KEY = "The outcome is unknown: send the same request again with the same idempotency key after the time in retry-after.";

/** code → status and default hint. A code that is not here cannot be thrown. */
export const ERRORS = {
  protocol_error: { status: 400, hint: "Correct the named field and send the request again." },
  invalid_json: { status: 400, hint: "Send one JSON object in UTF-8, without duplicate keys, lone surrogates, NUL or more than 32 levels." },
  hop_limit_reached: { status: 400, hint: "Answer the request yourself instead of forwarding it, or raise maxHops at its origin." },
  self_target: { status: 400, hint: "Address another agent; GET /v1/agents lists those of your project." },
  lease_token_required: { status: 400, hint: "Send the fencingToken that acquire returned." },
  invalid_runtime_id: { status: 400, hint: "Use the runtime id of this machine, such as rtm_ followed by 24 hex digits." },
  invalid_sync_batch: { status: 400, hint: "Send events as an array of at most 100 sync events." },
  invalid_checkpoint_status: { status: 400, hint: "Use passed, warning or failed." },
  invalid_signal_key: {
    status: 400,
    hint: "A signal key starts with a letter or digit and then holds letters, digits, dot, underscore, colon or dash.",
  },
  invalid_workflow_context: { status: 400, hint: "Send runId, stageId, requirementKey and attempt, and nothing else." },
  invalid_workflow_evidence: { status: 400, hint: "Send evidence as an object of at most 64 keys with string values." },
  invalid_workflow_evidence_refs: { status: 400, hint: "Send evidenceRefs as an object of keys, each with messageIds, and only with status passed." },
  workflow_evidence_policy_missing: { status: 400, hint: "Only keys with a peer-reply policy take message references." },
  workflow_provenance_invalid: { status: 400, hint: "Refer to replied messages of this run, stage, key and attempt from eligible producers." },
  workflow_evidence_incomplete: {
    status: 400,
    hint: "Provide what missingRequirements lists, then checkpoint again; a sender of signals signs a new delivery with all of it.",
  },
  workflow_wait_invalid: { status: 400, hint: "Wait only from the stage in progress with a valid signal key and timeout." },
  workflow_degradation_forbidden: { status: 400, hint: "The evidence policy of this key allows no degradation." },
  weakened_reproduction: { status: 400, hint: "Give the same reproduction evidence as was captured first." },
  plan_hash_required: { status: 400, hint: "Pass the planning stage first so that the plan hash is captured." },
  invalid_journal_category: { status: 400, hint: "Use one of the documented journal categories." },
  invalid_journal_severity: { status: 400, hint: "Use info, warning or error." },
  invalid_journal_relation: { status: 400, hint: "Relate only stages and entries of the same run." },
  invalid_improvement_area: { status: 400, hint: "Give one of the documented areas, or a stage that has one." },
  journal_evidence_required: { status: 400, hint: "Lessons and skill candidates need at least one evidence line." },
  invalid_journal_promotion: { status: 400, hint: "Promote to approved, rejected or quarantined." },
  journal_promotion_invalid: { status: 400, hint: "Only open skill candidates, hypotheses and experiments are promoted, once." },
  invalid_context_request: { status: 400, hint: "Check role, task, budget and kinds." },
  invalid_context_field: { status: 400, hint: "Use documented kinds and unique references." },
  invalid_context_item: { status: 400, hint: "Check the item's kind, provenance, authority and confidence." },
  context_limits_exceeded: { status: 400, hint: "Shorten the item or its references." },
  invalid_state_request: { status: 400, hint: "Send a readable timestamp in asOf." },
  state_promotion_invalid: { status: 400, hint: "A promotion needs evidence and somebody other than the proposer." },
  state_proposal_not_promotable: { status: 400, hint: "The proposal was decided already; propose again." },
  invalid_definitions: { status: 400, hint: "Correct the file; `kxm workflow validate FILE` lists every problem." },
  invalid_webhook_url: { status: 400, hint: "Use an https URL of a public host, or ask the operator to allow this exact receiver." },
  invalid_search_query: { status: 400, hint: "Check the qualifier's spelling; `kxm search --help` lists them." },
  invalid_auth: { status: 401, hint: "Send the token of this project as authorization: Bearer …" },
  invalid_agent_identity: { status: 401, hint: "Reconnect with the current agent key, or register again." },
  webhook_signature_missing: { status: 401, hint: "Sign the request with the kxm-webhook-v1 envelope." },
  webhook_signature_unsupported: { status: 401, hint: "Use HMAC-SHA256." },
  webhook_signature_invalid: { status: 401, hint: "Sign the exact body, timestamp, delivery id and route with the shared secret." },
  webhook_timestamp_expired: { status: 401, hint: "Send within 300 seconds and check this machine's clock." },
  session_required: { status: 401, hint: "Run `kxm open` for a sign-in link." },
  signin_link_invalid: { status: 401, hint: "A sign-in link works once and for 60 seconds: run `kxm open` for another." },
  message_forbidden: { status: 403, hint: "Only its sender or recipient may do this." },
  presence_stream_forbidden: { status: 403, hint: "presenceOnly is for the terminal view; open a normal stream." },
  workflow_forbidden: { status: 403, hint: "Ask the assigned coordinator." },
  workflow_context_forbidden: { status: 403, hint: "Only the coordinator of the run asks for peer evidence." },
  workflow_evidence_producer_forbidden: { status: 403, hint: "Ask one of the eligible producers of this key." },
  context_isolation_violation: { status: 403, hint: "Ask for your own project." },
  context_authority_violation: { status: 403, hint: "Propose with an authority your origin may claim." },
  state_proposer_mismatch: { status: 403, hint: "Leave proposedBy out, or send your own name." },
  host_forbidden: { status: 403, hint: "Use the hub's own address, such as http://127.0.0.1:7331, or set KXM_HOST." },
  origin_forbidden: { status: 403, hint: "Call the hub from its own pages or without an Origin header." },
  csrf_failed: { status: 403, hint: "Reload the page and try again." },
  role_forbidden: { status: 403, hint: "Ask an operator or admin to do this." },
  route_not_found: { status: 404, hint: "See /docs for the routes of this hub." },
  target_not_found: { status: 404, hint: "GET /v1/agents lists who is online; allowOffline queues for a known agent." },
  message_not_found: { status: 404, hint: "Check the id; messages are kept for the retention time." },
  agent_not_found: { status: 404, hint: "GET /v1/agents?includeOffline=true lists the agents of your project." },
  lease_not_found: { status: 404, hint: "Nobody holds it: acquire it." },
  run_not_found: { status: 404, hint: "Check the project and run id; `kxm runs list` shows what is known." },
  runtime_not_found: { status: 404, hint: "No Runtime of this id has reported to this project yet." },
  command_not_found: { status: 404, hint: "Check the command id." },
  approval_not_found: { status: 404, hint: "GET /v1/approvals lists what is pending." },
  upkeep_busy: { status: 409, hint: "Wait until it has ended; the page of settings shows how far it is." },
  upkeep_unsupported: { status: 409, hint: "Settings says what to do for this store instead." },
  budget_not_found: { status: 404, hint: "Check the budget id; somebody may have removed it." },
  budget_limit: { status: 409, hint: "Remove a budget that nobody needs first." },
  invalid_budget: { status: 400, hint: "Give an amount, a period (day or month) and a currency." },
  alert_not_found: { status: 404, hint: "Check the alert id." },
  conflict_not_found: { status: 404, hint: "GET /v1/sync/conflicts lists what was refused." },
  token_not_found: { status: 404, hint: "`kxm token list` shows the ids." },
  tokens_in_force: { status: 409, hint: "Revoke the project's tokens first." },
  endpoint_not_found: { status: 404, hint: "`kxm webhook list` shows the endpoints." },
  delivery_not_found: { status: 404, hint: "Deliveries are kept for the retention time; see the endpoint's log." },
  webhook_not_found: { status: 404, hint: "Check the definition id; the hub reads definitions from the file that KXM_WEBHOOK_WORKFLOWS_FILE names." },
  workflow_not_found: { status: 404, hint: "Check the run id." },
  workflow_stage_not_found: { status: 404, hint: "Use a stage id of this run." },
  journal_not_found: { status: 404, hint: "Check the entry id." },
  state_proposal_not_found: { status: 404, hint: "Check the proposal id and project." },
  duplicate_agent_name: { status: 409, hint: "Choose another name, or wait until the other agent is offline." },
  idempotency_conflict: { status: 409, hint: "Use a new idempotency key for a different request." },
  invalid_message_state: { status: 409, hint: "The message has ended; read it to see how." },
  duplicate_reply: { status: 409, hint: "The message has its reply; send a new message instead." },
  lease_held: { status: 409, hint: "Wait with waitMs, or ask the holder named in lease." },
  lease_expired: { status: 409, hint: "Stop the guarded work and acquire the lease again." },
  lease_superseded: { status: 409, hint: "Somebody else holds it now: stop the guarded work." },
  approval_content_changed: { status: 409, hint: "Read what is pending now and decide again." },
  approval_decided: { status: 409, hint: "Somebody decided already; see the approval." },
  command_finished: { status: 409, hint: "The command has its result; nothing was changed." },
  run_not_accepting: { status: 409, hint: "The run is in a state that does not accept this; see its status." },
  workflow_target_unavailable: { status: 409, hint: "Register the coordinator and the eligible agents once, then deliver again." },
  workflow_evidence_policy_invalid: { status: 409, hint: "A coordinator cannot be its own evidence producer." },
  workflow_evidence_policy_unresolvable: { status: 409, hint: "Register enough eligible agents for the quorum." },
  workflow_evidence_policy_unresolved: { status: 409, hint: "The run has no resolved policy for this key." },
  workflow_terminal: { status: 409, hint: "The run is not running; read it to see why." },
  workflow_not_running: { status: 409, hint: "Wait only while the run is running." },
  workflow_stage_out_of_order: { status: 409, hint: "Work on the current stage." },
  workflow_not_waiting: { status: 409, hint: "Signal only a run that waits." },
  workflow_signal_mismatch: { status: 409, hint: "Send the signal the run waits for." },
  workflow_signal_context_mismatch: { status: 409, hint: "The signal names another run, stage or signal." },
  workflow_signal_delivery_conflict: { status: 409, hint: "Use a new delivery id for a different signal." },
  workflow_wait_inconsistent: { status: 409, hint: "Read the run and its waiting stage again." },
  workflow_context_inactive: { status: 409, hint: "Ask for evidence only while the stage is in progress." },
  workflow_context_attempt_mismatch: { status: 409, hint: "Ask for the current attempt." },
  workflow_context_correlation_mismatch: { status: 409, hint: "Leave correlationId out, or send the run id." },
  workflow_degradation_conflict: { status: 409, hint: "A different reason was approved already." },
  state_contradiction: { status: 409, hint: "Several values are current: promote one of them." },
  webhook_delivery_conflict: { status: 409, hint: "Use a new delivery id for a different body." },
  webhook_payload_replayed: { status: 409, hint: "This body has already started a run." },
  payload_too_large: { status: 413, hint: "Send at most 262144 bytes." },
  sync_batch_too_large: { status: 413, hint: "Send at most 100 events a request." },
  unsupported_media_type: { status: 415, hint: "Send content-type: application/json, uncompressed." },
  rate_limited: { status: 429, hint: "Wait for the seconds in retry-after." },
  too_many_streams: { status: 429, hint: "Close another stream of this agent or session first." },
  internal_error: { status: 500, hint: "The hub's log has the cause under this request id." },
  admin_auth_not_configured: { status: 503, hint: "Set KXM_AUTH_TOKEN or create a token with `kxm token create`, then retry." },
  storage_unavailable: { status: 503, hint: RETRY_SAME_KEY },
  shutting_down: { status: 503, hint: "The hub is stopping; connect again in a moment." },
  // Per event of a sync batch, inside a 200.
  sync_event_invalid: { status: 200, hint: "The event does not match kxm.sync-event.v1." },
  sync_runtime_mismatch: { status: 200, hint: "Events are pushed by their home Runtime only." },
  sync_sequence_reused: { status: 200, hint: "Another event is stored under this sequence; an operator must look." },
  sync_project_mismatch: { status: 200, hint: "Another hub project owns this projectId." },
  sync_held_limit: { status: 200, hint: "Too much waits behind a gap of this run: push the missing sequence first, then this event again." },
  sync_home_runtime_mismatch: { status: 200, hint: "The run lives on another Runtime." },
} as const satisfies Record<string, ErrorRule>;

/** A code of the closed table. */
export type ErrorCode = keyof typeof ERRORS;

/** An expected refusal: a code, a sentence that names the thing, and flat extra members for the answer. */
export class HubError extends Error {
  override readonly name = "HubError";
  /**
   * @param code what happened, from the closed table
   * @param message one sentence for the person reading it; never holds a secret or a message body
   * @param extras flat members of the answer, such as `lease`; `hint` replaces the default hint
   */
  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly extras: Record<string, unknown> = {},
  ) {
    super(message);
  }
  /** The HTTP status of the code. */
  get status(): number {
    return ERRORS[this.code].status;
  }
}

/** Programmer's errors: fails the operation when `condition` does not hold. */
export function assert(condition: unknown, why: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${why}`);
}

// Every refusal the Runtime itself can give, to its local API and its command line: one closed table of code, status and hint.

/** code → status of the local API and one sentence that says what to do next. */
export const RUNTIME_ERRORS = {
  runtime_protocol_error: { status: 400, hint: "Correct the named field and send the request again." },
  runtime_unauthorized: { status: 401, hint: "Use the token in the Runtime's state folder; `kxm runtime status` shows where that is." },
  runtime_route_not_found: { status: 404, hint: "Use a `kxm` of the same version as the Runtime." },
  runtime_supervisor_conflict: {
    status: 409,
    hint: "One Runtime runs per machine and user: use the running one, or stop it with `kxm runtime stop`.",
  },
  runtime_superseded: { status: 409, hint: "Another Runtime took over this machine; this one stops. Ask the new one." },
  runtime_not_running: { status: 503, hint: "Start it with `kxm runtime start`." },
  runtime_imposter: { status: 503, hint: "Something else answers on the Runtime's port. Stop it, or run `kxm runtime start`." },
  runtime_internal_error: { status: 500, hint: "The Runtime's log has the cause." },
  state_root_unsafe: { status: 500, hint: "Make the named path a plain file or folder of your own, or set KXM_STATE_HOME to another folder." },
  state_file_invalid: { status: 500, hint: "Correct or remove the named file." },
  store_unavailable: { status: 503, hint: "See `kxm runtime status` for the cause; nothing recorded is lost." },
  store_fenced: { status: 409, hint: "Another Runtime owns this store now. Nothing was written." },
  store_home_mismatch: {
    status: 409,
    hint: "This store was made by another Runtime. Put it back on its machine, or move it away and start afresh here.",
  },
  store_too_new: { status: 409, hint: "Use a newer version of KXM." },
  store_corrupt: { status: 500, hint: "Keep the file as it is and restore it from a backup." },
  project_not_found: { status: 404, hint: "Run `kxm init` in the repository, or register it with `kxm run`." },
  project_conflict: { status: 409, hint: "Another checkout on this machine is registered under this project id." },
  project_invalid: { status: 422, hint: "Correct the named files; `kxm run` reads them again." },
  repository_unusable: { status: 409, hint: "See what git says; KXM works only inside a Git repository." },
  worktree_unusable: { status: 500, hint: "Look at the named folder: its disk, its owner, what lies in the way." },
  worktree_unproven: { status: 409, hint: "Commit or copy what is in it; then clean up again." },
  approval_not_found: { status: 404, hint: "`kxm runs show` lists what waits for a decision." },
  approval_content_changed: { status: 409, hint: "Look at what is asked now, and decide again." },
  run_not_found: { status: 404, hint: "`kxm runs list` shows the runs of this project." },
  run_not_accepting: { status: 409, hint: "The run is in a state that does not accept this; `kxm runs show` tells." },
  command_conflict: { status: 409, hint: "Use another key or command id for something else." },
  command_refused: { status: 409, hint: "See the reason." },
  harness_missing: { status: 409, hint: "Install the program, or name another harness; `kxm harness list` shows what is here." },
  hub_not_bound: { status: 409, hint: "Bind this machine to a hub with `kxm runtime bind`." },
} as const satisfies Record<string, { status: number; hint: string }>;

/** A code of the table. */
export type RuntimeErrorCode = keyof typeof RUNTIME_ERRORS;

/** An expected refusal of the Runtime: a code, a sentence that names the thing, and what to do next. */
export class RuntimeRefusal extends Error {
  override readonly name = "RuntimeRefusal";
  /**
   * @param code what happened, from the closed table
   * @param message one sentence for the person reading it; never holds a secret or a prompt
   * @param options.hint replaces the default hint; options.detail are flat extra members of the answer
   */
  constructor(
    readonly code: RuntimeErrorCode,
    message: string,
    readonly options: { hint?: string; detail?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
  }
  /** What to do next. */
  get hint(): string {
    return this.options.hint ?? RUNTIME_ERRORS[this.code].hint;
  }
  /** The status on the local API. */
  get status(): number {
    return RUNTIME_ERRORS[this.code].status;
  }
}

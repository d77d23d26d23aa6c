// What to do next at a terminal, where the hub's own hint speaks of requests.
import type { ErrorCode } from "../protocol/errors.ts";

/** Replaces the hub's hint when a command is refused. */
export const CLI_HINTS: Partial<Record<ErrorCode, string>> = {
  target_not_found:
    "`kxm peer list --all` shows who is known, --project NAME looks in another project; --offline queues for one that is known and not online.",
  duplicate_agent_name: "Choose another name with --as, or wait until the other one is offline.",
  message_not_found: "Check the id; ended messages are kept for a week by default.",
  lease_held: "--wait 30s stands in line; `kxm lease list NAME` shows the holder.",
  lease_not_found: "`kxm lease acquire NAME` takes it.",
  lease_superseded: "Somebody else holds it now: stop the guarded work.",
  invalid_auth:
    "Set KXM_TOKEN to a token of this hub, which `kxm token create` makes in the hub's workspace. Once a project had a token of its own, its agents and Runtimes must show one even there.",
  role_forbidden: "This token may not do that: ask an admin for another with `kxm token create`.",
  rate_limited: "Wait a moment and try again.",
  workflow_forbidden: "Speak as its coordinator: --project and --as before the command name the project and the agent.",
  workflow_target_unavailable: "Register whom it names, once: `kxm peer --project PROJECT --as NAME inbox`. Then deliver again.",
  unsupported_media_type: "This kxm and the hub do not understand each other: compare their versions with `kxm --version` and `kxm hub status`.",
  route_not_found: "The hub is of another version: compare `kxm --version` and `kxm hub status`.",
};

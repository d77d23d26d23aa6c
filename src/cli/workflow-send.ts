// Signed deliveries from a terminal: starting a workflow run and signalling one. The secret comes from the environment, never from the command line.
import type { Command } from "commander";
import { ask } from "../client/http.ts";
import { signedDelivery } from "../client/webhook-sender.ts";
import { MINUTE_MS } from "../protocol/time.ts";
import { define, duration } from "./command.ts";
import { CommandFailed, type World } from "./output.ts";
import { asProject, CLI_HEADERS, findTarget, type TargetOptions } from "./target.ts";
import { readText } from "./text.ts";
import { collect, pairs } from "./workflow.ts";

type Sending = TargetOptions & { payload?: string; secretEnv: string; deliveryId?: string; timeout: number };
const withSecret = (command: Command) =>
  command
    .option("--secret-env <name>", "environment variable that holds the shared secret", "KXM_WEBHOOK_SECRET")
    .option("--delivery-id <id>", "the same id again is the same delivery; made from the body when left out")
    .option("--timeout <span>", "how long to wait for an answer", duration(1_000, 10 * MINUTE_MS), 30_000);

function secretOf(world: World, name: string): string {
  const secret = world.env[name]?.trim();
  if (!secret)
    throw new CommandFailed(
      `the environment variable ${name} with the shared secret is not set`,
      "Secrets never go on a command line: export it, or name another with --secret-env.",
    );
  return secret;
}

/** Adds `kxm workflow start` and `kxm workflow signal`. */
export function addSending(workflow: Command) {
  define<Sending>(workflow, {
    usage: "start <definition>",
    summary: "start a run with a signed delivery",
    examples: ['kxm workflow start release --payload \'{"issue":{"key":"SHOP-1"}}\'', "kxm workflow start release < event.json"],
    options: (command) => withSecret(command).option("--payload <json>", "the event; else from standard input"),
    run: async ({ args: [definition], options, out, world }) => {
      const body = options.payload ?? (await readText([], world));
      const answer = await deliver(world, options, { kind: "start", definitionId: definition!, runId: "", signalKey: "" }, body);
      out.result(answer ?? { started: false }, () =>
        out.line(
          answer === undefined
            ? "the definition's event or filter does not want this payload; nothing was started"
            : `${answer["duplicate"] ? "already started" : "started"} ${answer["runId"]}`,
        ),
      );
    },
  });
  define<Sending & { status: string; summary: string; evidence?: string[] }>(workflow, {
    usage: "signal <definition> <run> <key>",
    summary: "resume a waiting run with a signed signal",
    examples: ["kxm workflow signal release run_0190… ci --status passed --summary 'All green' --evidence 'test log=https://ci/42'"],
    options: (command) =>
      withSecret(command)
        .requiredOption("--status <status>", "passed, warning or failed")
        .requiredOption("--summary <text>", "what happened")
        .option("--evidence <key=value>", "repeat for more", collect),
    run: async ({ args: [definition, runId, key], options, out, world }) => {
      const { status, summary, evidence } = options;
      const body = JSON.stringify({ status, summary, ...(evidence && { evidence: pairs(evidence, "--evidence") }) });
      const answer = await deliver(world, options, { kind: "signal", definitionId: definition!, runId: runId!, signalKey: key! }, body);
      out.result(answer, () =>
        out.line(
          `stage ${answer?.["stageId"]} ${answer?.["status"]}${answer?.["duplicate"] ? " (delivered before)" : answer?.["resumed"] ? "; the coordinator goes on" : ""}`,
        ),
      );
    },
  });
}

type Envelope = { kind: "start" | "signal"; definitionId: string; runId: string; signalKey: string };
/** Sends a signed delivery. @returns the answer, or undefined for 204 */
async function deliver(world: World, options: Sending, envelope: Envelope, body: string): Promise<Record<string, unknown> | undefined> {
  const target = findTarget(world, options);
  const { path, headers } = signedDelivery(secretOf(world, options.secretEnv), envelope, body, { now: Date.now(), deliveryId: options.deliveryId });
  const answer = await ask(asProject(target), "POST", path, {
    json: body,
    headers: { ...headers, ...CLI_HEADERS },
    timeoutMs: options.timeout,
    signal: world.stopping,
  });
  return answer.body;
}

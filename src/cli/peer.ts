// `kxm peer`: a terminal takes part as an agent. Sends, waits, answers, and shows what comes in.
import type { Command } from "commander";
import { readFrames } from "../client/sse.ts";
import type { Agent } from "../protocol/agents.ts";
import type { Message } from "../protocol/messages.ts";
import { DAY_MS } from "../protocol/time.ts";
import type { WorkflowRun } from "../protocol/workflows.ts";
import { type Call, type CommandSpec, define, duration, type Ended, group } from "./command.ts";
import { asAgent, defaultName, type Terminal } from "./identity.ts";
import { EXIT, oneLine, UsageError, visible } from "./output.ts";
import { hasEnded, sentence, showAgents, showEnd, showFrame, showInbox, showMessage, showText } from "./peer-show.ts";
import { findTarget, type TargetOptions, withTarget } from "./target.ts";
import { readText } from "./text.ts";

const LONG_POLL_MS = 25_000;
/** A stream alone is no sign of life: who follows says so this often. */
const HEARTBEAT_MS = 10_000;
const FANOUT_MAX = 3;
const DELIVERIES = ["steer", "followUp", "nextTurn"];

type PeerOptions = TargetOptions & { as?: string };
type SendOptions = PeerOptions & {
  wait?: number | true;
  ttl?: number;
  offline?: boolean;
  delivery?: string;
  correlation?: string;
  key?: string;
  for?: string;
  requirement?: string;
};
type PeerCall<O extends PeerOptions> = Call<O> & { me: Terminal };

/** Adds `kxm peer` and its commands. */
export function addPeer(program: Command): void {
  const peer = withTarget(
    group(
      program,
      "peer",
      "talk to other agents from this terminal",
      "The terminal is an agent of its own: --as names it, and its key is kept in a file of this user, so that two terminals can talk.",
    ),
  ).option("--as <name>", "name to speak under (KXM_AGENT_NAME; else the user's name)");
  const add: Add = <O extends PeerOptions>(spec: PeerSpec<O>) =>
    define<O>(peer, { ...spec, run: async (call) => spec.run({ ...call, me: await meOf(call) }) });

  add<PeerOptions & { all?: boolean }>({
    usage: "list",
    summary: "list the agents of the project",
    examples: ["kxm peer list", "kxm peer --as reviewer list --all"],
    options: (command) => command.option("--all", "also agents that are offline"),
    run: async ({ me, options, out }) => {
      const { body } = await me.ask<{ agents: Agent[] }>("GET", "/v1/agents", { query: { includeOffline: options.all === true } });
      out.result(body, () => showAgents(out, body.agents, me.id));
    },
  });
  addSend(add);
  addReading(add);
  addEnding(add);
}

type PeerSpec<O extends PeerOptions> = Omit<CommandSpec<O>, "run"> & { run(call: PeerCall<O>): Promise<Ended> };
type Add = <O extends PeerOptions>(spec: PeerSpec<O>) => Command;

function addSend(add: Add) {
  const sending = (command: Command) =>
    command
      .option("--ttl <span>", "how long it may wait for its reply", duration(1_000, 7 * DAY_MS))
      .option("--offline", "queue it for an agent that is known but not online")
      .option("--delivery <how>", `into the running turn or after it: ${DELIVERIES.join(", ")}`)
      .option("--correlation <id>", "thread it belongs to")
      .option("--key <key>", "idempotency key: the same key and message again send nothing new")
      .option("--for <run>", "ask for what the current stage of a workflow run needs from peers, as its coordinator")
      .option("--requirement <key>", "which requirement, where the stage has several");
  add<SendOptions>({
    usage: "send <target> [text...]",
    summary: "send a message to an agent, by name or id",
    details: "Without a text, or with -, the text is read from standard input.",
    examples: [
      "kxm peer send reviewer 'please look at #12'",
      "kxm peer --as lead send reviewer 'is it safe?' --for run_0190… --wait",
      "git diff | kxm peer send reviewer --wait 10m",
      "kxm peer --as a send b hello --wait",
    ],
    options: (command) => sending(command.option("--wait [span]", "wait for the reply and print it", duration(100, DAY_MS))),
    run: async ({ me, args: [target, ...words], options, out, world }) => {
      const content = await readText(words, world);
      const { body } = await me.ask<{ message: Message; idempotent: boolean }>("POST", "/v1/messages", {
        body: { ...requestOf(target!, content, options), ...(await contextOf(me, options)) },
      });
      if (options.wait === undefined) {
        out.result(body, () => out.line(`${sentence(body.message)}  ${out.styled("dim", body.message.id)}`));
        return EXIT.ok;
      }
      out.note(`sent ${body.message.id} to ${oneLine(body.message.toName)}, waiting for the reply`);
      return showEnd(out, await waitFor(me, body.message, options.wait === true ? DAY_MS : options.wait, world.stopping));
    },
  });
  add<SendOptions & { timeout: number }>({
    usage: "fanout <targets> [text...]",
    summary: `ask up to ${FANOUT_MAX} agents at once and wait for their replies`,
    details: "Targets are separated by commas. Agents that have not answered in time stay asked: `kxm peer await ID` goes on waiting.",
    examples: ["kxm peer fanout planner,reviewer 'is the migration safe?' --timeout 10m"],
    options: (command) => sending(command.option("--timeout <span>", "how long to wait", duration(100, 1_800_000), 300_000)),
    run: fanOut,
  });
}

function addReading(add: Add) {
  add<PeerOptions>({
    usage: "get <id>",
    summary: "show a message and how far it got",
    examples: ["kxm peer get msg_0190…"],
    run: async ({ me, args: [id], out }) => {
      const { body } = await me.ask<{ message: Message }>("GET", `/v1/messages/${encodeURIComponent(id!)}`);
      out.result(body, () => showMessage(out, body.message));
    },
  });
  add<PeerOptions & { timeout: number }>({
    usage: "await <id>",
    summary: "wait until a message has its reply, and print it",
    details: "Ends with 1 when the message was cancelled or expired, with 4 when the time is over.",
    examples: ["kxm peer await msg_0190… --timeout 30m"],
    options: (command) => command.option("--timeout <span>", "how long to wait", duration(100, DAY_MS), 300_000),
    run: async ({ me, args: [id], options, out, world }) => {
      const { body } = await me.ask<{ message: Message }>("GET", `/v1/messages/${encodeURIComponent(id!)}`);
      return showEnd(out, await waitFor(me, body.message, options.timeout, world.stopping));
    },
  });
  add<PeerOptions & { follow?: boolean }>({
    usage: "inbox",
    summary: "show the open requests to this terminal",
    details: "Reading acknowledges nothing; `kxm peer reply ID` answers. With --follow the terminal stays online and shows what comes in.",
    examples: ["kxm peer inbox", "kxm peer --as reviewer inbox --follow"],
    options: (command) => command.option("-f, --follow", "go on and show requests and replies as they come, until Ctrl-C"),
    run: async (call) => {
      if (call.options.follow) return follow(call);
      const { body } = await call.me.ask<{ messages: Message[] }>("GET", "/v1/agents/{me}/inbox", { query: { limit: 200 } });
      call.out.result(body, (out) => showInbox(out, body.messages));
    },
  });
}

function addEnding(add: Add) {
  add<PeerOptions>({
    usage: "reply <id> [text...]",
    summary: "answer a request; the one reply it gets",
    details: "Without a text, or with -, the text is read from standard input.",
    examples: ["kxm peer reply msg_0190… 'looks good'", "kxm peer reply msg_0190… - < review.md"],
    run: async ({ me, args: [id, ...words], out, world }) => {
      const content = await readText(words, world);
      const { body } = await me.ask<{ message: Message }>("POST", `/v1/messages/${encodeURIComponent(id!)}/reply`, { body: { content } });
      out.result(body, () => out.line(`replied to ${body.message.fromName}`));
    },
  });
  add<PeerOptions>({
    usage: "cancel <id>",
    summary: "take back a message that was sent from here",
    examples: ["kxm peer cancel msg_0190…"],
    run: async ({ me, args: [id], out }) => {
      const { body } = await me.ask<{ message: Message }>("DELETE", `/v1/messages/${encodeURIComponent(id!)}`);
      out.result(body, () => out.line(`cancelled the message to ${body.message.toName}`));
    },
  });
}

async function meOf({ options, world }: Call<PeerOptions>): Promise<Terminal> {
  return asAgent(world, findTarget(world, options), options.as?.trim() || defaultName(world.env));
}

function requestOf(target: string, content: string, options: SendOptions, key = options.key ?? crypto.randomUUID()) {
  const { ttl, offline, delivery, correlation } = options;
  if (delivery !== undefined && !DELIVERIES.includes(delivery)) throw new UsageError(`--delivery is one of ${DELIVERIES.join(", ")}`);
  return {
    target,
    content,
    ...(delivery !== undefined && { delivery }),
    ...(ttl !== undefined && { ttlMs: ttl }),
    ...(correlation !== undefined && { correlationId: correlation }),
    allowOffline: offline === true,
    idempotencyKey: key,
  };
}

/** What a message is asked for: a requirement of a run's current stage and attempt. @throws UsageError when it is not clear which */
async function contextOf(me: Terminal, options: SendOptions): Promise<{ workflowContext?: object }> {
  if (options.for === undefined) return {};
  const { body } = await me.ask<{ run: WorkflowRun }>("GET", `/v1/workflows/${encodeURIComponent(options.for)}`);
  const stage = body.run.stages.find(({ id }) => id === body.run.currentStage);
  const keys = Object.keys(stage?.evidencePolicies ?? {});
  const key = options.requirement ?? (keys.length === 1 ? keys[0] : undefined);
  if (!stage || keys.length === 0) throw new UsageError(`the current stage of ${body.run.id} needs nothing from peers`);
  if (!key) throw new UsageError(`name one with --requirement: ${keys.join(", ")}`);
  return { workflowContext: { runId: body.run.id, stageId: stage.id, requirementKey: key, attempt: stage.attempts + 1 } };
}

/** The message once it has ended, or as it is when the time is over. */
async function waitFor(me: Terminal, sent: Message, timeoutMs: number, stopping: AbortSignal): Promise<Message> {
  let message = sent;
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const left = Math.ceil(deadline - performance.now());
    if (hasEnded(message) || left <= 0 || stopping.aborted) return message;
    const query = { waitMs: Math.min(left, LONG_POLL_MS) };
    message = (await me.ask<{ message: Message }>("GET", `/v1/messages/${message.id}`, { query })).body.message;
  }
}

async function fanOut({ me, args: [list, ...words], options, out, world }: PeerCall<SendOptions & { timeout: number }>): Promise<number> {
  const targets = [...new Set(list!.split(",").map((target) => target.trim()))].filter((target) => target !== "");
  if (targets.length === 0 || targets.length > FANOUT_MAX) throw new UsageError(`name 1 to ${FANOUT_MAX} agents, separated by commas`);
  const content = await readText(words, world);
  const prefix = options.key ?? crypto.randomUUID();
  const context = await contextOf(me, options);
  const asked = await Promise.all(
    targets.map((target) =>
      me
        .ask<{ message: Message }>("POST", "/v1/messages", {
          body: { ...requestOf(target, content, options, `${prefix}:${target}`.slice(0, 128)), ...context },
        })
        .then(
          ({ body }) => ({ target, message: body.message as Message | undefined, error: undefined as Error | undefined }),
          (error: Error) => ({ target, message: undefined, error }),
        ),
    ),
  );
  if (asked.every(({ error }) => error)) throw asked[0]!.error!;
  const ends = await Promise.all(
    asked.map(async ({ target, message, error }) => ({
      target,
      error,
      message: message && (await waitFor(me, message, options.timeout, world.stopping)),
    })),
  );
  const value = ends.map(({ target, message, error }) => ({
    target,
    ...(message && { message, pending: !hasEnded(message) }),
    ...(error && { error: error.message }),
  }));
  out.result({ replies: value }, () => {
    for (const { target, message, error } of ends) {
      out.line(out.styled("bold", visible(target)));
      if (error) out.line(`  ${out.styled("bad", visible(error.message))}`);
      else if (message!.reply) showText(out, message!.reply.content);
      else out.line(`  ${sentence(message!)}  ${out.styled("dim", message!.id)}`);
    }
  });
  if (ends.some(({ error }) => error)) return EXIT.failed;
  if (ends.some(({ message }) => !hasEnded(message!))) return EXIT.timedOut;
  return ends.every(({ message }) => message!.status === "replied") ? EXIT.ok : EXIT.failed;
}

/** Shows what comes in until Ctrl-C; a lost connection is opened again where it ended. */
async function follow({ me, out, world }: PeerCall<PeerOptions>): Promise<number> {
  let lastId: string | undefined;
  let failures = 0;
  out.note(`${me.name} is online in ${me.project}; Ctrl-C ends it`);
  const beat = setInterval(() => void me.ask("POST", "/v1/agents/{me}/heartbeat").catch(() => {}), HEARTBEAT_MS); // the stream's own trouble is told
  while (!world.stopping.aborted) {
    try {
      const headers: Record<string, string> = lastId === undefined ? {} : { "last-event-id": lastId };
      const response = await me.open("/v1/events?agentId={me}", { headers });
      failures = 0;
      for await (const frame of readFrames(response)) {
        lastId = frame.id ?? lastId;
        showFrame(out, JSON.parse(frame.data));
      }
    } catch (error) {
      if (world.stopping.aborted) break;
      if (++failures === 1) out.note("the connection to the hub was lost; trying again");
      if (failures > 20) {
        clearInterval(beat);
        throw error;
      }
    }
    if (!world.stopping.aborted) await Bun.sleep(Math.min(5_000, 250 * 2 ** failures));
  }
  clearInterval(beat);
  await me.ask("DELETE", "/v1/agents/{me}", { signal: AbortSignal.timeout(1_000) }).catch(() => {}); // the hub would notice by itself
  return EXIT.ok;
}

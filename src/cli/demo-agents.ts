// The cast of `kxm demo`: agents that hand each other work, hold leases and answer, over the same HTTP API as any other agent.
import { registerAgent } from "../client/calls.ts";
import { type Connection, HubRefusal } from "../client/http.ts";
import { type HubClient, hubClient } from "../client/hub-client.ts";
import type { Outgoing } from "../client/messages.ts";
import type { Message } from "../protocol/messages.ts";

/** What the cast plays on. */
export interface Stage {
  to: Connection;
  project: string;
  /** Ends the play. */
  stopping: AbortSignal;
  /** 1 = as people would bear to watch; 0.1 = ten times as fast. */
  pace: number;
  /** Told of what should not happen. */
  trouble(text: string): void;
}

const TASKS = [
  {
    ask: "Cart totals are off by one cent for three items at 3.33. Find out why and fix it.",
    done: "Rounded per line instead of per order. Fixed in cart/total.ts, with a test for 3 × 3.33.",
  },
  {
    ask: "The search page takes four seconds on a cold start. Make it one.",
    done: "The index was read twice. Read once and kept: 0.8 s cold, 0.1 s warm.",
  },
  {
    ask: "Add a retry to the payment webhook, at most five times, with jitter.",
    done: "Added, with full jitter and an idempotency key. The sixth failure raises an alert.",
  },
  { ask: "Users in Lisbon see yesterday's date after midnight.", done: "The report used local time. It is UTC now, shown in the user's zone." },
  { ask: "Move the image resizing out of the request.", done: "Resizing runs in a worker; the page shows the original until it is ready." },
  { ask: "Delete the old checkout flow. Nobody has used it for a month.", done: "Removed 41 files and two tables. The migration can be undone." },
];
const REVIEWS = [
  "Reads well. One question about the null case in line 40, otherwise good to go.",
  "Good. Please name the constant.",
  "I would split this in two, but it is right.",
  "Approved: the test fails without the change.",
];

const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;

/** Plays until `stopping`. */
export async function play(stage: Stage): Promise<void> {
  const parts = [
    planner,
    (on: Stage) => worker(on, "coder", "Writes and fixes code", code),
    (on: Stage) => worker(on, "reviewer", "Reads changes before they are merged", review),
  ];
  const others = [releaser("release-bot"), releaser("nightly"), visitor];
  await Promise.all([...parts, ...others].map((part) => perform(stage, part)));
}

/** One part, taken up again after trouble. */
async function perform(stage: Stage, part: (stage: Stage) => Promise<void>) {
  while (!stage.stopping.aborted) {
    try {
      await part(stage);
    } catch (error) {
      if (stage.stopping.aborted) return;
      stage.trouble((error as Error).message);
      await rest(stage, 2_000, 3_000);
    }
  }
}

async function join(stage: Stage, name: string, purpose: string, model: string): Promise<HubClient> {
  const { to, project, stopping } = stage;
  const { agent, agentKey } = await registerAgent(to, { name, project, purpose, model, host: "demo" }, { signal: stopping });
  return hubClient(to, { id: agent.id, key: agentKey }, { signal: stopping });
}

/** A pause of a random length between two bounds, in milliseconds at pace 1. Ends early when the play does. */
async function rest({ pace, stopping }: Stage, least: number, most: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, pace * (least + Math.random() * (most - least)));
  const end = () => resolve();
  stopping.addEventListener("abort", end, { once: true });
  if (!stopping.aborted) await promise;
  clearTimeout(timer);
  stopping.removeEventListener("abort", end);
}

const send = async (from: HubClient, target: string, content: string, more: Partial<Outgoing> = {}): Promise<Message> =>
  (await from.send({ target, content, allowOffline: true, ...more })).message;

/** The message once it ended, or as it is after a minute. */
const answered = (from: HubClient, { id }: Message): Promise<Message> => from.ended(id, { forMs: 60_000 });

async function planner(stage: Stage) {
  const me = await join(stage, "planner", "Breaks work into tasks and hands them out", "large");
  for (let round = 1; !stage.stopping.aborted; round++) {
    const correlationId = `task-${round}`;
    const task = TASKS[round % TASKS.length]!;
    const result = await answered(me, await send(me, "coder", task.ask, { correlationId }));
    if (result.reply) await answered(me, await send(me, "reviewer", `Please review: ${result.reply.content}`, { correlationId, replyTo: result.id }));
    if (round % 2 === 0) await send(me, "docs", `Write down what changed: ${task.done}`, { correlationId });
    if (round % 3 === 0) await send(me, "docs", "Quick: is the changelog current?", { correlationId, ttlMs: 5_000 });
    if (round % 5 === 0) await me.cancel((await send(me, "reviewer", "Never mind the last one.", { correlationId })).id);
    await rest(stage, 2_000, 6_000);
  }
}

/** Waits at its stream for requests and does them one after another. */
async function worker(stage: Stage, name: string, purpose: string, work: (stage: Stage, me: HubClient, request: Message) => Promise<string>) {
  const me = await join(stage, name, purpose, "large");
  for await (const heard of me.events()) {
    if (heard.event !== "message") continue;
    const { message } = heard;
    await unlessEnded(async () => {
      await me.acknowledge(message.id);
      await rest(stage, 300, 1_500);
      await me.acknowledge(message.id, "turn");
      await me.reply(message.id, await work(stage, me, message));
    });
  }
}

/** The request may have been cancelled or have expired meanwhile. */
async function unlessEnded(work: () => Promise<void>) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof HubRefusal && (error.code === "invalid_message_state" || error.code === "duplicate_reply"))) throw error;
  }
}

async function code(stage: Stage, me: HubClient, request: Message): Promise<string> {
  await holding(stage, me, "branch:main", () => rest(stage, 2_000, 7_000));
  return TASKS.find((task) => task.ask === request.content)?.done ?? "Done.";
}

async function review(stage: Stage, me: HubClient): Promise<string> {
  await holding(stage, me, "review:checkout", () => rest(stage, 1_000, 4_000));
  return pick(REVIEWS);
}

/** Does something under a lease, standing in line for it. */
async function holding(stage: Stage, me: HubClient, name: string, work: () => Promise<void>) {
  try {
    await me.leases.during(name, work, { ttlMs: 30_000, waitMs: 25_000, renewEveryMs: 2_000 * stage.pace });
  } catch (error) {
    if (!(error instanceof HubRefusal && error.code === "lease_held")) throw error; // the line was too long: without it this time
  }
}

/** Two of these want the same lease: there is somebody in line now and then. */
const releaser = (name: string) => async (stage: Stage) => {
  const me = await join(stage, name, "Ships what is ready", "small");
  while (!stage.stopping.aborted) {
    await rest(stage, 3_000, 9_000);
    await holding(stage, me, "deploy:staging", () => rest(stage, 3_000, 8_000));
  }
};

/** Comes now and then, does what waits for it, and goes. */
async function visitor(stage: Stage) {
  while (!stage.stopping.aborted) {
    await rest(stage, 10_000, 20_000);
    if (stage.stopping.aborted) return;
    const me = await join(stage, "docs", "Keeps the documentation true", "small");
    const { messages } = await me.inbox();
    for (const { id } of messages) {
      await unlessEnded(async () => {
        await me.acknowledge(id);
        await rest(stage, 500, 2_000);
        await me.reply(id, "Written, with an example.");
      });
    }
    await me.signOff();
  }
}

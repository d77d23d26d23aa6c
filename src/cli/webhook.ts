// `kxm webhook`: who is told of a project's events, and how the deliveries went.
import type { Command } from "commander";
import { ask } from "../client/http.ts";
import type { ArrivalsAnswer } from "../protocol/webhook-arrivals.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../protocol/webhook-endpoints.ts";
import { ago } from "./ago.ts";
import { type Call, define, group, number } from "./command.ts";
import { oneLine } from "./output.ts";
import { asOperator, CLI_HEADERS, findTarget, type TargetOptions, withTarget } from "./target.ts";

const collect = (value: string, before: string[] = []) => [...before, value];
const one = (id: string, verb = "") => `/v1/webhook-endpoints/${encodeURIComponent(id)}${verb && `/${verb}`}`;
const act = async <T>({ options, world }: Call<TargetOptions>, method: "POST" | "DELETE", path: string, body?: object) =>
  (await ask<T>(asOperator(findTarget(world, options)), method, path, { ...(body && { body }), headers: CLI_HEADERS, signal: world.stopping })).body;

/** Adds `kxm webhook` and its commands. */
export function addWebhook(program: Command): void {
  const webhook = withTarget(group(program, "webhook", "tell other programs of a project's events, signed (Standard Webhooks)"));
  define<TargetOptions & { event?: string[]; allowBodies?: boolean; allowPrivate?: boolean }>(webhook, {
    usage: "add <url>",
    summary: "add a receiver and print its secret, this once",
    examples: ["kxm webhook add https://ci.example.com/kxm --event 'messages.*'", "kxm webhook add http://127.0.0.1:9000/hook --allow-private"],
    options: (command) =>
      command
        .option("--event <pattern>", "topic.type, topic.* or *; repeat for more", collect)
        .option("--allow-bodies", "also send message texts")
        .option("--allow-private", "this exact host and port may be on this machine or network"),
    run: async (call) => {
      const { event = [], allowBodies = false, allowPrivate = false } = call.options;
      const { project } = findTarget(call.world, call.options);
      const answer = await act<{ endpoint: WebhookEndpoint; secret: string }>(call, "POST", "/v1/webhook-endpoints", {
        project,
        url: call.args[0],
        eventTypes: event,
        allowBodies,
        allowPrivate,
      });
      call.out.result(answer, (out) => {
        out.line(answer.secret);
        out.note(`The secret of ${answer.endpoint.id}, shown this once. It signs every delivery.`);
      });
    },
  });
  define<TargetOptions>(webhook, {
    usage: "list",
    summary: "list the receivers of the project",
    examples: ["kxm webhook list"],
    run: async ({ options, out, world }) => {
      const target = findTarget(world, options);
      const { body } = await ask<{ endpoints: WebhookEndpoint[] }>(asOperator(target), "GET", "/v1/webhook-endpoints", {
        query: { project: target.project },
        signal: world.stopping,
      });
      out.result(body, () =>
        out.table(
          body.endpoints,
          [
            { title: "endpoint", value: ({ id }) => id },
            { title: "address", value: ({ url }) => url },
            { title: "events", value: ({ eventTypes }) => eventTypes.join(", ") },
            {
              title: "state",
              value: ({ disabledReason }) => (disabledReason ? `disabled: ${disabledReason}` : "active"),
              style: ({ disabledReason }) => (disabledReason ? "bad" : "good"),
            },
          ],
          "Nobody is told of this project's events: kxm webhook add --help",
        ),
      );
    },
  });
  define<TargetOptions & { limit: number }>(webhook, {
    usage: "log <endpoint>",
    summary: "deliveries to a receiver, newest first",
    examples: ["kxm webhook log whk_0190…"],
    options: (command) => command.option("--limit <number>", "at most so many", number(1, 200), 30),
    run: async ({ args: [id], options, out, world }) => {
      const { body } = await ask<{ deliveries: WebhookDelivery[] }>(asOperator(findTarget(world, options)), "GET", one(id!, "deliveries"), {
        query: { limit: options.limit },
        signal: world.stopping,
      });
      out.result(body, () =>
        out.table(
          body.deliveries,
          [
            { title: "delivery", value: ({ id }) => id },
            { title: "event", value: ({ eventType }) => eventType },
            {
              title: "state",
              value: ({ state }) => state,
              style: ({ state }) => (state === "failed" ? "bad" : state === "delivered" ? "good" : undefined),
            },
            { title: "attempts", value: ({ attempts }) => attempts.length, align: "right" },
            { title: "last answer", value: ({ attempts }) => String(attempts.at(-1)?.status ?? oneLine(attempts.at(-1)?.error ?? "", 60)) },
            { title: "age", value: ({ createdAt }) => ago(createdAt), align: "right" },
          ],
          "Nothing has been delivered yet.",
        ),
      );
    },
  });
  define<TargetOptions & { outcome: string; definition?: string; limit: number }>(webhook, {
    usage: "incoming",
    summary: "signed deliveries that came in, newest first, and what was made of them",
    examples: ["kxm webhook incoming --outcome refused", "kxm webhook incoming --definition release"],
    options: (command) =>
      command
        .option("--outcome <word>", "all, accepted, duplicate, ignored or refused", "all")
        .option("--definition <id>", "only those to this definition")
        .option("--limit <number>", "at most so many", number(1, 200), 30),
    run: async ({ options, out, world }) => {
      const target = findTarget(world, options);
      const { outcome, definition: definitionId, limit } = options;
      const { body } = await ask<ArrivalsAnswer>(asOperator(target), "GET", "/v1/webhook-arrivals", {
        query: { project: target.project, outcome, limit, ...(definitionId !== undefined && { definitionId }) },
        signal: world.stopping,
      });
      out.result(body, () =>
        out.table(
          body.arrivals,
          [
            { title: "definition", value: ({ definitionId }) => definitionId },
            { title: "delivery", value: ({ deliveryId = "", verified }) => `${oneLine(deliveryId, 40)}${verified ? "" : " (claimed)"}` },
            {
              title: "outcome",
              value: ({ outcome, count }) => (count > 1 ? `${outcome} ×${count}` : outcome),
              style: ({ outcome }) => (outcome === "refused" ? "bad" : outcome === "accepted" ? "good" : undefined),
            },
            { title: "why", value: ({ reason = "", runId = "" }) => oneLine(reason || runId, 60) },
            { title: "from", value: ({ sender = "" }) => sender },
            { title: "age", value: ({ at }) => ago(at), align: "right" },
          ],
          "Nothing has come in yet.",
        ),
      );
    },
  });
  define<TargetOptions>(webhook, {
    usage: "rotate <endpoint>",
    summary: "make a new secret; the old one signs on for a day",
    examples: ["kxm webhook rotate whk_0190…"],
    run: async (call) => {
      const answer = await act<{ secret: string }>(call, "POST", one(call.args[0]!, "rotate"));
      call.out.result(answer, (out) => out.line(answer.secret));
    },
  });
  define<TargetOptions & { reason: string }>(webhook, {
    usage: "disable <endpoint>",
    summary: "stop telling a receiver, until it is enabled",
    examples: ["kxm webhook disable whk_0190… --reason 'moves to another host'"],
    options: (command) => command.option("--reason <text>", "shown beside the endpoint and kept in the audit", "disabled by hand"),
    run: async (call) => {
      const answer = await act<object>(call, "POST", one(call.args[0]!, "disable"), { reason: call.options.reason });
      call.out.result(answer, (out) => out.line("disabled"));
    },
  });
  for (const [verb, summary] of [
    ["enable", "start a disabled receiver again, from now on"],
    ["test", "send a test event"],
  ] as const) {
    define<TargetOptions>(webhook, {
      usage: `${verb} <endpoint>`,
      summary,
      examples: [`kxm webhook ${verb} whk_0190…`],
      run: async (call) => {
        const answer = await act<object>(call, "POST", one(call.args[0]!, verb));
        call.out.result(answer, (out) => out.line(verb === "test" ? "queued; see kxm webhook log" : "enabled"));
      },
    });
  }
  define<TargetOptions>(webhook, {
    usage: "remove <endpoint>",
    summary: "remove a receiver with its log",
    examples: ["kxm webhook remove whk_0190…"],
    run: async (call) => {
      await act(call, "DELETE", one(call.args[0]!));
      call.out.result({ removed: call.args[0] }, (out) => out.line(`removed ${oneLine(call.args[0]!)}`));
    },
  });
  define<TargetOptions>(webhook, {
    usage: "replay <delivery>",
    summary: "send a finished delivery again, under the same id",
    examples: ["kxm webhook replay dlv_0190…"],
    run: async (call) => {
      const answer = await act<object>(call, "POST", `/v1/webhook-deliveries/${encodeURIComponent(call.args[0]!)}/replay`);
      call.out.result(answer, (out) => out.line("queued"));
    },
  });
}

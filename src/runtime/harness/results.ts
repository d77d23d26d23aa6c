// How each program's output becomes a turn: one reader per output format, for the versions named in table.ts.
import type { Output } from "./launch.ts";
import { addUsage, failureFor, type Json, jsonLines, jsonObject, noResult, type Turn, UNKNOWN_USAGE, usage } from "./result.ts";

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
const list = (value: unknown): Json[] => (Array.isArray(value) ? value.filter((item) => typeof item === "object" && item !== null) : []);
/** What a program says it used may be anything; an answer is not lost for it. */
const object = (value: unknown): Json => (typeof value === "object" && value !== null ? value : {});
const last = <T>(items: T[]): T | undefined => items[items.length - 1];

const amountOf = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);
/** Where a program counts cached tokens as input, too: each token is counted, and paid, once. */
const without = (all: unknown, cached: unknown) => amountOf(all) && Math.max(0, amountOf(all)! - (amountOf(cached) ?? 0));
/** Where it counts thoughts beside what it said: both are output. */
const plus = (said: unknown, thought: unknown) => (amountOf(said) === undefined ? undefined : amountOf(said)! + (amountOf(thought) ?? 0));

/** Claude Code, Cursor and Qwen Code: lines that end in one `result` object. An API error is `subtype: success` with `is_error: true`. */
export function readClaude(output: Output): Turn {
  const lines = jsonLines(output.stdout);
  const result = last(lines.filter(({ type }) => type === "result")) ?? lastOfArray(output.stdout);
  const init = lines.find(({ type, subtype }) => type === "system" && subtype === "init");
  if (!result) return { failure: noResult(output), usage: UNKNOWN_USAGE, sessionId: text(init?.["session_id"]) };
  const used = result["usage"] ?? {};
  const turn = {
    sessionId: text(result["session_id"]),
    model: text(Object.keys(result["modelUsage"] ?? {})[0]) ?? text(init?.["model"]),
    usage: usage({
      input: used["input_tokens"],
      output: used["output_tokens"],
      cacheRead: used["cache_read_input_tokens"],
      cacheWrite: used["cache_creation_input_tokens"],
      cost: result["total_cost_usd"],
    }),
  };
  const reply = text(result["result"]);
  if (result["subtype"] === "error_max_turns")
    return { ...turn, failure: { class: "max_turns", sentence: "the program used up its turns", retryable: true } };
  if (result["is_error"] === true || reply === undefined)
    return { ...turn, failure: failureFor(reply ?? text(result["error"]?.message) ?? "", statusOf(result["api_error_status"])) };
  return { ...turn, reply };
}

/** Qwen's `json` form is one array of the same objects. */
function lastOfArray(stdout: string): Json | undefined {
  try {
    const parsed = JSON.parse(stdout);
    return Array.isArray(parsed) ? last(list(parsed).filter(({ type }) => type === "result")) : undefined;
  } catch {
    return undefined;
  }
}

const statusOf = (value: unknown): number | undefined => (typeof value === "number" ? value : Number.parseInt(String(value), 10) || undefined);

/** Codex: the last agent message of a completed turn. Its usage adds up over a resumed thread. */
export function readCodex(output: Output): Turn {
  const lines = jsonLines(output.stdout);
  const sessionId = text(lines.find(({ type }) => type === "thread.started")?.["thread_id"]);
  const failed = last(lines.filter(({ type }) => type === "turn.failed"));
  const done = last(lines.filter(({ type }) => type === "turn.completed"));
  const message = last(lines.filter(({ type, item }) => type === "item.completed" && item?.type === "agent_message"));
  const used = done?.["usage"] ?? {};
  const turn = {
    sessionId,
    usage: done
      ? usage({
          input: without(used["input_tokens"], used["cached_input_tokens"]),
          output: used["output_tokens"],
          cacheRead: used["cached_input_tokens"],
        })
      : UNKNOWN_USAGE,
  };
  if (failed) return { ...turn, failure: failureFor(text(failed["error"]?.message) ?? "") };
  const reply = text(message?.["item"]?.text);
  return done && reply !== undefined ? { ...turn, reply } : { ...turn, failure: noResult(output) };
}

/** Gemini: one object with `response` and `stats`, or with `error`. */
export function readGemini(output: Output): Turn {
  const result = jsonObject(output.stdout) ?? jsonObject(output.stderr);
  if (!result) return { failure: noResult(output), usage: UNKNOWN_USAGE };
  const models = Object.entries(object(result["stats"]?.models));
  const turn = {
    sessionId: text(result["session_id"]),
    model: models[0]?.[0],
    usage: addUsage(
      models.map(([, model]) => {
        const { input, prompt, cached, candidates, thoughts } = object(object(model)["tokens"]);
        return usage({ input: input ?? without(prompt, cached), output: plus(candidates, thoughts), cacheRead: cached });
      }),
    ),
  };
  const error = result["error"];
  if (error) return { ...turn, failure: failureFor(text(error.message) ?? "", statusOf(error.code)) };
  const reply = text(result["response"]);
  return reply === undefined ? { ...turn, failure: noResult(output) } : { ...turn, reply };
}

/** OpenCode: no final line; the last text part is the answer, the sum of the finished steps the usage. */
export function readOpenCode(output: Output): Turn {
  const lines = jsonLines(output.stdout);
  const error = last(lines.filter(({ type }) => type === "error"))?.["error"];
  const steps = lines.filter(({ type }) => type === "step_finish").map(({ part }) => object(part));
  const turn = {
    sessionId: text(lines.find(({ sessionID }) => sessionID)?.["sessionID"]),
    usage: steps.length
      ? addUsage(
          steps.map(({ tokens, cost }) => {
            const { input, output: said, cache } = object(tokens);
            return usage({ input, output: said, cacheRead: cache?.read, cacheWrite: cache?.write, cost });
          }),
        )
      : UNKNOWN_USAGE,
  };
  if (error)
    return { ...turn, failure: failureFor(`${text(error.name) ?? ""} ${text(error.data?.message) ?? ""}`, statusOf(error.data?.statusCode)) };
  const reply = text(last(lines.filter(({ type }) => type === "text"))?.["part"]?.text);
  // A last step that ended in a call of a tool is a turn that was cut off, whatever was said before it.
  const complete = (last(steps)?.["reason"] ?? "none") === "stop";
  return reply === undefined || !complete ? { ...turn, failure: noResult(output) } : { ...turn, reply };
}

const contentText = (content: unknown): string | undefined =>
  typeof content === "string"
    ? content
    : list(content)
        .filter(({ type }) => type === "text")
        .map(({ text: part }) => part)
        .join("") || undefined;

/** Pi: the messages of `agent_end`; usage and cost stand in each of the assistant's messages. */
export function readPi(output: Output): Turn {
  const lines = jsonLines(output.stdout);
  const sessionId = text(lines.find(({ type }) => type === "session")?.["id"]);
  const end = last(lines.filter(({ type }) => type === "agent_end"));
  const said = list(end?.["messages"]).filter(({ role }) => role === "assistant");
  const final = last(said);
  if (!final) return { failure: noResult(output), usage: UNKNOWN_USAGE, sessionId };
  const turn = {
    sessionId,
    model: text(final["model"]),
    usage: addUsage(
      said.map((message) => {
        const { input, output: spoken, cacheRead, cacheWrite, cost } = object(message["usage"]);
        return usage({ input, output: spoken, cacheRead, cacheWrite, cost: cost?.total });
      }),
    ),
  };
  if (final["stopReason"] === "error" || final["errorMessage"]) return { ...turn, failure: failureFor(text(final["errorMessage"]) ?? "") };
  const reply = contentText(final["content"]);
  return reply === undefined ? { ...turn, failure: noResult(output) } : { ...turn, reply };
}

/** Copilot: the last assistant message before the `result` line. Tokens stand in a file of their own, which this does not ask for. */
export function readCopilot(output: Output): Turn {
  const lines = jsonLines(output.stdout);
  const result = last(lines.filter(({ type }) => type === "result"));
  const errors = lines.filter(({ type }) => type === "session.error" || type === "error");
  const message = last(lines.filter(({ type, data }) => type === "assistant.message" && contentText(data?.content)));
  const metrics = Object.entries(object(jsonObject(output.usage ?? "")?.["modelMetrics"]));
  const turn = {
    sessionId: text(result?.["sessionId"]),
    model: metrics.length === 1 ? metrics[0]![0] : undefined,
    usage: addUsage(
      metrics.map(([, model]) => {
        const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = object(object(model)["usage"]);
        return usage({ input: inputTokens, output: outputTokens, cacheRead: cacheReadTokens, cacheWrite: cacheWriteTokens });
      }),
    ),
  };
  if (errors.length > 0) return { ...turn, failure: failureFor(text(last(errors)?.["data"]?.message) ?? "") };
  const reply = contentText(message?.["data"]?.content);
  return !result || reply === undefined ? { ...turn, failure: noResult(output) } : { ...turn, reply };
}

/** Any program: what it prints is the answer. It must end with 0: there is no structured output that could say more. */
export function readPlain(output: Output): Turn {
  if (output.stdoutDropped > 0) return { failure: noResult(output), usage: UNKNOWN_USAGE };
  if (output.exitCode === 0) return { reply: output.stdout, usage: UNKNOWN_USAGE };
  const how = output.exitCode === undefined ? "was killed" : `ended with ${output.exitCode}`;
  return { failure: { class: "program_failed", sentence: `the program ${how}`, retryable: true }, usage: UNKNOWN_USAGE };
}

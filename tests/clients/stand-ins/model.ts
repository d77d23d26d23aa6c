// Stand-in for the model providers that coding agents talk to. One process answers four APIs:
//   Anthropic Messages          POST /v1/messages[/count_tokens]
//   OpenAI Responses            POST [/v1]/responses
//   OpenAI Chat Completions     POST [/v1]/chat/completions
//   Gemini generateContent      POST /v1beta/models/{model}:(streamG|g)enerateContent, :countTokens
// plus GET [/v1]/models. Everything else is logged and answered 404.
//
// What it says is a script, a JSON array in $SCRIPT, one step per model turn:
//   {"tool": "kxm_send", "args": {...}}   call the tool whose name ends with this
//   {"text": "done"}                      say this and end the turn
//   {"status": 529, "error": "..."}       answer with an HTTP error
// any step may carry "delayMs". The step is chosen from the request alone: it is the number of
// tool results since the last user message, so a session may be resumed or run many times. A request
// that offers no matching tool (titles, summaries, classifiers) gets the script's last text.
// Where the agent hides MCP tools behind a search tool, the stand-in searches first, as a model would.
import { writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { eventStream, type Json, log, parse, readBody, sendJson, serve } from "./lib.ts";

type Step = { tool?: string; args?: Json; text?: string; status?: number; error?: string; delayMs?: number };
type Tool = { name: string; namespace?: string };
type Say = { text: string } | { tool: Tool; args: Json };
type Api = {
  tools(body: Json): Tool[];
  /** Tool results since the last user message, searches left out. */
  results(body: Json): number;
  /** Searches in the history, for agents that load tools on demand. */
  searches?(body: Json): number;
  answer(body: Json, say: Say, res: ServerResponse): void;
  fail(res: ServerResponse, status: number, message: string): void;
};

const script: Step[] = parse(process.env.SCRIPT ?? "") ?? [
  { tool: "kxm_send", args: { to: "beta", text: "hello from the stand-in" } },
  { text: "STANDIN-DONE" },
];
const lastText = script.findLast((step) => step.text !== undefined)?.text ?? "STANDIN-DONE";
const usage = { in: 111, out: 22 };
let serial = 0;
const id = (prefix: string) => `${prefix}_standin${String(++serial).padStart(4, "0")}`;

/** Calls that only load a hidden tool are no step of the script. */
const isSearch = (name: string) => name === "ToolSearch" || name === "tool_search";

/** Agents decide by this word, not only by the status, whether to try again. */
const errorType = (status: number): string =>
  ({
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
  })[status] ?? "server_error";

// --- Anthropic Messages ----------------------------------------------------------------------

const anthropicSearches = (body: Json): string[] =>
  (body.messages ?? []).flatMap((message: Json) =>
    (Array.isArray(message.content) ? message.content : []).flatMap((block: Json) =>
      block.type === "tool_use" && isSearch(block.name) ? [block.id] : [],
    ),
  );

const anthropic: Api = {
  tools: (body: Json): Tool[] => (body.tools ?? []).map((tool: Json) => ({ name: tool.name })),
  results(body: Json): number {
    const searched = anthropicSearches(body);
    return countResults(body.messages ?? [], (message) => {
      if (message.role !== "user") return "other";
      const blocks = Array.isArray(message.content) ? message.content : [];
      const results = blocks.filter((block: Json) => block.type === "tool_result");
      return results.length ? results.filter((block: Json) => !searched.includes(block.tool_use_id)).length : "user";
    });
  },
  searches: (body: Json): number => anthropicSearches(body).length,
  answer(body: Json, say: Say, res: ServerResponse): void {
    const block: Json =
      "text" in say ? { type: "text", text: say.text } : { type: "tool_use", id: id("toolu"), name: say.tool.name, input: say.args };
    const message: Json = {
      id: id("msg"),
      type: "message",
      role: "assistant",
      model: body.model,
      content: [block],
      stop_reason: "text" in say ? "end_turn" : "tool_use",
      stop_sequence: null,
      usage: { input_tokens: usage.in, output_tokens: usage.out, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 },
    };
    if (!body.stream) {
      sendJson(res, message);
      return;
    }
    const send = eventStream(res);
    const event = (data: Json) => send(data, data.type);
    event({ type: "message_start", message: { ...message, content: [], stop_reason: null, usage: { ...message.usage, output_tokens: 1 } } });
    event({ type: "content_block_start", index: 0, content_block: "text" in say ? { type: "text", text: "" } : { ...block, input: {} } });
    event({
      type: "content_block_delta",
      index: 0,
      delta: "text" in say ? { type: "text_delta", text: say.text } : { type: "input_json_delta", partial_json: JSON.stringify(say.args) },
    });
    event({ type: "content_block_stop", index: 0 });
    event({ type: "message_delta", delta: { stop_reason: message.stop_reason, stop_sequence: null }, usage: { output_tokens: usage.out } });
    event({ type: "message_stop" });
    res.end();
  },
  fail: (res: ServerResponse, status: number, message: string) =>
    sendJson(res, { type: "error", error: { type: errorType(status), message } }, status),
};

// --- OpenAI Responses ------------------------------------------------------------------------

const responses: Api = {
  tools: (body: Json): Tool[] =>
    (body.tools ?? []).flatMap((tool: Json) =>
      tool.type === "namespace"
        ? tool.tools.map((inner: Json) => ({ name: inner.name, namespace: tool.name }))
        : tool.name
          ? [{ name: tool.name }]
          : [],
    ),
  results: (body: Json): number =>
    countResults(Array.isArray(body.input) ? body.input : [], (item) =>
      item.role === "user" ? "user" : /_output$/.test(item.type ?? "") ? 1 : "other",
    ),
  answer(body: Json, say: Say, res: ServerResponse): void {
    const item: Json =
      "text" in say
        ? {
            type: "message",
            id: id("msg"),
            role: "assistant",
            status: "completed",
            content: [{ type: "output_text", text: say.text, annotations: [] }],
          }
        : {
            type: "function_call",
            id: id("fc"),
            call_id: id("call"),
            name: say.tool.name,
            status: "completed",
            ...(say.tool.namespace ? { namespace: say.tool.namespace } : {}),
            arguments: JSON.stringify(say.args),
          };
    const response: Json = {
      id: id("resp"),
      object: "response",
      created_at: Math.floor(Date.now() / 1000),
      model: body.model,
      status: "completed",
      error: null,
      output: [item],
      usage: {
        input_tokens: usage.in,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: usage.out,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: usage.in + usage.out,
      },
    };
    if (!body.stream) {
      sendJson(res, response);
      return;
    }
    const send = eventStream(res);
    let sequence = 0;
    const event = (type: string, data: Json) => send({ type, sequence_number: sequence++, ...data }, type);
    const at = { item_id: item.id, output_index: 0 };
    event("response.created", { response: { ...response, status: "in_progress", output: [], usage: null } });
    event("response.in_progress", { response: { ...response, status: "in_progress", output: [], usage: null } });
    if ("text" in say) {
      const part = item.content[0];
      event("response.output_item.added", { output_index: 0, item: { ...item, status: "in_progress", content: [] } });
      event("response.content_part.added", { ...at, content_index: 0, part: { ...part, text: "" } });
      event("response.output_text.delta", { ...at, content_index: 0, delta: say.text });
      event("response.output_text.done", { ...at, content_index: 0, text: say.text });
      event("response.content_part.done", { ...at, content_index: 0, part });
    } else {
      event("response.output_item.added", { output_index: 0, item: { ...item, status: "in_progress", arguments: "" } });
      event("response.function_call_arguments.delta", { ...at, delta: item.arguments });
      event("response.function_call_arguments.done", { ...at, arguments: item.arguments });
    }
    event("response.output_item.done", { output_index: 0, item });
    event("response.completed", { response });
    res.end();
  },
  fail: (res: ServerResponse, status: number, message: string) => sendJson(res, { error: { message, type: errorType(status), code: null } }, status),
};

// --- OpenAI Chat Completions -----------------------------------------------------------------

const chatSearches = (body: Json): string[] =>
  (body.messages ?? []).flatMap((message: Json) =>
    (message.tool_calls ?? []).flatMap((call: Json) => (isSearch(call.function?.name) ? [call.id] : [])),
  );

const chat: Api = {
  tools: (body: Json): Tool[] => (body.tools ?? []).flatMap((tool: Json) => (tool.function ? [{ name: tool.function.name }] : [])),
  results(body: Json): number {
    const searched = chatSearches(body);
    return countResults(body.messages ?? [], (message) => {
      if (message.role === "user") return "user";
      return message.role === "tool" && !searched.includes(message.tool_call_id) ? 1 : "other";
    });
  },
  searches: (body: Json): number => chatSearches(body).length,
  answer(body: Json, say: Say, res: ServerResponse): void {
    const call = "tool" in say && {
      id: id("call"),
      type: "function",
      function: { name: say.tool.name, arguments: JSON.stringify(say.args) },
    };
    const finish = call ? "tool_calls" : "stop";
    const total = { prompt_tokens: usage.in, completion_tokens: usage.out, total_tokens: usage.in + usage.out };
    const base = { id: id("chatcmpl"), created: Math.floor(Date.now() / 1000), model: body.model };
    if (!body.stream) {
      const message = { role: "assistant", content: "text" in say ? say.text : null, ...(call ? { tool_calls: [call] } : {}) };
      sendJson(res, { ...base, object: "chat.completion", choices: [{ index: 0, message, finish_reason: finish }], usage: total });
      return;
    }
    const send = eventStream(res);
    const chunk = (delta: Json, finish_reason: string | null = null) =>
      send({ ...base, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] });
    chunk({ role: "assistant", content: "" });
    chunk("text" in say ? { content: say.text } : { tool_calls: [{ index: 0, ...call }] });
    chunk({}, finish);
    send({ ...base, object: "chat.completion.chunk", choices: [], usage: total });
    send("[DONE]");
    res.end();
  },
  fail: responses.fail,
};

// --- Gemini ----------------------------------------------------------------------------------

/** The least value that fits a JSON schema: classifiers ask for one and retry for minutes without it. */
function fill(schema: Json): Json {
  if (schema?.enum) return schema.enum[0];
  const type = String(schema?.type ?? "string").toLowerCase();
  if (type === "object") return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([key, value]) => [key, fill(value)]));
  if (type === "array") return [];
  if (type === "boolean") return false;
  return type === "number" || type === "integer" ? 1 : "stand-in";
}

const gemini: Api = {
  tools: (body: Json): Tool[] => (body.tools ?? []).flatMap((tool: Json) => (tool.functionDeclarations ?? []).map((fn: Json) => ({ name: fn.name }))),
  results: (body: Json): number =>
    countResults(body.contents ?? [], (content) => {
      if (content.role === "model") return "other";
      return (content.parts ?? []).filter((part: Json) => part.functionResponse).length || "user";
    }),
  answer(body: Json, say: Say, res: ServerResponse): void {
    const { responseMimeType, responseJsonSchema, responseSchema } = body.generationConfig ?? {};
    if (responseMimeType === "application/json") say = { text: JSON.stringify(fill(responseJsonSchema ?? responseSchema)) };
    const part = "text" in say ? { text: say.text } : { functionCall: { name: say.tool.name, args: say.args, id: id("fn") } };
    const reply = {
      candidates: [{ index: 0, content: { role: "model", parts: [part] }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: usage.in, candidatesTokenCount: usage.out, totalTokenCount: usage.in + usage.out },
      modelVersion: body.model,
      responseId: id("resp"),
    };
    if (!body.stream) {
      sendJson(res, reply);
      return;
    }
    eventStream(res)(reply);
    res.end();
  },
  fail: (res: ServerResponse, status: number, message: string) =>
    sendJson(res, { error: { code: status, message, status: status < 500 ? "INVALID_ARGUMENT" : "UNAVAILABLE" } }, status),
};

// --- the script ------------------------------------------------------------------------------

/** Tool results since the last user message; `kind` says what one history entry is. */
function countResults(history: Json[], kind: (entry: Json) => number | "user" | "other"): number {
  let results = 0;
  for (const entry of history) {
    const value = kind(entry);
    if (value === "user") results = 0;
    else if (value !== "other") results += value;
  }
  return results;
}

/** The call that carries out a tool step: the tool itself, or the agent's own way to a tool it holds back. */
function reach(step: Step, offered: Tool[], body: Json, searched: number): Say | undefined {
  if (step.tool === undefined) return undefined;
  const args = step.args ?? {};
  const tool = offered.find((each) => each.name.endsWith(step.tool!));
  if (tool) return { tool, args };
  const has = (name: string) => offered.some((each) => each.name === name);
  const full = new RegExp(`mcp__\\w*${step.tool}\\b`).exec(JSON.stringify(body.messages ?? body.input ?? ""))?.[0];
  const search = ["ToolSearch", "tool_search"].find(has);
  if (has("tool_call") && full)
    // Qwen Code >= 0.24: call by name
    return { tool: { name: "tool_call" }, args: { name: full, arguments: args } };
  if (has("codemode")) {
    // Pi: call from a script
    const code = `const [found] = await searchTools(${JSON.stringify(step.tool)}); return await tools[found.name](${JSON.stringify(args)});`;
    return { tool: { name: "codemode" }, args: { code } };
  }
  if (search && full && searched < 3)
    // Claude Code, older Qwen Code: load the schema, then call it
    return { tool: { name: search }, args: { query: `select:${full}`, max_results: 5 } };
  return undefined;
}

async function answer(api: Api, name: string, body: Json, res: ServerResponse): Promise<void> {
  const offered = api.tools(body);
  const results = api.results(body);
  const step: Step = script[Math.min(results, script.length - 1)] ?? { text: lastText };
  const say: Say = reach(step, offered, body, api.searches?.(body) ?? 0) ?? { text: step.text ?? lastText };
  log({
    kind: "model",
    api: name,
    model: body.model,
    stream: !!body.stream,
    results,
    tools: offered.length,
    offered: offered.filter((each) => /kxm/.test(each.name + (each.namespace ?? ""))),
    said: step.status ?? say,
  });
  if (process.env.BODIES) writeFileSync(`${process.env.BODIES}/${String(++serial).padStart(4, "0")}-${name}.json`, JSON.stringify(body, null, 1));
  if (step.delayMs) await sleep(step.delayMs);
  // An error step counts only where the script would have been followed.
  if (step.status && offered.length > 0) {
    api.fail(res, step.status, step.error ?? "stand-in error");
    return;
  }
  api.answer(body, say, res);
}

serve(async (req, res, url) => {
  const text = await readBody(req);
  const path = url.pathname.replace(/\/+/g, "/");
  log({ kind: "http", method: req.method, path: req.url, headers: req.headers, bytes: text.length });
  const body = parse(text) ?? {};
  const post = req.method === "POST";
  if (post && path.endsWith("/messages/count_tokens")) {
    sendJson(res, { input_tokens: usage.in });
    return;
  }
  if (post && path.endsWith("/messages")) return answer(anthropic, "anthropic", body, res);
  if (post && path.endsWith("/responses")) return answer(responses, "responses", body, res);
  if (post && path.endsWith("/chat/completions")) return answer(chat, "chat", body, res);
  const google = /\/models\/([^/:]+):(\w+)$/.exec(path);
  if (post && google) {
    if (google[2] === "countTokens") {
      sendJson(res, { totalTokens: usage.in });
      return;
    }
    return answer(gemini, "gemini", { ...body, model: google[1], stream: google[2] === "streamGenerateContent" }, res);
  }
  if (req.method === "GET" && path.endsWith("/models")) {
    const data = [
      {
        id: "standin",
        object: "model",
        type: "model",
        display_name: "Stand-in",
        created: 0,
        created_at: "2026-01-01T00:00:00Z",
        owned_by: "standin",
      },
    ];
    return sendJson(res, { object: "list", data, models: [], has_more: false });
  }
  if (req.method === "HEAD" && path === "/") return void res.writeHead(200).end();
  log({ kind: "unknown", method: req.method, path: req.url, body: text.slice(0, 2000) });
  sendJson(res, { error: { message: `stand-in: no ${req.method} ${path}`, type: "not_found" } }, 404);
});

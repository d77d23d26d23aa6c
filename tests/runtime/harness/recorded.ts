// What each agent program prints in one good turn, shortened, and what it must mean: recorded from the real program in the version its row names, for
// cursor-agent written after its documentation.
import type { Turn } from "../../../src/runtime/harness/result.ts";
import type { HARNESS_TABLE } from "../../../src/runtime/harness/table.ts";

export const REPLY = 'ok\n\n{"outcome":"passed","summary":"s"}';
export const json = (...objects: object[]) => objects.map((one) => JSON.stringify(one)).join("\n");

export const CLAUDE_INIT = { type: "system", subtype: "init", session_id: "s-1", model: "claude-sonnet-4-5", mcp_servers: [] };
export const PI_END = (message: object) => ({
  type: "agent_end",
  messages: [
    { role: "user", content: "x" },
    { role: "assistant", model: "standin", ...message },
  ],
});

export const GOOD: [keyof typeof HARNESS_TABLE, string, Partial<Turn>][] = [
  [
    "claude",
    json(
      CLAUDE_INIT,
      { type: "assistant" },
      {
        type: "result",
        subtype: "success",
        is_error: false,
        result: REPLY,
        session_id: "s-1",
        total_cost_usd: 0.000663,
        usage: { input_tokens: 111, output_tokens: 22, cache_read_input_tokens: 5 },
        modelUsage: { "claude-sonnet-4-5": {} },
      },
    ),
    {
      sessionId: "s-1",
      model: "claude-sonnet-4-5",
      usage: { inputTokens: 111, outputTokens: 22, cacheReadTokens: 5, cost: 0.000663, currency: "USD", costKind: "reported" },
    },
  ],
  [
    "codex",
    json(
      { type: "thread.started", thread_id: "t-1" },
      { type: "item.completed", item: { type: "error", message: "Model metadata not found." } },
      { type: "turn.started" },
      { type: "item.completed", item: { type: "agent_message", text: REPLY } },
      { type: "turn.completed", usage: { input_tokens: 111, cached_input_tokens: 0, output_tokens: 22 } },
    ),
    { sessionId: "t-1", usage: { inputTokens: 111, outputTokens: 22, cacheReadTokens: 0, costKind: "unknown" } },
  ],
  [
    "gemini",
    `Loaded cached credentials.\n${JSON.stringify({ session_id: "g-1", response: REPLY, stats: { models: { "gemini-2.5-flash": { tokens: { input: 111, candidates: 22, cached: 0 } } } } }, null, 2)}\n`,
    { sessionId: "g-1", model: "gemini-2.5-flash", usage: { inputTokens: 111, outputTokens: 22, cacheReadTokens: 0, costKind: "unknown" } },
  ],
  [
    "opencode",
    json(
      { type: "step_start", sessionID: "o-1" },
      { type: "text", sessionID: "o-1", part: { text: "thinking" } },
      { type: "step_finish", part: { reason: "tool-calls", tokens: { input: 100, output: 20, cache: { read: 0, write: 0 } }, cost: 0 } },
      { type: "text", part: { text: REPLY } },
      { type: "step_finish", part: { reason: "stop", tokens: { input: 11, output: 2 }, cost: 0 } },
    ),
    { sessionId: "o-1", usage: { inputTokens: 111, outputTokens: 22, cacheReadTokens: 0, cacheWriteTokens: 0, costKind: "unknown" } },
  ],
  [
    "pi",
    json(
      { type: "session", id: "p-1" },
      { type: "agent_start" },
      PI_END({
        content: [
          { type: "thinking", thinking: "hm" },
          { type: "text", text: REPLY },
        ],
        stopReason: "stop",
        usage: { input: 111, output: 22, cacheRead: 0, cacheWrite: 0, cost: { total: 0.01 } },
      }),
      { type: "agent_settled" },
    ),
    {
      sessionId: "p-1",
      model: "standin",
      usage: { inputTokens: 111, outputTokens: 22, cacheReadTokens: 0, cacheWriteTokens: 0, cost: 0.01, currency: "USD", costKind: "reported" },
    },
  ],
  [
    "copilot",
    json(
      { type: "session.mcp_servers_loaded", data: { servers: [] } },
      { type: "assistant.message", data: { content: "" } },
      { type: "assistant.message", data: { content: REPLY } },
      { type: "result", sessionId: "c-1", exitCode: 0 },
    ),
    { sessionId: "c-1", usage: { costKind: "unknown" } },
  ],
  [
    "qwen",
    json(
      { type: "system", subtype: "init", session_id: "q-1", model: "standin" },
      {
        type: "result",
        subtype: "success",
        is_error: false,
        result: REPLY,
        session_id: "q-1",
        usage: { input_tokens: 222, output_tokens: 44, cache_read_input_tokens: 0 },
      },
    ),
    { sessionId: "q-1", model: "standin", usage: { inputTokens: 222, outputTokens: 44, cacheReadTokens: 0, costKind: "unknown" } },
  ],
  // As Cursor's documentation shows it: the program is not in the package registry, so no turn of it was recorded here.
  [
    "cursor-agent",
    json(
      { type: "system", subtype: "init", apiKeySource: "login", cwd: "/work", session_id: "u-1", model: "Auto", permissionMode: "default" },
      { type: "user", message: { role: "user", content: [{ type: "text", text: "x" }] }, session_id: "u-1" },
      { type: "assistant", message: { role: "assistant", content: [{ type: "text", text: "I look first." }] }, session_id: "u-1" },
      { type: "tool_call", subtype: "started", call_id: "t-1", tool_call: { readToolCall: { args: { path: "a.ts" } } }, session_id: "u-1" },
      { type: "tool_call", subtype: "completed", call_id: "t-1", tool_call: { readToolCall: { result: { success: {} } } }, session_id: "u-1" },
      { type: "assistant", message: { role: "assistant", content: [{ type: "text", text: REPLY }] }, session_id: "u-1" },
      { type: "result", subtype: "success", duration_ms: 5234, duration_api_ms: 5234, is_error: false, result: REPLY, session_id: "u-1" },
    ),
    { sessionId: "u-1", model: "Auto", usage: { costKind: "unknown" } },
  ],
];

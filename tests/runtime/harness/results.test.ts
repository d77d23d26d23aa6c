// What the real programs print, and what it must mean: good turns as they were recorded, failures, and whatever a program may never print.
import { expect, test } from "bun:test";
import { type Output, USAGE_FILE } from "../../../src/runtime/harness/launch.ts";
import { priced } from "../../../src/runtime/harness/prices.ts";
import type { Turn } from "../../../src/runtime/harness/result.ts";
import { commandLine, HARNESS_TABLE, type Start } from "../../../src/runtime/harness/table.ts";
import { CLAUDE_INIT, GOOD, json, PI_END, REPLY } from "./recorded.ts";

const read = (harness: keyof typeof HARNESS_TABLE, stdout: string, more: Partial<Output> = {}): Turn =>
  HARNESS_TABLE[harness].read({ stdout, stderr: "", stdoutDropped: 0, stderrDropped: 0, exitCode: 0, ...more });

for (const [harness, stdout, expected] of GOOD) {
  test(`${harness}: a turn that went well`, () => {
    const turn = JSON.parse(JSON.stringify(read(harness, stdout)));
    expect(turn).toMatchObject(JSON.parse(JSON.stringify({ reply: REPLY, ...expected })));
    expect(turn.failure).toBeUndefined();
  });
  test(`${harness}: an output that was cut off anywhere is no success`, () => {
    for (let length = 0; length < stdout.length - 2; length += 7) {
      const turn = read(harness, stdout.slice(0, length), { exitCode: 0 });
      expect(turn.reply === undefined || turn.reply === REPLY, `cut at ${length}`).toBe(true);
      if (turn.reply === undefined) expect(turn.failure).toBeDefined();
    }
    expect(read(harness, "").failure!.class).toBe("no_result");
    expect(read(harness, "", { stdoutDropped: 5 }).failure!.class).toBe("output_too_large");
  });
}

const BAD: [keyof typeof HARNESS_TABLE, string, string, Partial<Output>?][] = [
  [
    "claude",
    json(CLAUDE_INIT, { type: "result", subtype: "success", is_error: true, result: "API Error: 401 bad key", api_error_status: 401 }),
    "not_signed_in",
  ],
  ["claude", json({ type: "result", subtype: "success", is_error: true, result: "Not logged in · Please run /login" }), "not_signed_in"],
  ["claude", json({ type: "result", subtype: "error_max_turns", is_error: true }), "max_turns"],
  ["claude", json({ type: "result", subtype: "success", is_error: true, result: "Overloaded", api_error_status: 529 }), "provider_unavailable"],
  ["claude", json({ type: "result", subtype: "success", is_error: true, result: "You've hit your usage limit" }), "quota_exhausted"],
  ["codex", json({ type: "turn.failed", error: { message: "unexpected status 401 Unauthorized: bad key" } }), "not_signed_in"],
  ["codex", json({ type: "turn.failed", error: { message: "stream error: 429 Too Many Requests" } }), "rate_limited"],
  ["codex", json({ type: "item.completed", item: { type: "agent_message", text: REPLY } }), "no_result"],
  [
    "gemini",
    "",
    "not_signed_in",
    { stderr: 'Error when talking to Gemini API _ApiError: {"error":{"code":401,"message":"bad key"}}', exitCode: 145 },
  ],
  ["gemini", JSON.stringify({ error: { message: "no such model", code: 400 } }), "provider_error"],
  ["opencode", json({ type: "error", error: { name: "APIError", data: { message: "bad key", statusCode: 401 } } }), "not_signed_in"],
  ["opencode", json({ type: "text", part: { text: REPLY } }), "no_result"],
  ["pi", json(PI_END({ content: [], stopReason: "error", errorMessage: "500 server_error" })), "provider_unavailable"],
  ["copilot", json({ type: "session.error", data: { message: "401 bad key" } }, { type: "result", exitCode: 1 }), "not_signed_in"],
  ["copilot", json({ type: "assistant.message", data: { content: REPLY } }), "no_result"],
  [
    "qwen",
    json({ type: "result", subtype: "error_during_execution", is_error: true, error: { message: "[API Error: 401 bad key]" } }),
    "not_signed_in",
  ],
  [
    "cursor-agent",
    "",
    "not_signed_in",
    { stderr: "Error: Authentication required. Please run 'agent login' first, or set CURSOR_API_KEY.", exitCode: 1 },
  ],
  ["cursor-agent", json({ type: "assistant", message: { content: [{ type: "text", text: REPLY }] } }), "no_result"],
  ["command", REPLY, "program_failed", { exitCode: 3 }],
];
for (const [harness, stdout, expected, more] of BAD)
  test(`${harness}: ${expected} is a failure: ${stdout.slice(-60)}`, () => {
    const turn = read(harness, stdout, more);
    expect(turn.failure?.class).toBe(expected);
    expect(turn.reply).toBeUndefined();
  });

test("hostile output breaks no reader", () => {
  const hostile = [
    "null",
    "[]",
    "{}",
    '{"type":"result"}',
    '{"type":"result","usage":null,"modelUsage":null,"is_error":"x"}',
    json({ type: "agent_end", messages: "x" }),
    json({ type: "agent_end", messages: [null, 1] }),
    json({ type: "turn.completed", usage: [] }),
    json({ type: "step_finish", part: null }),
    json({ type: "assistant.message", data: null }),
    "{".repeat(100_000),
    '{"__proto__":{"type":"result"}}',
  ];
  for (const harness of Object.keys(HARNESS_TABLE) as (keyof typeof HARNESS_TABLE)[])
    for (const stdout of hostile)
      if (harness !== "command" && harness !== "echo") expect(read(harness, stdout).failure, `${harness} ${stdout.slice(0, 40)}`).toBeDefined();
});

const start = (more: Partial<Start> = {}): Start => ({
  access: "read",
  sessionId: "11111111-2222-4333-8444-555555555555",
  folder: "/attempt",
  ...more,
});
test("a reader gets no flag that lets it write, a writer is not asked, and the prompt is no argument", () => {
  const freeing = /^(acceptEdits|yolo|--force|--allow-all-tools|sandbox_mode="workspace-write"|--dangerously.*|bypassPermissions)$/;
  for (const row of Object.values(HARNESS_TABLE)) {
    if (!row.program) continue;
    const line = (one: Start) => commandLine(row, one, "THE PROMPT", (program) => `/bin/${program}`)!;
    expect(
      line(start()).filter((word) => freeing.test(word)),
      row.id,
    ).toEqual([]);
    if (row.id !== "opencode" && row.id !== "pi")
      expect(
        line(start({ access: "write" })).some((word) => freeing.test(word)),
        row.id,
      ).toBe(true);
    expect(line(start()), row.id).not.toContain("THE PROMPT");
    expect(line(start({ resume: true })).join(" "), row.id).toContain("11111111-2222-4333-8444-555555555555");
    expect(commandLine(row, start(), "x", () => undefined)).toBeUndefined();
    // Going on in a session gives nobody another right, and every file that is named is there.
    const rights = (words: string[]) => words.filter((word) => freeing.test(word) || /read-only/.test(word));
    for (const access of ["read", "write"] as const)
      expect(rights(line(start({ access, resume: true }))), row.id).toEqual(rights(line(start({ access }))));
    const named = line(start()).filter((word) => word.startsWith("/attempt/") && word !== `/attempt/${USAGE_FILE}`);
    expect(named).toEqual(Object.keys(row.files?.(start()) ?? {}).map((name) => `/attempt/${name}`));
  }
});

test("a cost is estimated only from list prices and known tokens, and never over a reported one", () => {
  const prices = {
    schema: "kxm.prices.v1" as const,
    currency: "EUR",
    models: { "gpt-5*": { input: 1, output: 10 }, "gpt-5.1": { input: 2, output: 20 } },
  };
  const used = { inputTokens: 1_000_000, outputTokens: 500_000, costKind: "unknown" as const };
  expect(priced(used, "gpt-5.1", prices)).toMatchObject({ cost: 12, currency: "EUR", costKind: "estimated" });
  expect(priced(used, "gpt-5.2-mini", prices)).toMatchObject({ cost: 6, costKind: "estimated" });
  expect(priced(used, "other", prices)).toEqual(used);
  expect(priced(used, undefined, prices)).toEqual(used);
  expect(priced({ inputTokens: 5, costKind: "unknown" }, "gpt-5.1", prices).cost).toBeUndefined();
  expect(priced({ ...used, cacheReadTokens: 9 }, "gpt-5.1", prices).cost).toBeUndefined();
  expect(priced({ ...used, cost: 3, currency: "USD", costKind: "reported" }, "gpt-5.1", prices).cost).toBe(3);
});

test("each token is counted once: what came from the cache is no input, what was thought is output", () => {
  const codex = json(
    { type: "item.completed", item: { type: "agent_message", text: REPLY } },
    { type: "turn.completed", usage: { input_tokens: 1000, cached_input_tokens: 900, output_tokens: 50, reasoning_output_tokens: 20 } },
  );
  expect(read("codex", codex).usage).toMatchObject({ inputTokens: 100, cacheReadTokens: 900, outputTokens: 50 });
  const gemini = (tokens: object) => JSON.stringify({ session_id: "g", response: REPLY, stats: { models: { "gemini-3": { tokens } } } });
  const counted = { inputTokens: 100, cacheReadTokens: 900, outputTokens: 70 };
  expect(read("gemini", gemini({ prompt: 1000, cached: 900, candidates: 50, thoughts: 20 })).usage).toMatchObject(counted);
  expect(read("gemini", gemini({ input: 100, prompt: 1000, cached: 900, candidates: 50, thoughts: 20 })).usage).toMatchObject(counted);
  const prices = { schema: "kxm.prices.v1" as const, currency: "USD", models: { m: { input: 10, output: 10, cacheRead: 1 } } };
  expect(priced(read("codex", codex).usage, "m", prices).cost).toBeCloseTo((100 * 10 + 900 + 50 * 10) / 1_000_000, 12);
});

test("copilot tells its tokens in a file of their own, and whatever stands there harms nothing", () => {
  const stdout = json({ type: "assistant.message", data: { content: REPLY } }, { type: "result", sessionId: "c-1", exitCode: 0 });
  const metrics = { standin: { requests: { count: 1 }, usage: { inputTokens: 111, outputTokens: 22, cacheReadTokens: 0, cacheWriteTokens: 0 } } };
  const turn = read("copilot", stdout, { usage: JSON.stringify({ modelMetrics: metrics }, null, 2) });
  expect(turn).toMatchObject({ reply: REPLY, model: "standin", usage: { inputTokens: 111, outputTokens: 22, costKind: "unknown" } });
  for (const hostile of ["", "{", "[]", '{"modelMetrics":5}', '{"modelMetrics":{"x":7,"y":{"usage":"z"}}}', '{"modelMetrics":null}'])
    expect(read("copilot", stdout, { usage: hostile })).toMatchObject({ reply: REPLY, usage: { costKind: "unknown" } });
});

/** The value with one of its members, at any depth, in the place of which stands something else: one for each member. */
function* altered(value: unknown, other: unknown): Generator<unknown> {
  if (typeof value !== "object" || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    const put = (what: unknown) => (Array.isArray(value) ? value.with(Number(key), what) : { ...value, [key]: what });
    yield put(other);
    for (const inner of altered(member, other)) yield put(inner);
  }
}

const COPILOT_USAGE = { modelMetrics: { standin: { usage: { inputTokens: 111, outputTokens: 22 } } } };
test.each([...GOOD, ["copilot file", JSON.stringify(COPILOT_USAGE), {}] as const])(
  "%s: whatever stands in the place of one member, the output is read; and an answer that stands there is not lost with its usage",
  (harness, stdout) => {
    const file = harness === "copilot file";
    const good = GOOD.find(([one]) => one === "copilot")![1];
    const lines = stdout.includes("\n{\n") || stdout.startsWith("Loaded") ? [stdout.slice(stdout.indexOf("{"))] : stdout.split("\n");
    let tried = 0;
    for (const other of [null, 5, -1, 1e308, "", "x", [], [null], {}, true])
      for (const [at, line] of lines.entries())
        for (const one of altered(JSON.parse(line), other)) {
          const text = lines.with(at, JSON.stringify(one)).join("\n");
          const turn = file ? read("copilot", good, { usage: text }) : read(harness as "claude", text);
          expect(turn.reply !== undefined || turn.failure !== undefined, text).toBe(true);
          if (file) expect(turn.reply, text).toBe(REPLY);
          for (const count of Object.values(turn.usage)) expect(typeof count === "number" ? count >= 0 : true, text).toBe(true);
          tried++;
        }
    expect(tried).toBeGreaterThan(10);
  },
);

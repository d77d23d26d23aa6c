// A tool as plain data: name, what it is for, fields, what it does to the world, and one call into the rules.
// The catalogue (catalogue.ts) makes tools/list, the docs and the drift test; fields are read like any request body of the API.
import type { Static, TObject } from "@sinclair/typebox";
import type { AgentRow } from "../db/schema.ts";
import type { Hub } from "../hub/hub.ts";

/** One call of a tool by an agent. */
export interface ToolCall<I> {
  hub: Hub;
  agent: AgentRow;
  input: I;
  /** Ends a wait: the client left, or the hub stops. */
  signal: AbortSignal;
}
/** What a tool answers: a short structured result, and one sentence that says what to do next. */
export type ToolResult = { result: unknown; next: string };

export interface Tool<I extends TObject = any> {
  /** `kxm_…`; other names only in lists of aliases. */
  name: string;
  title: string;
  /** For the model: what it does and when to use it. Short: every client pays for it in every turn. */
  description: string;
  input: I;
  /** read = changes nothing; write = may be repeated safely with the same fields; destroy = takes something away. */
  effect: "read" | "write" | "destroy";
  /** Whether calling it twice with the same fields is the same as once. */
  idempotent: boolean;
  run(call: ToolCall<Static<I>>): Promise<ToolResult>;
}

/** Types a tool; returns it unchanged. */
export const tool = <I extends TObject>(spec: Tool<I>): Tool => spec as Tool;

/** MCP's hints about a tool: clients may run read-only ones without asking. */
export const annotationsOf = ({ title, effect, idempotent }: Tool) => ({
  title,
  readOnlyHint: effect === "read",
  destructiveHint: effect === "destroy",
  idempotentHint: idempotent,
  openWorldHint: false,
});

// A receipt: what a deliver command prints to say what it changed outside, one JSON object on a line of its own. The engine records it with the effect.
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

export const Receipt = Type.Object({
  schema: Type.Literal("kxm.receipt.v1"),
  provider: Type.String({ pattern: "^[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*$", maxLength: 64 }),
  kind: Type.String({ pattern: "^[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*$", maxLength: 64 }),
  id: Type.String({ minLength: 1, maxLength: 512 }),
  hash: Type.Optional(Type.String({ pattern: "^sha256:[0-9a-f]{64}$" })),
  observedAt: Type.Optional(Type.String({ pattern: "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(?:\\.\\d{1,9})?Z$" })),
});
export type Receipt = Static<typeof Receipt>;

/** Receipts of one command that are recorded. */
export const RECEIPTS_MAX = 64;

/** The receipts among the lines of an output. Anything else is no receipt and no error. */
export function receiptsIn(output: string): Receipt[] {
  const found: Receipt[] = [];
  for (const line of output.split("\n")) {
    if (!line.includes('"kxm.receipt.v1"') || found.length === RECEIPTS_MAX) continue;
    try {
      const value = JSON.parse(line);
      if (Value.Check(Receipt, value)) found.push(value);
    } catch {
      // A line that only looks like one.
    }
  }
  return found;
}

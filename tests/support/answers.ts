// Holds an answer against the schema that documents it, closed: a member that the schema does not name is a leak.
import type { TSchema } from "@sinclair/typebox";
import { TypeGuard } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

/** @throws when the value does not fit the schema, or has members that it does not name */
export function answersLike(schema: TSchema, value: unknown): void {
  const first = Value.Errors(schema, value).First();
  if (first) throw new Error(`the answer does not match its schema at ${first.path || "/"}: ${first.message}`);
  const extra = unnamed(schema, value, "");
  if (extra !== undefined) throw new Error(`the answer has a member that its schema does not name: ${extra}`);
}

function unnamed(schema: TSchema, value: unknown, path: string): string | undefined {
  if (TypeGuard.IsArray(schema) && Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const found = unnamed(schema.items, item, `${path}/${index}`);
      if (found) return found;
    }
  }
  if (!TypeGuard.IsObject(schema) || typeof value !== "object" || value === null) return;
  const named = Object.keys(schema.properties);
  if (named.length === 0) return; // open by intent
  for (const [name, member] of Object.entries(value)) {
    if (!named.includes(name)) return `${path}/${name}`;
    const found = unnamed(schema.properties[name]!, member, `${path}/${name}`);
    if (found) return found;
  }
}

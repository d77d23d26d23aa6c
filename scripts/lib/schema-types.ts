// TypeScript for what a TypeBox schema describes, with its descriptions as comments: so that a package can be typed from the protocol without
// bringing the schema library along.
import { Kind, OptionalKind, type TSchema } from "@sinclair/typebox";

/** The type of a schema. @throws Error for a kind of schema that the protocol does not use in its answers */
export function typeOf(schema: TSchema, indent = ""): string {
  if (schema["enum"]) return union(schema["enum"] as unknown[]);
  if (schema["const"] !== undefined) return JSON.stringify(schema["const"]);
  if (schema["anyOf"]) return [...new Set((schema["anyOf"] as TSchema[]).map((one) => typeOf(one, indent)))].join(" | ");
  switch (schema["type"]) {
    case "string":
    case "boolean":
    case "null":
      return schema["type"];
    case "integer":
    case "number":
      return "number";
    case "array":
      return `Array<${typeOf(schema["items"] as TSchema, indent)}>`;
    case "object":
      return objectOf(schema, indent);
    default:
      if (schema[Kind] === "Unknown" || schema[Kind] === "Any") return "unknown";
      throw new Error(`no type is known for a schema of kind ${String(schema[Kind])}`);
  }
}

const union = (words: unknown[]) => words.map((word) => JSON.stringify(word)).join(" | ");

function objectOf(schema: TSchema, indent: string): string {
  const patterns = Object.values((schema["patternProperties"] as Record<string, TSchema>) ?? {});
  if (patterns.length > 0) return `Record<string, ${patterns.map((one) => typeOf(one, indent)).join(" | ")}>`;
  const members = Object.entries((schema["properties"] as Record<string, TSchema>) ?? {});
  const others = schema["additionalProperties"] as TSchema | undefined;
  if (members.length === 0) return `Record<string, ${others ? typeOf(others, indent) : "unknown"}>`;
  const inner = `${indent}  `;
  const rows = members.map(([name, member]) => {
    const comment = member["description"] ? `${inner}/** ${String(member["description"]).replaceAll("*/", "* /")} */\n` : "";
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
    return `${comment}${inner}${key}${member[OptionalKind] === "Optional" ? "?" : ""}: ${typeOf(member, inner)};`;
  });
  return `{\n${rows.join("\n")}\n${indent}}`;
}

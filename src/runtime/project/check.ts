// Holds a read file against its schema and says each difference as a problem with a place, in words for the person who edits the file.
import { Kind, type Static, type TSchema } from "@sinclair/typebox";
import { type ValueError, ValueErrorType } from "@sinclair/typebox/errors";
import { Value } from "@sinclair/typebox/value";
import { nearest } from "../../protocol/nearest.ts";
import type { Problem } from "./problems.ts";
import type { Located } from "./yaml.ts";

/** Findings of one file that are worth reading; the rest repeats them. */
const PROBLEMS_PER_FILE_MAX = 200;

const nameOf = (pointer: string): string =>
  pointer
    .slice(pointer.lastIndexOf("/") + 1)
    .replaceAll("~1", "/")
    .replaceAll("~0", "~") || "the file";
const kindOf = (value: unknown): string =>
  value === null
    ? "nothing"
    : Array.isArray(value)
      ? "a list"
      : typeof value === "object"
        ? "an object"
        : `the ${typeof value} ${JSON.stringify(value)}`;

function words(schema: TSchema): string {
  if (schema["enum"]) return `one of ${(schema["enum"] as string[]).join(", ")}`;
  if (schema["const"] !== undefined) return `exactly ${schema["const"]}`;
  const names: Record<string, string> = {
    string: "text",
    integer: "a whole number",
    number: "a number",
    boolean: "true or false",
    array: "a list",
    object: "an object",
  };
  return names[schema["type"] as string] ?? schema.description ?? "another shape";
}

function phrase(error: ValueError, name: string): { code: string; message: string } {
  const { schema, value, type } = error;
  if (type === ValueErrorType.ObjectAdditionalProperties) {
    const close = nearest(name, Object.keys(schema["properties"] ?? {}));
    return { code: "field_unknown", message: `${name} is not a field here${close ? `: did you mean ${close}?` : ""}` };
  }
  if (type === ValueErrorType.ObjectRequiredProperty)
    return { code: "field_missing", message: `${name} is missing${schema.description ? `: ${schema.description}` : ""}` };
  if (type === ValueErrorType.StringPattern && !schema["enum"])
    return { code: "field_format", message: `${name} does not have the form of ${describe(schema)}` };
  if (type === ValueErrorType.StringMaxLength || type === ValueErrorType.StringMinLength)
    return { code: "field_length", message: `${name} must have ${schema["minLength"] ?? 0} to ${schema["maxLength"] ?? "any number of"} characters` };
  if (type === ValueErrorType.ArrayMinItems || type === ValueErrorType.ArrayMaxItems)
    return { code: "field_length", message: `${name} must hold ${schema["minItems"] ?? 0} to ${schema["maxItems"] ?? "any number of"} items` };
  if (type === ValueErrorType.ObjectMaxProperties)
    return { code: "field_length", message: `${name} holds more than ${schema["maxProperties"]} members` };
  if (type === ValueErrorType.ArrayUniqueItems) return { code: "field_duplicate", message: `${name} names something twice` };
  const bounded = schema["minimum"] !== undefined && typeof value === "number" && (schema["type"] !== "integer" || Number.isInteger(value));
  if (bounded) return { code: "field_range", message: `${name} must be between ${schema["minimum"]} and ${schema["maximum"]}` };
  if (schema["const"] !== undefined && name === "schema") return { code: "schema_unknown", message: `schema must be ${schema["const"]}` };
  return { code: "field_type", message: `${name} must be ${words(schema)}, not ${kindOf(value)}` };
}

const describe = (schema: TSchema): string => (schema.description ? `"${schema.description}"` : String(schema["pattern"]));

/** The findings of a union are those of the branch the file means: the one whose `kind` fits, else the first. */
function branch(schema: TSchema, value: unknown): TSchema | undefined {
  const options = schema["anyOf"] as TSchema[];
  const plain = typeof value !== "object" || value === null || Array.isArray(value);
  if (plain) return options.find((option) => typeof value === option["type"]);
  const objects = options.filter((option) => option["type"] === "object");
  const kind = (value as Record<string, unknown>)["kind"];
  return objects.find((option) => option["properties"]?.["kind"]?.["const"] === kind) ?? objects[0];
}

function collect(schema: TSchema, value: unknown, base: string, found: { pointer: string; code: string; message: string }[]): void {
  for (const error of Value.Errors(schema, value)) {
    if (found.length >= PROBLEMS_PER_FILE_MAX) return;
    const pointer = base + error.path;
    if (error.schema[Kind] === "Union") {
      const meant = branch(error.schema, error.value);
      if (meant) collect(meant, error.value, pointer, found);
      else found.push({ pointer, code: "field_type", message: `${nameOf(pointer)} must be ${words(error.schema)}, not ${kindOf(error.value)}` });
      continue;
    }
    found.push({ pointer, ...phrase(error, nameOf(pointer)) });
  }
}

/**
 * The file's value when it fits its schema.
 * @returns undefined when it does not; the findings are added to `problems`
 */
export function checkFile<S extends TSchema>(schema: S, located: Located, problems: Problem[]): Static<S> | undefined {
  const found: { pointer: string; code: string; message: string }[] = [];
  collect(schema, located.value, "", found);
  const said = new Set<string>();
  for (const { pointer, code, message } of found) {
    if (said.has(pointer)) continue; // one finding a place: a missing field is also a field of the wrong type
    said.add(pointer);
    problems.push({ file: located.file, ...located.at(pointer), code, message });
  }
  return found.length === 0 ? (located.value as Static<S>) : undefined;
}

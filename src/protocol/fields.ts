// Fields of request bodies: TypeBox schemas that also say how the wire contract trims, defaults and refuses. The schema is the one source for
// checks, types, OpenAPI and MCP; `readFields` checks the members in the order in which the schema names them.
import { Kind, OptionalKind, type Static, type TObject, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { type ErrorCode, HubError } from "./errors.ts";

/** Words for a field: a description for OpenAPI, CLI help and MCP, and the code a refusal uses when it is not protocol_error. */
export type FieldOptions = { description?: string; code?: ErrorCode; pattern?: RegExp };
/** Looks at a field together with those before it, in its place in the order of checks. Throws the refusal. */
export type FieldCheck = (read: Record<string, unknown>) => void;
const checks = new WeakMap<TSchema, FieldCheck>();
const extra = ({ description, code, pattern }: FieldOptions) => ({
  ...(description && { description }),
  ...(code && { "x-kxm-code": code }),
  ...(pattern && { pattern: pattern.source }),
});

/** string(n): trimmed, then 1..max UTF-16 code units. */
export const text = (max: number, options: FieldOptions = {}) => Type.String({ minLength: 1, maxLength: max, ...extra(options) });
/** optional string(n): absent, null or "" = not given. */
export const optionalText = (max: number, options: FieldOptions = {}) => Type.Optional(text(max, options));
/** int(default, min..max): a JSON integer; absent = default. Explicit null is refused. */
export const integer = (range: { default?: number; min: number; max: number }, options: FieldOptions & { check?: FieldCheck } = {}) => {
  const { default: absent, min, max } = range;
  const schema = Type.Integer({ minimum: min, maximum: max, ...(absent !== undefined && { default: absent }), ...extra(options) });
  if (options.check) checks.set(schema, options.check);
  return schema;
};
/** An integer that may be absent and then stays undefined. */
export const optionalInteger = (range: { min: number; max: number }, options: FieldOptions = {}) => Type.Optional(integer(range, options));
/** bool: absent or null = false. */
export const flag = (options: FieldOptions = {}) => Type.Boolean({ default: false, ...extra(options) });
/** string list(k): absent = []; at most `max` items of 1..itemMax characters. */
export const textList = (max: number, options: FieldOptions & { itemMax?: number } = {}) =>
  Type.Array(Type.String({ minLength: 1, maxLength: options.itemMax ?? 1000 }), { maxItems: max, default: [], ...extra(options) });
/** One of a closed set of words; with a default it may be absent. Explicit null is refused. */
export const oneOf = <const W extends readonly string[]>(words: W, options: FieldOptions & { default?: W[number] } = {}) =>
  Type.Unsafe<W[number]>({ ...Type.String({ enum: [...words], ...(options.default && { default: options.default }), ...extra(options) }) });

/**
 * A field whose rule looks at it and gives the exact code.
 * @param shape what it takes, as JSON schema: for documents, models and clients, nothing here checks by it
 */
export const ruled = (shape: { type: "object" | "array" } & Record<string, unknown>, description?: string) =>
  Type.Optional(Type.Unknown({ ...shape, ...(description && { description }) }));

const refuse = (schema: TSchema, message: string): never => {
  throw new HubError((schema["x-kxm-code"] as ErrorCode) ?? "protocol_error", message);
};

const patterns = new Map<string, RegExp>();
/** The schemas are few and fixed, so each pattern is made once. */
function patternOf(source: string): RegExp {
  let pattern = patterns.get(source);
  if (!pattern) patterns.set(source, (pattern = new RegExp(source, "u")));
  return pattern;
}

const members = new WeakMap<TObject, [string, TSchema][]>();
/** The members of an object schema in order. */
function membersOf(schema: TObject): [string, TSchema][] {
  let known = members.get(schema);
  if (!known) members.set(schema, (known = Object.entries(schema.properties)));
  return known;
}

function readText(name: string, schema: TSchema, value: unknown): string {
  if (typeof value !== "string") return refuse(schema, `${name} must be a string`);
  const trimmed = value.trim();
  if (trimmed === "") return refuse(schema, `${name} cannot be empty`);
  if (schema["maxLength"] !== undefined && trimmed.length > schema["maxLength"])
    return refuse(schema, `${name} exceeds ${schema["maxLength"]} characters`);
  if (schema["enum"] && !schema["enum"].includes(trimmed)) return refuse(schema, `${name} must be one of ${schema["enum"].join(", ")}`);
  if (schema["pattern"] && !patternOf(schema["pattern"]).test(trimmed)) return refuse(schema, `${name} has a form that is not allowed`);
  return trimmed;
}

function readList(name: string, schema: TSchema, value: unknown): unknown[] {
  if (!Array.isArray(value)) return refuse(schema, `${name} must be a list`);
  if (schema["maxItems"] !== undefined && value.length > schema["maxItems"])
    return refuse(schema, `${name} holds more than ${schema["maxItems"]} items`);
  return value.map((item, index) => readField(`${name}[${index}]`, schema["items"], item));
}

function readField(name: string, schema: TSchema, value: unknown): unknown {
  const kind = schema["type"];
  const optional = schema[OptionalKind] === "Optional";
  const nullMeansAbsent = (optional && kind !== "integer") || kind === "boolean" || kind === "array";
  if (value === undefined || (value === null && nullMeansAbsent)) {
    if (schema.default !== undefined) return typeof schema.default === "object" ? structuredClone(schema.default) : schema.default;
    if (optional) return undefined;
  }
  if (schema[Kind] === "Unknown" || schema[Kind] === "Any") return value; // the rule itself looks at it
  if (kind === "string") return optional && value === "" && schema.default === undefined ? undefined : readText(name, schema, value);
  if (kind === "integer") {
    const { minimum, maximum } = schema as { minimum?: number; maximum?: number };
    const inRange = Number.isSafeInteger(value) && (value as number) >= (minimum ?? -Infinity) && (value as number) <= (maximum ?? Infinity);
    return inRange ? (Object.is(value, -0) ? 0 : value) : refuse(schema, `${name} must be an integer between ${minimum} and ${maximum}`);
  }
  if (kind === "boolean") return typeof value === "boolean" ? value : refuse(schema, `${name} must be a boolean`);
  if (kind === "array") return readList(name, schema, value);
  return Value.Check(schema, value) ? value : refuse(schema, `${name} has a shape that is not allowed`);
}

/**
 * Reads a request body (or query) by its schema: trims, fills defaults, ignores unknown members, checks members in schema order.
 * @throws HubError protocol_error, or the code the field names, on the first member that does not fit
 */
export function readFields<S extends TObject>(schema: S, body: Record<string, unknown>): Static<S> {
  const read: Record<string, unknown> = {};
  for (const [name, field] of membersOf(schema)) {
    const value = readField(name, field, Object.hasOwn(body, name) ? body[name] : undefined);
    if (value !== undefined) read[name] = value;
    checks.get(field)?.(read);
  }
  return read as Static<S>;
}

/** The same for a query string: numbers and booleans arrive as text. An unreadable number is refused, never guessed. */
export function readQuery<S extends TObject>(schema: S, query: URLSearchParams): Static<S> {
  const values: Record<string, unknown> = {};
  for (const [name, field] of membersOf(schema)) {
    const given = query.get(name);
    if (given === null) continue;
    if (field["type"] === "integer") values[name] = /^-?\d{1,16}$/.test(given) ? Number(given) : given;
    else if (field["type"] === "boolean")
      values[name] = given === "true"; // the exact word, as existing clients send it
    else values[name] = given;
  }
  return readFields(schema, values);
}

// The reference of the JSON API as plain data, made from the table of routes: for the page that shows it, for docs/api.md and for tests.
import type { TObject, TSchema } from "@sinclair/typebox";
import { ERRORS, type ErrorCode } from "../protocol/errors.ts";
import { VERSION } from "../protocol/version.ts";
import type { Credential } from "./credentials.ts";
import { nameModels } from "./models.ts";
import type { Route } from "./route.ts";

/** What a caller must show, in words, per credential. */
const CREDENTIAL_WORDS: Record<Credential, string> = {
  none: "nothing",
  project: "the project's token, if the hub asks for one",
  agent: "agent id and key, and the project's token if the hub asks for one",
  "agent-or-admin": "agent id and key, or the admin token",
  "agent-or-admin-configured": "agent id and key, or the admin token, which the hub must have",
  "agent-or-viewer": "agent id and key, or a viewer, operator or admin token",
  "agent-or-operator": "agent id and key, or an operator token",
  admin: "the admin token; nothing on a loopback hub without one",
  "admin-configured": "the admin token",
  operator: "an operator or admin token",
  viewer: "a viewer, operator or admin token",
};

const AGENT_CODES: ErrorCode[] = ["invalid_agent_identity", "invalid_auth"];
const ROLE_CODES: ErrorCode[] = ["invalid_auth", "role_forbidden", "admin_auth_not_configured"];
const CREDENTIAL_CODES: Record<Credential, ErrorCode[]> = {
  none: [],
  project: ["invalid_auth"],
  agent: AGENT_CODES,
  "agent-or-admin": [...AGENT_CODES, "role_forbidden"],
  "agent-or-admin-configured": [...AGENT_CODES, ...ROLE_CODES],
  "agent-or-viewer": [...AGENT_CODES, ...ROLE_CODES],
  "agent-or-operator": [...AGENT_CODES, ...ROLE_CODES],
  admin: ["invalid_auth", "role_forbidden"],
  "admin-configured": ROLE_CODES,
  operator: ROLE_CODES,
  viewer: ROLE_CODES,
};

/** Every code a route can answer with: its own and those of the steps before it, by status. */
export function errorsOf(found: Route): ErrorCode[] {
  const codes = new Set<ErrorCode>(["protocol_error", "host_forbidden", "internal_error", "storage_unavailable"]);
  const counted = !/^\/(health|ready)$/.test(found.path);
  if (counted) codes.add("rate_limited");
  if (found.guarded ?? found.method !== "GET") codes.add("origin_forbidden");
  if (found.method === "POST") for (const code of ["unsupported_media_type", "payload_too_large", "invalid_json"] as const) codes.add(code);
  for (const code of [...CREDENTIAL_CODES[found.credential as Credential], ...fieldCodes(found.body), ...fieldCodes(found.query), ...found.errors])
    codes.add(code);
  return [...codes].filter((code) => ERRORS[code].status >= 400).sort((a, b) => ERRORS[a].status - ERRORS[b].status || a.localeCompare(b));
}

const fieldCodes = (schema: TObject | undefined): ErrorCode[] =>
  Object.values(schema?.properties ?? {}).flatMap((field) => (field["x-kxm-code"] ? [field["x-kxm-code"] as ErrorCode] : []));

/** One operation as people read it. */
export interface Operation {
  id: string;
  tag: string;
  method: string;
  path: string;
  summary: string;
  credential: string;
  fields: { name: string; in: "path" | "query" | "body"; type: string; required: boolean; default?: unknown; description?: string }[];
  answers: { status: number; what: string }[];
  errors: { code: ErrorCode; status: number }[];
}

/** The whole reference as plain data: for a page that somebody renders, for docs/api.md, for tests. */
export function describeApi(routes: readonly Route[]): {
  version: string;
  operations: Operation[];
  errors: { code: ErrorCode; status: number; hint: string }[];
} {
  const { nameOf } = nameModels();
  const operations = routes.map((found) => ({
    id: found.operationId,
    tag: found.tag,
    method: found.method,
    path: braced(found.path),
    summary: found.summary,
    credential: CREDENTIAL_WORDS[found.credential as Credential],
    fields: [...fieldsOf(found.params, "path"), ...fieldsOf(found.query, "query"), ...fieldsOf(found.body, "body")],
    answers: Object.entries(found.answers).map(([status, schema]) => ({
      status: Number(status),
      what: wordsOf(schema as Route["answers"][number], nameOf),
    })),
    errors: errorsOf(found).map((code) => ({ code, status: ERRORS[code].status })),
  }));
  const errors = Object.entries(ERRORS).map(([code, { status, hint }]) => ({ code: code as ErrorCode, status, hint }));
  return { version: VERSION, operations, errors };
}

function fieldsOf(schema: TObject | undefined, place: "path" | "query" | "body"): Operation["fields"] {
  return Object.entries(schema?.properties ?? {}).map(([name, field]) => ({
    name,
    in: place,
    type: typeWords(field),
    required: place === "path" || isRequired(schema!, name),
    ...(field["default"] !== undefined && { default: field["default"] }),
    ...(field["description"] && { description: String(field["description"]) }),
  }));
}

function typeWords(field: TSchema): string {
  const { type, enum: words, minimum, maximum, maxLength, maxItems, items } = field;
  if (Array.isArray(words)) return words.map((word) => JSON.stringify(word)).join(" or ");
  if (type === "integer")
    return maximum >= Number.MAX_SAFE_INTEGER || maximum === undefined ? `integer from ${minimum ?? 0}` : `integer ${minimum}..${maximum}`;
  if (type === "string") return maxLength === undefined ? "text" : `text of at most ${maxLength} characters`;
  if (type === "array") return `list of ${typeWords(items as TSchema)}${maxItems === undefined ? "" : `, at most ${maxItems}`}`;
  return type === undefined ? "any" : String(type);
}

function wordsOf(answer: Route["answers"][number], nameOf: (schema: TSchema) => string | undefined): string {
  if (answer === null || answer === undefined) return "nothing";
  if (answer === "stream") return "server-sent events";
  if (answer === "text") return "text";
  return nameOf(answer) ?? `{ ${Object.keys((answer as TObject).properties ?? {}).join(", ")} }`;
}

/** A member with a default may be left out, whatever TypeBox's `required` says: the hub fills it in. */
export const isRequired = (schema: TObject, name: string): boolean =>
  (schema.required ?? []).includes(name) && schema.properties[name]!["default"] === undefined;

/** `/v1/tokens/:id` as `/v1/tokens/{id}`. */
export const braced = (path: string): string => path.replaceAll(/:(\w+)/g, "{$1}");

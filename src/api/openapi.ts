// The OpenAPI 3.1 document of the JSON API, made from the table of routes, and the route that serves it.
import { type TObject, type TSchema, Type } from "@sinclair/typebox";
import { ERRORS, type ErrorCode } from "../protocol/errors.ts";
import { VERSION } from "../protocol/version.ts";
import type { Credential } from "./credentials.ts";
import { nameModels } from "./models.ts";
import { braced, errorsOf, isRequired } from "./reference.ts";
import { type Route, route } from "./route.ts";

type Json = Record<string, unknown>;

const AGENT = { agentId: [], agentKey: [] };
const BEARER = { bearer: [] };
const SECURITY: Record<Credential, Json[]> = {
  none: [],
  project: [BEARER, {}],
  agent: [AGENT, { ...AGENT, ...BEARER }],
  "agent-or-admin-configured": [AGENT, { ...AGENT, ...BEARER }, BEARER],
  "agent-or-admin": [AGENT, { ...AGENT, ...BEARER }, BEARER],
  "agent-or-viewer": [AGENT, { ...AGENT, ...BEARER }, BEARER],
  "agent-or-operator": [AGENT, { ...AGENT, ...BEARER }, BEARER],
  admin: [BEARER, {}],
  "admin-configured": [BEARER],
  operator: [BEARER],
  viewer: [BEARER],
};

/** The OpenAPI 3.1 document of the routes. The same routes give the same document, byte for byte. */
export function openapiDocument(routes: readonly Route[]): Json {
  const models = nameModels();
  const used = new Set<string>();
  const refer = (schema: TSchema): Json => {
    const name = models.nameOf(schema);
    if (name === undefined) return rewrite(schema, refer);
    used.add(name);
    return { $ref: `#/components/schemas/${name}` };
  };
  const paths: Record<string, Json> = {};
  for (const found of routes) (paths[braced(found.path)] ??= {})[found.method.toLowerCase()] = operationOf(found, refer);
  const schemas: Json = { Error: ERROR_SCHEMA };
  for (let before = -1; used.size !== before; ) {
    before = used.size; // a model may name others
    for (const name of [...used].sort()) schemas[name] ??= rewrite(models.all.get(name)!, refer);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "KXM hub",
      version: VERSION,
      description: "Messages, leases, presence, Runtime sync and operations of one KXM hub.",
      license: { name: "MIT", identifier: "MIT" },
    },
    paths,
    components: { securitySchemes: SECURITY_SCHEMES, schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))) },
    "x-kxm-errors": Object.fromEntries(Object.entries(ERRORS).map(([code, { status, hint }]) => [code, { status, hint }])),
  };
}

const SECURITY_SCHEMES = {
  bearer: { type: "http", scheme: "bearer", description: "A project's token, or a viewer, operator or admin token, as the operation says." },
  agentId: { type: "apiKey", in: "header", name: "x-kxm-agent-id", description: "The agent's id." },
  agentKey: { type: "apiKey", in: "header", name: "x-kxm-agent-key", description: "The key that its last registration returned." },
};

const ERROR_SCHEMA = {
  type: "object",
  required: ["error", "code", "requestId", "hint"],
  properties: {
    error: { type: "string", description: "What happened, in one sentence." },
    code: { type: "string", description: "One of x-kxm-errors." },
    requestId: { type: "string", description: "The same as the x-request-id header." },
    hint: { type: "string", description: "What to do next." },
    operation: { type: "string" },
    nextAction: { type: "string" },
    lease: { type: "object", description: "Who holds it, with lease refusals." },
  },
  additionalProperties: true,
};

function operationOf(found: Route, refer: (schema: TSchema) => Json): Json {
  const responses: Json = {};
  for (const [status, answer] of Object.entries(found.answers)) responses[status] = answerOf(answer as Route["answers"][number], refer);
  for (const [status, codes] of Map.groupBy(errorsOf(found), (code) => ERRORS[code].status)) responses[status] ??= refusalOf(codes);
  const parameters = [...parametersOf(found.params, "path", found.path), ...parametersOf(found.query, "query", found.path)];
  return {
    operationId: found.operationId,
    tags: [found.tag],
    summary: found.summary,
    security: SECURITY[found.credential as Credential],
    ...(parameters.length > 0 && { parameters }),
    ...(found.method === "POST" && {
      requestBody: { required: false, content: { "application/json": { schema: found.body ? relaxed(found.body, refer) : { type: "object" } } } },
    }),
    responses,
  };
}

function parametersOf(schema: TObject | undefined, place: "path" | "query", path: string): Json[] {
  const names = place === "path" ? [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!) : Object.keys(schema?.properties ?? {});
  return names.map((name) => {
    const { description, ...field } = (schema?.properties[name] ?? Type.String()) as TSchema;
    const required = place === "path" || isRequired(schema!, name);
    return { name, in: place, required, ...(description && { description }), schema: rewrite(field as TSchema, (inner) => rewrite(inner)) };
  });
}

function answerOf(answer: Route["answers"][number], refer: (schema: TSchema) => Json): Json {
  if (answer === null || answer === undefined) return { description: "Done; no body." };
  if (answer === "stream")
    return { description: "A stream of server-sent events.", content: { "text/event-stream": { schema: { type: "string" } } } };
  if (answer === "text") return { description: "Text.", content: { "text/plain": { schema: { type: "string" } } } };
  return { description: "Done.", content: { "application/json": { schema: refer(answer) } } };
}

const refusalOf = (codes: ErrorCode[]): Json => ({
  description: `Refused: ${codes.join(", ")}.`,
  content: { "application/json": { schema: { allOf: [{ $ref: "#/components/schemas/Error" }, { properties: { code: { enum: codes } } }] } } },
});

/** A request body: members with a default are not required. */
function relaxed(schema: TObject, refer: (schema: TSchema) => Json): Json {
  const { required: _, ...written } = rewrite(schema, refer);
  const required = Object.keys(schema.properties).filter((name) => isRequired(schema, name));
  return { ...written, ...(required.length > 0 && { required }) };
}

/** A schema as JSON Schema, with named parts as references. */
function rewrite(schema: TSchema, refer: (schema: TSchema) => Json = (inner) => rewrite(inner)): Json {
  const isSchema = (value: unknown): value is TSchema => typeof value === "object" && value !== null && !Array.isArray(value);
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key, value]) => key !== "x-kxm-code" && value !== undefined)
      .map(([key, value]) => {
        if (key === "properties" || key === "patternProperties")
          return [key, Object.fromEntries(Object.entries(value as object).map(([name, field]) => [name, refer(field as TSchema)]))];
        if ((key === "items" || key === "additionalProperties" || key === "not") && isSchema(value)) return [key, refer(value)];
        if (key === "anyOf" || key === "oneOf" || key === "allOf") return [key, (value as TSchema[]).map(refer)];
        return [key, value];
      }),
  );
}

/** The route that serves the document. @param routes the finished table, asked for at the first request */
export function openapiRoute(routes: () => readonly Route[]): Route {
  let document: unknown;
  return route({
    method: "GET",
    path: "/openapi.json",
    operationId: "getOpenapi",
    tag: "operations",
    summary: "The OpenAPI 3.1 document of this API.",
    credential: "none",
    answers: { 200: Type.Object({}, { additionalProperties: true }) },
    errors: [],
    run: () => ({ status: 200, body: (document ??= openapiDocument(routes())) }),
  });
}

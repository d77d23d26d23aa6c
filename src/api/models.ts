// The names of what goes over the wire: every exported object schema of the protocol is a model of the reference, under its export's name.
import type { TSchema } from "@sinclair/typebox";
import * as agents from "../protocol/agents.ts";
import * as alerts from "../protocol/alerts.ts";
import * as approvals from "../protocol/approvals.ts";
import * as audit from "../protocol/audit.ts";
import * as budgets from "../protocol/budgets.ts";
import * as context from "../protocol/context.ts";
import * as events from "../protocol/events.ts";
import * as journal from "../protocol/journal.ts";
import * as leases from "../protocol/leases.ts";
import * as log from "../protocol/log.ts";
import * as messages from "../protocol/messages.ts";
import * as ops from "../protocol/ops.ts";
import * as runs from "../protocol/runs.ts";
import * as runtimes from "../protocol/runtimes.ts";
import * as search from "../protocol/search.ts";
import * as sessions from "../protocol/sessions.ts";
import * as sync from "../protocol/sync.ts";
import * as syncEvent from "../protocol/sync-event.ts";
import * as tokens from "../protocol/tokens.ts";
import * as webhookArrivals from "../protocol/webhook-arrivals.ts";
import * as webhookEndpoints from "../protocol/webhook-endpoints.ts";
import * as workflows from "../protocol/workflows.ts";

/** By file name. A protocol file with schemas that is not here fails the reference's test. */
const MODULES: Record<string, object> = {
  search,
  "webhook-arrivals": webhookArrivals,
  "webhook-endpoints": webhookEndpoints,
  context,
  journal,
  workflows,
  agents,
  alerts,
  approvals,
  audit,
  budgets,
  events,
  leases,
  log,
  messages,
  ops,
  runs,
  runtimes,
  sessions,
  sync,
  "sync-event": syncEvent,
  tokens,
};

/** The protocol files whose schemas have names. */
export const MODEL_MODULES: readonly string[] = Object.keys(MODULES);

/** The schemas of a module that are models: closed or open objects. */
export const modelsOf = (module: object): [string, TSchema][] =>
  Object.entries(module).filter(([name, value]) => /^[A-Z]/.test(name) && isObjectSchema(value)) as [string, TSchema][];

const isObjectSchema = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "type" in value && value.type === "object" && "properties" in value;

/**
 * Finds a schema's name. Two that say the same are one model (copies with a mark such as "optional" included).
 * When two files export different models under one name, the later gets its file's name in front.
 */
export function nameModels(): { nameOf(schema: TSchema): string | undefined; all: ReadonlyMap<string, TSchema> } {
  const all = new Map<string, TSchema>();
  const names = new Map<string, string>();
  for (const [file, module] of Object.entries(MODULES)) {
    for (const [exported, schema] of modelsOf(module)) {
      const text = JSON.stringify(schema);
      if (names.has(text)) continue;
      const name = all.has(exported) ? `${pascal(file)}${exported}` : exported;
      all.set(name, schema);
      names.set(text, name);
    }
  }
  return { nameOf: (schema) => names.get(JSON.stringify(schema)), all };
}

const pascal = (file: string): string => file.replace(/(^|-)(\w)/g, (_, __, first: string) => first.toUpperCase());

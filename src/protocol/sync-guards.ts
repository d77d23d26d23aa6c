// Whether what a hub answers a Runtime has the agreed shape, without the schema library: clients carry no more than they need. A test holds these
// against the schemas of sync.ts, which stay the definition.
import type { CommandKind, RuntimeCommand, SyncAnswer, SyncResult } from "./sync.ts";

const OPAQUE = /^[a-z][a-z0-9]{1,15}_[A-Za-z0-9][A-Za-z0-9_-]{5,127}$/;
const OUTCOMES: Record<SyncResult["outcome"], true> = { accepted: true, duplicate: true, conflict: true, rejected: true };
const KINDS: Record<CommandKind, true> = {
  start: true,
  approve: true,
  reject: true,
  signal: true,
  retry: true,
  cancel: true,
  pause: true,
  resume: true,
  resolve: true,
  "sync-retry": true,
};

type Members = Record<string, unknown>;
const isObject = (value: unknown): value is Members => typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value: unknown): value is string => typeof value === "string";
const isCount = (value: unknown, min: number): value is number => Number.isInteger(value) && (value as number) >= min;
const isOpaque = (value: unknown) => isText(value) && OPAQUE.test(value);
const maybe = (value: unknown, is: (value: unknown) => boolean) => value === undefined || is(value);

const isResult = (item: unknown) =>
  isObject(item) &&
  isText(item["outcome"]) &&
  Object.hasOwn(OUTCOMES, item["outcome"]) &&
  maybe(item["sequence"], Number.isFinite) &&
  ["projectId", "runId", "code", "existingHash"].every((name) => maybe(item[name], isText));
const isCursor = (item: unknown) => isObject(item) && isText(item["projectId"]) && isText(item["runId"]) && isCount(item["cursor"], 0);

/** Whether the hub answered a batch in the agreed shape. Anything else is no answer. */
export const isSyncAnswer = (value: unknown): value is SyncAnswer =>
  isObject(value) &&
  Array.isArray(value["results"]) &&
  value["results"].every(isResult) &&
  Array.isArray(value["cursors"]) &&
  value["cursors"].every(isCursor);

/** Whether the answer of a poll is a list; each item is checked on its own by `isRuntimeCommand`. */
export const isCommandsAnswer = (value: unknown): value is { commands: unknown[] } => isObject(value) && Array.isArray(value["commands"]);

/** Whether one item of a poll is a command this version understands. */
export const isRuntimeCommand = (value: unknown): value is RuntimeCommand =>
  isObject(value) &&
  isOpaque(value["id"]) &&
  isCount(value["seq"], 1) &&
  isText(value["kind"]) &&
  Object.hasOwn(KINDS, value["kind"]) &&
  maybe(value["projectId"], isOpaque) &&
  maybe(value["runId"], isOpaque) &&
  isObject(value["payload"]) &&
  isText(value["actor"]) &&
  value["actor"].length >= 1 &&
  value["actor"].length <= 200 &&
  isText(value["createdAt"]);

// Strict JSON for request bodies. JSON.parse alone would accept what two readers understand differently (duplicate keys, replaced bytes, lost digits).
import { HubError } from "./errors.ts";
import { JSON_DEPTH_MAX, JSON_MEMBERS_MAX } from "./limits.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const bad = (why: string) => new HubError("invalid_json", `the body is not acceptable JSON: ${why}`);

/**
 * Parses a request body: zero bytes mean `{}`, anything else must be one JSON object.
 * @throws HubError invalid_json for bad UTF-8, a byte order mark, NUL, lone surrogates, duplicate or prototype keys, depth over 32,
 *   more than 10,000 members, integers beyond 2^53 - 1, or a value that is not an object
 */
export function parseBody(bytes: Uint8Array): Record<string, unknown> {
  return bytes.length === 0 ? {} : parseObject(decode(bytes));
}

/** The same strictness for any JSON value (JSON-RPC sends arrays, too). @throws HubError invalid_json */
export const parseJson = (bytes: Uint8Array): unknown => parseText(decode(bytes));

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw bad("invalid UTF-8");
  }
}

/** The same for text that is already decoded. @throws HubError invalid_json */
export function parseObject(text: string): Record<string, unknown> {
  const value = parseText(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw bad("the top level must be an object");
  return value as Record<string, unknown>;
}

function parseText(text: string): unknown {
  scan(text);
  try {
    return JSON.parse(text);
  } catch {
    throw bad("syntax error");
  }
}

const QUOTE = 34;
const BACKSLASH = 92;

/** One pass over the text before JSON.parse: depth, number of members, keys, escapes and digits. It trusts nothing and needs no grammar. */
function scan(text: string): void {
  if (text.charCodeAt(0) === 0xfeff) throw bad("a byte order mark");
  if (!text.isWellFormed()) throw bad("a lone surrogate");
  const keys: (Set<string> | undefined)[] = []; // one per open bracket; undefined for arrays
  const escapes = text.includes("\\u");
  let members = 0;
  let expectKey = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) {
      const end = stringEnd(text, i);
      const set = keys[keys.length - 1];
      if (expectKey && set) {
        addKey(set, text.slice(i, end + 1));
        expectKey = false;
      } else if (escapes) readString(text.slice(i, end + 1));
      i = end;
    } else if (c === 123 || c === 91) {
      keys.push(c === 123 ? new Set() : undefined);
      if (keys.length > JSON_DEPTH_MAX) throw bad(`more than ${JSON_DEPTH_MAX} levels`);
      expectKey = c === 123;
      members++;
    } else if (c === 125 || c === 93) {
      keys.pop();
      expectKey = false;
    } else if (c === 44) {
      members++;
      expectKey = keys[keys.length - 1] !== undefined;
    } else if ((c >= 48 && c <= 57) || c === 45) i = numberEnd(text, i);
    if (members > JSON_MEMBERS_MAX) throw bad(`more than ${JSON_MEMBERS_MAX} members`);
  }
}

function stringEnd(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
    end = text.indexOf('"', end + 1);
  }
  throw bad("an unterminated string");
}

/** Decodes a string literal and refuses what a store would lose: NUL and lone surrogates. */
function readString(literal: string): string {
  let value: string;
  try {
    value = JSON.parse(literal);
  } catch {
    throw bad("a broken string");
  }
  if (!value.isWellFormed()) throw bad("a lone surrogate");
  if (value.includes("\0")) throw bad("a NUL character");
  return value;
}

function addKey(set: Set<string>, literal: string) {
  const key = literal.includes("\\") ? readString(literal) : literal.slice(1, -1);
  if (set.has(key)) throw bad("a duplicate key");
  if (key === "__proto__" || key === "constructor" || key === "prototype") throw bad("a key that is not allowed");
  set.add(key);
}

/** Index of the number's last character. Integers that would lose digits are refused; fractions and exponents are ordinary doubles. */
function numberEnd(text: string, start: number): number {
  let end = start;
  while (end + 1 < text.length && /[0-9.eE+-]/.test(text[end + 1]!)) end++;
  const literal = text.slice(start, end + 1);
  const value = Number(literal);
  if (!Number.isFinite(value)) throw bad("a number out of range");
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw bad("an integer beyond 2^53 - 1");
  return end;
}

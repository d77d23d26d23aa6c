// A reply becomes an outcome only by declaration: one JSON object, the whole reply or alone at its end. A word in prose is not a result.
import { parseObject } from "../../protocol/json.ts";

/** What an agent declares. Everything but the outcome is optional. */
export type Declaration = {
  outcome: string;
  summary?: string;
  evidence?: Record<string, string>;
  artifacts?: string[];
};
export type Reading = { kind: "declared"; declaration: Declaration } | { kind: "unknown"; why: string };

/** Characters of a reply's end that are looked at for a declaration. */
const DECLARATION_CHARS_MAX = 65_536;
/** Pieces of evidence and artifacts of one declaration. */
const ITEMS_MAX = 64;
/** Opening brackets that are tried. */
const TRIES_MAX = 512;
const KEY = /^[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*$/;

/** Reads the declaration of a reply. Pure. */
export function readDeclaration(reply: string): Reading {
  const text = reply.slice(-DECLARATION_CHARS_MAX).trimEnd();
  if (text === "") return { kind: "unknown", why: "the reply is empty" };
  const body = text.endsWith("```") ? text.slice(0, -3).trimEnd() : text;
  if (!body.endsWith("}")) return { kind: "unknown", why: "the reply does not end with a JSON object" };
  const objects = standingAlone(body);
  const final = objects.pop();
  if (final?.end !== body.length) return { kind: "unknown", why: "the object at the end of the reply is not valid JSON or does not stand alone" };
  const reading = check(final.value);
  const rival = objects.find(({ value }) => typeof value["outcome"] === "string" && value["outcome"] !== final.value["outcome"]);
  if (reading.kind === "declared" && rival) return { kind: "unknown", why: "the reply declares two different outcomes" };
  return reading;
}

/** JSON objects that begin a line and lie in no other, in order. One with a key twice is none: two readers would read it differently. */
function standingAlone(body: string): { end: number; value: Record<string, unknown> }[] {
  const found: { end: number; value: Record<string, unknown> }[] = [];
  let tries = 0;
  for (let at = body.indexOf("{"); at !== -1 && tries < TRIES_MAX; tries++) {
    const begins = body.slice(body.lastIndexOf("\n", at) + 1, at).trim() === "";
    const end = begins ? objectEnd(body, at) : undefined;
    const value = end === undefined ? undefined : parse(body.slice(at, end));
    if (value) found.push({ end: end!, value });
    at = body.indexOf("{", value ? end! : at + 1);
  }
  return found;
}

/** Where the object that opens at `start` closes, brackets in strings left aside. */
function objectEnd(text: string, start: number): number | undefined {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const c = text[at];
    if (c === '"') {
      for (at++; at < text.length && text[at] !== '"'; at++) if (text[at] === "\\") at++;
    } else if (c === "{" || c === "[") depth++;
    else if ((c === "}" || c === "]") && --depth === 0) return at + 1;
  }
  return undefined;
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    return parseObject(text);
  } catch {
    return undefined;
  }
}

function check(object: Record<string, unknown>): Reading {
  const { outcome, summary, evidence, artifacts } = object;
  if (typeof outcome !== "string" || !KEY.test(outcome)) return { kind: "unknown", why: "the object names no outcome" };
  const declaration: Declaration = { outcome };
  if (typeof summary === "string" && summary.trim() !== "") declaration.summary = summary.trim();
  if (typeof evidence === "object" && evidence !== null && !Array.isArray(evidence)) {
    const entries = Object.entries(evidence).filter(([key]) => KEY.test(key) && key.length <= 64);
    declaration.evidence = Object.fromEntries(
      entries.slice(0, ITEMS_MAX).map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(value)]),
    );
  }
  if (Array.isArray(artifacts)) declaration.artifacts = artifacts.filter((path) => typeof path === "string").slice(0, ITEMS_MAX);
  return { kind: "declared", declaration };
}

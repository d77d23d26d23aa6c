// Ids of elements made from ids and names. Invariant: an id is a plain word, whatever it is made of, and equal for equal parts, so that a live update finds its element.
import { sha256 } from "../protocol/canonical.ts";

const PLAIN = /^[A-Za-z0-9_-]{1,160}$/;
const HASH_SHOWN = 16;

/** `lease-…`: our own ids as they are, names of agents by their hash. */
export function domId(prefix: string, ...parts: readonly string[]): string {
  const text = parts.join("-");
  return parts.length === 1 && PLAIN.test(text) ? `${prefix}-${text}` : `${prefix}-${sha256(JSON.stringify(parts)).slice(0, HASH_SHOWN)}`;
}

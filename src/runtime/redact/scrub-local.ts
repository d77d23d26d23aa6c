// What stays on this machine is scrubbed too: no secret is at rest in the event store. Places stay, since people need them here.
import type { Redactor } from "./redactor.ts";

/** A JSON value without its secrets, keys included. The value given is not changed. */
export function scrubLocal<T>(value: T, redactor: Redactor): { payload: T; replaced: number } {
  let replaced = 0;
  const scrub = (text: string): string => {
    const scrubbed = redactor.secrets(text);
    replaced += scrubbed.replaced;
    return scrubbed.text;
  };
  const walk = (item: unknown): unknown => {
    if (typeof item === "string") return isPlain(item) ? item : scrub(item);
    if (Array.isArray(item)) return item.map(walk);
    if (typeof item !== "object" || item === null) return item;
    const members = Object.entries(item).filter(([, member]) => member !== undefined);
    return Object.fromEntries(members.map(([key, member]) => [isPlain(key) ? key : scrub(key), secretKey(key, member) ?? walk(member)]));
  };
  // A value whose key is named like a secret is seen only with its key.
  const secretKey = (key: string, member: unknown): string | undefined => {
    if (typeof member !== "string" || member.length < 6 || !SECRET_KEY.test(key)) return undefined;
    const joined = redactor.find(`${key}="${member.replaceAll('"', "'")}"`);
    const hit = joined.find(({ start, end }) => start <= key.length + 2 && end >= key.length + 2 + member.length);
    if (!hit) return undefined;
    replaced++;
    return `[REDACTED:${hit.kind}]`;
  };
  return { payload: walk(value) as T, replaced };
}

const SECRET_KEY = /pass|pwd|secret|token|key|auth|credential|cookie|session/i;
/** What cannot hold a secret: short words, our own hashes and ids, times. Most strings of an event are such. */
const PLAIN =
  /^(?:sha256:[0-9a-f]{64}|[a-z-]{1,7}|\d{4}-\d{2}-\d{2}T[\d:.]{8,18}Z|(?:run|evt|asg|att|gat|evd|eff|apr|art|rcp|int|cmd|mem|prj|rtm)_[0-9a-f]{24,32})$/;
const isPlain = (text: string): boolean => text.length < 80 && PLAIN.test(text);

// Values this process knows to be secret: hub token, agent keys, suspicious environment values. Found exactly, in every form a program may print them.
import { withoutInvisible } from "./views.ts";

/** A stretch of a text that must go, and what it was. */
export type Match = { start: number; end: number; kind: string };

/** Shorter values are words, not secrets: taking them out would eat the text and tell nothing. */
const KNOWN_LENGTH_MIN = 8;
/** A piece of a known value at the edge of a text is taken out from this length on. */
const FRAGMENT_MIN = 6;
const SECRET_NAME =
  /(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|apikey|access[_-]?key|private[_-]?key|auth|credential|cookie|session|signature|dsn|connection[_-]?string|database[_-]?url)/i;
const PLAIN_NAMES = new Set(
  [
    ...[
      "PATH",
      "HOME",
      "PWD",
      "OLDPWD",
      "SHELL",
      "USER",
      "LOGNAME",
      "LANG",
      "LANGUAGE",
      "TERM",
      "TMPDIR",
      "TEMP",
      "TMP",
      "EDITOR",
      "VISUAL",
      "PAGER",
    ],
    ...["HOSTNAME", "DISPLAY", "COLORTERM", "SHLVL", "MAIL", "TZ", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "XDG_SESSION_CLASS", "DESKTOP_SESSION"],
    ...["SSH_AUTH_SOCK", "GPG_AGENT_INFO", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "KXM_AUTH_MODE", "GNOME_KEYRING_CONTROL", "SESSION_MANAGER"],
  ].map((name) => name.toUpperCase()),
);

/** Entropy of a text in bits per character. */
export function entropy(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length);
  return bits;
}

/** Whether an environment value looks secret, by its name or by itself. */
function looksSecret(name: string, value: string): boolean {
  if (value.length < KNOWN_LENGTH_MIN || PLAIN_NAMES.has(name.toUpperCase())) return false;
  if (/^(?:true|false|\d{1,10}|[a-z]+)$/i.test(value) && !SECRET_NAME.test(name)) return false;
  if (SECRET_NAME.test(name)) return !/^(?:\/|~\/|[A-Za-z]:\\)[^:]*$/.test(value); // a path to a key file is a place, not a key
  if (/:\/\/[^/\s:@]*:[^/\s@]+@/.test(value)) return true;
  return value.length >= 20 && /^[\w+/=.~-]+$/.test(value) && /\d/.test(value) && /[a-z]/i.test(value) && !/[/.]/.test(value) && entropy(value) > 3.6;
}

export type KnownSecrets = ReturnType<typeof knownSecrets>;

/** A set of values to find. Grows only: what was secret stays secret for the life of the process. */
export function knownSecrets() {
  const values = new Map<string, string>(); // value → kind
  let needles: { needle: string; kind: string; widen: RegExp | undefined }[] = [];

  return {
    /** Adds a value. Short ones are ignored. @param kind a word for the replacement, such as `hub-token` */
    add(value: string | undefined, kind: string) {
      const trimmed = value?.trim() ?? "";
      if (trimmed.length < KNOWN_LENGTH_MIN || values.has(trimmed)) return;
      values.set(trimmed, kind);
      needles = [...needles, ...formsOf(trimmed).map((form) => ({ ...form, kind }))];
      needles.sort((a, b) => b.needle.length - a.needle.length);
    },
    /** Adds every value of an environment that looks secret. */
    addEnvironment(env: Record<string, string | undefined>) {
      for (const [name, value] of Object.entries(env)) {
        if (value === undefined || !looksSecret(name, value)) continue;
        this.add(value, "env");
        const password = /:\/\/[^/\s:@]*:([^/\s@]+)@/.exec(value)?.[1];
        if (password) this.add(password, "env");
      }
    },
    /** Number of values. */
    get size() {
      return values.size;
    },
    /** Where known values are in a text, in any of their forms, whole. */
    find(text: string): Match[] {
      const matches: Match[] = [];
      for (let index = needles.length - 1; index >= 0; index--) {
        const { needle, kind, widen } = needles[index]!;
        if (needle.length > text.length) break; // they are sorted by length
        for (let at = text.indexOf(needle); at !== -1; at = text.indexOf(needle, at + needle.length)) {
          const match = { start: at, end: at + needle.length, kind };
          matches.push(widen ? widened(text, match, widen) : match);
        }
      }
      return matches;
    },
    /** Pieces of known values at the edges of a text, which another text may complete; and a text that is all piece. */
    findFragments(text: string): Match[] {
      const matches: Match[] = [];
      const [lead, tail] = [text.length - text.trimStart().length, text.trimEnd().length];
      const body = text.slice(lead, tail);
      if (body.length < FRAGMENT_MIN) return matches;
      for (const [value, kind] of values) {
        if (body.length < value.length && value.includes(body)) matches.push({ start: lead, end: tail, kind });
        const starts = overlap(value, body, FRAGMENT_MIN); // the text ends with the beginning of the value
        if (starts > 0) matches.push({ start: tail - starts, end: tail, kind });
        const ends = overlap(body, value, FRAGMENT_MIN); // the text begins with the end of the value
        if (ends > 0) matches.push({ start: lead, end: lead + ends, kind });
      }
      return matches;
    },
  };
}

/** Length of the longest proper prefix of `value` that `text` ends with, at least `min`; else 0. */
function overlap(value: string, text: string, min: number): number {
  const tail = text.slice(-(value.length - 1));
  const head = value.slice(0, min);
  for (let at = tail.indexOf(head); at !== -1; at = tail.indexOf(head, at + 1)) if (value.startsWith(tail.slice(at))) return tail.length - at;
  return 0;
}

const BASE64_RUN = /[A-Za-z0-9+/=_-]/;
const HEX_RUN = /[0-9a-fA-F]/;

/** How programs write a value: as it is, escaped, percent-encoded, in hex, and in base64 at each of the three places it can have in a group. */
function formsOf(value: string): { needle: string; widen: RegExp | undefined }[] {
  const bytes = Buffer.from(value, "utf8");
  const plain = [
    value,
    JSON.stringify(value).slice(1, -1),
    JSON.stringify(value).slice(1, -1).replaceAll("/", "\\/"),
    encodeURIComponent(value),
    encodeURIComponent(value).replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    new URLSearchParams({ v: value }).toString().slice(2),
    [...bytes].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join(""),
    [...bytes].map((byte) => `%${byte.toString(16).padStart(2, "0").toUpperCase()}`).join(""),
    withoutInvisible(value),
  ];
  const hex = [bytes.toString("hex"), bytes.toString("hex").toUpperCase()];
  const base64 = [0, 1, 2].flatMap((offset) => {
    const shifted = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString("base64")
      .replace(/=+$/, "");
    // The first and last groups also hold bits of the neighbours: keep what depends on the value alone.
    const from = offset === 0 ? 0 : offset + 1;
    const to = shifted.length - ((bytes.length + offset) % 3 === 0 ? 0 : 1);
    const stable = shifted.slice(from, to);
    return [stable, stable.replaceAll("+", "-").replaceAll("/", "_")];
  });
  const unique = (forms: string[], widen: RegExp | undefined) =>
    [...new Set(forms)].filter((needle) => needle.length >= KNOWN_LENGTH_MIN).map((needle) => ({ needle, widen }));
  return [...unique(plain, undefined), ...unique(hex, HEX_RUN), ...unique(base64, BASE64_RUN)];
}

/** An encoded value stands in a longer encoded run: the whole run goes. */
function widened(text: string, match: Match, run: RegExp): Match {
  let { start, end } = match;
  while (start > 0 && run.test(text[start - 1]!)) start--;
  while (end < text.length && run.test(text[end]!)) end++;
  return { ...match, start, end };
}

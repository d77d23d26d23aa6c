// Secrets by where they stand: after Authorization or Cookie, in a URL's user part, as the value of a key that is named like a secret, inside a PEM
// block, or as a random-looking word next to such a name. Anchored searches with bounded reach: no text can make them slow.
import { entropy, type Match } from "./known-secrets.ts";

const PEM_MAX = 65_536;
const RUN_MAX = 512;
/** ASCII lower case that keeps every index. */
const lowered = (text: string): string => {
  const lower = text.toLowerCase();
  return lower.length === text.length ? lower : text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
};

/** Without one of these in it a text has nothing structural: most texts. */
const HINT = /-----begin|:\/\/|pass|pwd|secret|token|key|_auth|authorization|bearer|cookie|credential|session|access.id|connection.?string/i;

/** Everything structural in a text. Replacements of an earlier pass are left alone. */
export function findStructural(text: string): Match[] {
  if (!HINT.test(text)) return [];
  const lower = lowered(text);
  return [...pemBlocks(text, lower), ...headers(text, lower), ...urlUsers(text), ...namedValues(text, lower)].filter(
    ({ start }) => !text.startsWith("[REDACTED:", start),
  );
}

/** Where a word stands in a text. */
function occurrences(text: string, word: string): number[] {
  let at = text.indexOf(word);
  if (at === -1) return NOWHERE;
  const found: number[] = [];
  for (; at !== -1; at = text.indexOf(word, at + word.length)) found.push(at);
  return found;
}
const NOWHERE: number[] = [];

const PEM_BEGIN = /-----begin [a-z0-9 ]{0,40}private key(?: block)?-----/y;
/** Whole private keys; one without an end goes to the end of the text. Line ends may be written as two characters, or carry diff marks. */
function pemBlocks(text: string, lower: string): Match[] {
  const matches: Match[] = [];
  let noEnd = false;
  for (const start of occurrences(lower, "-----begin ")) {
    if (start < (matches.at(-1)?.end ?? 0)) continue;
    PEM_BEGIN.lastIndex = start;
    if (!PEM_BEGIN.test(lower)) continue;
    const from: number = noEnd ? -1 : lower.indexOf("-----end", PEM_BEGIN.lastIndex);
    noEnd ||= from === -1;
    const close = from === -1 || from - start > PEM_MAX ? -1 : lower.indexOf("-----", from + 8);
    matches.push({ start, end: close === -1 ? Math.min(text.length, start + PEM_MAX) : close + 5, kind: "private-key" });
  }
  return matches;
}

const AFTER_AUTHORIZATION = /(?:["'`\]]{0,2})[ \t]{0,8}(?:[:=]|=>)[ \t]{0,8}["'`]{0,2}/y;
const SCHEME = /(?:bearer|basic|token|digest|apikey|negotiate|aws4-hmac-sha256|hmac)[ \t]{1,8}/iy;
const CREDENTIAL = /[^\s"'`<>\\,;]{6,4096}/y;
const BEARER = /[ \t]{1,8}["'`]{0,1}([A-Za-z0-9._~+/=-]{8,4096})/y;
const COOKIE = /(?:["'`]{0,1})[ \t]{0,8}[:=][ \t]{0,8}["'`]{0,1}([^\r\n"'`]{6,4096})/y;

function headers(text: string, lower: string): Match[] {
  const matches: Match[] = [];
  for (const at of occurrences(lower, "authorization")) {
    const value = sticky(AFTER_AUTHORIZATION, text, at + 13);
    if (!value) continue;
    const scheme = sticky(SCHEME, text, value.end);
    const credential = sticky(CREDENTIAL, text, scheme?.end ?? value.end);
    if (credential && (scheme || /[\d_-]/.test(text.slice(credential.start, credential.end)))) matches.push({ ...credential, kind: "authorization" });
  }
  for (const at of occurrences(lower, "bearer")) {
    if (at < (matches.at(-1)?.end ?? 0)) continue;
    const found = group(BEARER, text, at + 6);
    if (found && looksRandom(text.slice(found.start, found.end))) matches.push({ ...found, kind: "bearer" });
  }
  for (const at of occurrences(lower, "cookie")) {
    if (at < (matches.at(-1)?.end ?? 0)) continue;
    const found = group(COOKIE, text, at + 6);
    if (found && text.slice(found.start, found.end).includes("=")) matches.push({ ...found, kind: "cookie" });
  }
  return matches;
}

const USER = /([^\s/@:"'`<>\\?#[]{0,256}):([^\s/@"'`<>\\]{1,1024})@/y;
const USER_CUT = /[^\s/@:"'`<>\\?#[]{1,256}:([^\s/@"'`<>\\?#]{3,1024})$/y;
const USER_TOKEN = /([A-Za-z0-9_.~-]{16,256})@/y;
/** `https://user:password@host`; at the end of a text also one whose host is still to come. */
function urlUsers(text: string): Match[] {
  const matches: Match[] = [];
  for (const at of occurrences(text, "://")) {
    const user = group(USER, text, at + 3, 2) ?? group(USER_TOKEN, text, at + 3) ?? cutUser(text, at + 3);
    if (user) matches.push({ ...user, kind: "url-password" });
  }
  return matches;
}
function cutUser(text: string, at: number): Span | undefined {
  if (text.length - at > 1300) return undefined;
  const found = group(USER_CUT, text, at);
  return found && !/^\d{1,5}$/.test(text.slice(found.start, found.end)) ? found : undefined; // host:port is no user
}

/** A key is named like a secret when it ends with one of these words. */
const WORDS = [
  ...["password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "api_key", "api-key", "api key", "access_key", "access-key"],
  ...["accesskey", "secret_key", "secret-key", "secretkey", "private_key", "private-key", "privatekey", "auth_key", "authkey", "account_key"],
  ...["accountkey", "signing_key", "signing-key", "encryption_key", "encryption-key", "key_base", "credential", "credentials", "_pass", "dbpass"],
  ...[
    "session_id",
    "sessionid",
    "session-id",
    "_auth",
    "client_key",
    "master_key",
    "license_key",
    "access_id",
    "connectionstring",
    "connection_string",
  ],
];
/** What may stand between the name and its value. */
const SEPARATOR = /(?:[_-]?(?:value|base64|b64|v?\d{1,2}))?["'`\]]{0,2}([ \t]{0,16})(=>|:=|==?|:)([ \t]{0,16})/iy;
const QUOTED = /(\\?["'`])((?:(?!\1)[^\r\n]){1,4096})/y;
const UNQUOTED = /[^\s"'`<>,;&|(){}[\]\\]{1,4096}/y;
const EMPTY_WORDS =
  /^(?:true|false|null|none|nil|undefined|yes|no|on|off|required|optional|missing|invalid|expired|unset|empty|string|number|boolean|redacted|hidden|process\.env.*|os\.environ.*|env\..*|\$.*|%.*%|<.*|\*+|\.{2,}|x{3,}|-+)$/i;
const LOW_MEANING = /token|session|key|_auth/;

function namedValues(text: string, lower: string): Match[] {
  const matches: Match[] = [];
  for (const word of WORDS) {
    let until = 0; // what a match covers is not looked at again: values full of names would cost their square
    for (const at of occurrences(lower, word)) {
      if (at < until) continue;
      const found = valueAfter(text, lower, at, word) ?? randomAfter(text, at + word.length);
      if (!found) continue;
      matches.push(found);
      until = found.end;
    }
  }
  return matches;
}

function valueAfter(text: string, lower: string, at: number, word: string): Match | undefined {
  SEPARATOR.lastIndex = at + word.length;
  const separator = SEPARATOR.exec(text);
  if (!separator) return undefined;
  const [, before = "", sign, after = ""] = separator;
  const start = SEPARATOR.lastIndex;
  const kind = word.includes("pass") || word === "pwd" ? "password" : "named-secret";
  const quoted = group(QUOTED, text, start, 2);
  if (quoted) {
    const value = text.slice(quoted.start, quoted.end);
    return hasMeaning(value, word) ? { ...quoted, kind } : undefined;
  }
  const bare = sticky(UNQUOTED, text, start);
  if (!bare) return undefined;
  const value = text.slice(bare.start, bare.end);
  if (!hasMeaning(value, word)) return undefined;
  const tight = sign !== ":" && before === "" && after === "";
  const alone = ownLine(text, lower, at, bare.end);
  if (tight || alone || looksRandom(value)) return { ...bare, kind };
  return undefined;
}

/** `key: value` or `key = value` with nothing else on its line (a list mark, `export` and diff signs aside). */
function ownLine(text: string, lower: string, at: number, end: number): boolean {
  const from = Math.max(text.lastIndexOf("\n", at - 1) + 1, at - 120);
  const lead = lower.slice(from, at);
  if (!/^[\s+\->]{0,16}(?:export |set |env )?[\w.-]{0,80}$/.test(lead)) return false;
  const rest = text.slice(end, end + 8);
  return /^[ \t]{0,4}(?:$|[\r\n#,])/.test(rest);
}

function hasMeaning(value: string, word: string): boolean {
  if (EMPTY_WORDS.test(value) || value.startsWith("[REDACTED")) return false;
  return !(LOW_MEANING.test(word) && /^\d{1,15}$/.test(value)); // a count or a fencing token
}

/** A mixed run of 32 characters and more shortly after a secret's name, on its line: prose such as "the token is …". */
const NEAR = /[^\r\nA-Za-z0-9]{1,4}(?:[a-z]{1,12}[^\r\nA-Za-z0-9]{1,4}){0,3}([A-Za-z0-9+/_=-]{32,512})/y;
function randomAfter(text: string, at: number): Match | undefined {
  const found = group(NEAR, text, at);
  if (!found) return undefined;
  const value = text.slice(found.start, Math.min(found.end, found.start + RUN_MAX));
  const mixed = /[a-z]/.test(value) && /[A-Z]/.test(value) && /\d/.test(value);
  return mixed && !value.includes("/src/") && entropy(value) > 4 ? { ...found, kind: "high-entropy" } : undefined;
}

/** Not a word and not a number: letters and digits mixed, or long and of many kinds. */
function looksRandom(value: string): boolean {
  if (value.length < 8 || /^[A-Za-z]+[.,;:!?]?$/.test(value)) return value.length >= 24 && entropy(value) > 3.8;
  return /\d/.test(value) && /[A-Za-z]/.test(value) && !/^v?\d+(?:\.\d+)+$/.test(value);
}

type Span = { start: number; end: number };
function sticky(pattern: RegExp, text: string, at: number): Span | undefined {
  pattern.lastIndex = at;
  const found = pattern.exec(text);
  return found ? { start: at, end: at + found[0].length } : undefined;
}
/** The span of a captured group; what follows the group must not be part of the match. */
function group(pattern: RegExp, text: string, at: number, index = 1): Span | undefined {
  pattern.lastIndex = at;
  const found = pattern.exec(text);
  if (!found) return undefined;
  const captured = found[index]!;
  const start = at + found[0].lastIndexOf(captured);
  return { start, end: start + captured.length };
}

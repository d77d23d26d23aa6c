// Text from agents. Invariant: it is escaped, bounded, in a block of its own when it has lines, and what hides or turns around is drawn as a token.
/** @jsxImportSource #jsx */
import type { Child, Html } from "../jsx/jsx-runtime.ts";
import { Icon } from "./icon.tsx";

/** Characters of one text that are shown at most; the rest is counted, not sent. */
const SHOWN_CHARACTERS_MAX = 16_000;
const LINE_CHARACTERS_MAX = 200;
const TITLE_CHARACTERS_MAX = 1_000;
/** Tokens drawn in one text; a text made of hidden characters must not become a page of markup. */
const TOKENS_MAX = 500;

const NAMES: Record<number, string> = {
  0: "null",
  7: "bell",
  8: "backspace",
  13: "carriage return",
  27: "escape",
  127: "delete",
  173: "soft hyphen",
  1564: "Arabic letter mark",
  8203: "zero-width space",
  8204: "zero-width non-joiner",
  8205: "zero-width joiner",
  8206: "left-to-right mark",
  8207: "right-to-left mark",
  8232: "line separator",
  8233: "paragraph separator",
  8234: "left-to-right embedding",
  8235: "right-to-left embedding",
  8236: "pop directional formatting",
  8237: "left-to-right override",
  8238: "right-to-left override",
  8288: "word joiner",
  8294: "left-to-right isolate",
  8295: "right-to-left isolate",
  8296: "first strong isolate",
  8297: "pop directional isolate",
  12644: "Hangul filler",
  65279: "byte order mark",
};

// Control characters except newline and tab; bidi and zero-width; fillers; invisible operators; tags; variation selectors that no emoji wears.
const HIDDEN_CLASS =
  "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\u{e0000}-\\u{e0fff}";
/** A terminal sequence (ESC [ 31 m), or one hidden character repeated. */
const HIDDEN = new RegExp(`\\x1b\\[[0-9;?]*[ -/]*[@-~]|([${HIDDEN_CLASS}])\\1*`, "gu");
const ANY_HIDDEN = new RegExp(`[${HIDDEN_CLASS}]`, "u");
/** The joiners inside emoji hide nothing. */
const EMOJI_GLUE =
  /(?<=\p{Extended_Pictographic}|\p{Emoji_Modifier})(\ufe0f\u200d|\u200d|\ufe0f)(?=\p{Extended_Pictographic})|(?<=\p{Emoji})\ufe0f/gu;
const LATIN = /\p{Script=Latin}/u;
const LOOKALIKE = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\uff21-\uff5a]/u;

const codeOf = (char: string): string => `U+${char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
const nameOf = (char: string): string => {
  const code = char.codePointAt(0)!;
  if (NAMES[code]) return NAMES[code];
  if (code >= 0xe0000) return "invisible tag or selector";
  return code < 0xa0 ? "control character" : "invisible character";
};

/** A character that cannot be seen, drawn as a token that can. `what` is its name, `label` what stands in its place. */
const ControlChar = ({ label, what }: { label: string; what: string }) => (
  <span class="ctl" title={what}>
    {label}
  </span>
);

function token(hidden: string): Html {
  if (hidden.startsWith("\u001b[")) return <ControlChar label={`ESC${hidden.slice(1)}`} what="terminal code" />;
  const [char = ""] = hidden;
  const times = [...hidden].length;
  return <ControlChar label={times > 1 ? `${codeOf(char)} ×${times}` : codeOf(char)} what={nameOf(char)} />;
}

/** Where the emoji glue stands, so that it is left alone. */
function glueOf(text: string): Set<number> {
  const at = new Set<number>();
  for (const match of text.matchAll(EMOJI_GLUE)) for (let i = 0; i < match[0].length; i++) at.add(match.index + i);
  return at;
}

/** Text as children, each hidden character replaced by a token. CRLF counts as a newline. */
export function marked(text: string): Child {
  const lines = text.includes("\r\n") ? text.replaceAll("\r\n", "\n") : text;
  if (!ANY_HIDDEN.test(lines)) return lines;
  const glue = glueOf(lines);
  const out: Child[] = [];
  let from = 0;
  for (const match of lines.matchAll(HIDDEN)) {
    if (glue.has(match.index)) continue;
    out.push(lines.slice(from, match.index), out.length < 2 * TOKENS_MAX ? token(match[0]) : "\u00b7");
    from = match.index + match[0].length;
  }
  out.push(lines.slice(from));
  return out;
}

/** How many hidden characters a text has, for the label above it. */
export function hiddenIn(text: string): number {
  const lines = text.replaceAll("\r\n", "\n");
  if (!ANY_HIDDEN.test(lines)) return 0;
  const glue = glueOf(lines);
  let count = 0;
  for (const match of lines.matchAll(HIDDEN)) if (!glue.has(match.index)) count += match[0].startsWith("\u001b[") ? 1 : [...match[0]].length;
  return count;
}

function lookalikes(name: string): Child {
  if (!LATIN.test(name) || !LOOKALIKE.test(name)) return marked(name);
  return [...name].map((char) => (LOOKALIKE.test(char) ? <ControlChar label={char} what={`${codeOf(char)}, not a Latin letter`} /> : marked(char)));
}

/** A name an agent gave itself, in a line of ours: isolated, on one line, hidden characters and letters of another alphabet marked. */
export const Name = ({ text }: { text: string }) => <bdi>{lookalikes(shorten(text.replace(/\s+/gu, " "), LINE_CHARACTERS_MAX))}</bdi>;

/** One line of agent text inside a table or a list, at most `max` characters (200). Newlines become spaces. */
export const Line = ({ text, max = LINE_CHARACTERS_MAX }: { text: string; max?: number }) => {
  const line = text.replace(/[\n\t ]+/g, " ").trim();
  return <bdi title={line.length > max ? visible(line) : undefined}>{marked(shorten(line, max))}</bdi>;
};

/** The first `max` characters at most; a character of two halves is not cut apart. */
function cut(text: string, max: number): string {
  const last = text.charCodeAt(max - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? max - 1 : max);
}
const shorten = (text: string, max: number): string => (text.length > max ? `${cut(text, max - 1)}…` : text);

/** Text for where no markup can stand (a title, a label): hidden characters become `[U+202E]`. At most 1,000 characters. */
export const visible = (text: string): string =>
  ANY_HIDDEN.test(text)
    ? shorten(text, TITLE_CHARACTERS_MAX).replace(HIDDEN, (hidden) => `[${codeOf(hidden)}]`)
    : shorten(text, TITLE_CHARACTERS_MAX);

/** A long text scrolls inside its block, so a keyboard must be able to reach it. */
const scrolls = (text: string): boolean => text.length > 1200 || (text.match(/\n/g)?.length ?? 0) > 15;

type UntrustedProps = {
  /** Who wrote it: the name as registered. */
  by: string;
  /** Raw text, never markup. */
  text: string;
  /** What it is: `message body`. Hidden characters are counted beside it. */
  note?: string;
  /** A control at the right of the label. */
  right?: Child;
  /** Characters shown at most (16,000). */
  max?: number;
};

/** The only block for agent text that has lines. Labelled by us, hatched, bounded in length and height. */
export const Untrusted = ({ by, text, note, right, max = SHOWN_CHARACTERS_MAX }: UntrustedProps) => {
  const hidden = hiddenIn(text);
  const rest = text.length - max;
  const notes = [note, hidden > 0 && `${hidden} hidden ${hidden === 1 ? "character" : "characters"} marked`].filter(Boolean).join(" · ");
  return (
    <div class="untrusted" role="group" aria-label={`Text from ${visible(by)}, not verified`}>
      <div class="untrusted__label">
        <Icon name="quote" />
        <span>
          Text from <Name text={by} />
          {notes && ` · ${notes}`}
        </span>
        {right && <span class="untrusted__right">{right}</span>}
      </div>
      <div class="untrusted__text" dir="auto" tabindex={scrolls(text) ? "0" : undefined} hx-ignore>
        {marked(rest > 0 ? cut(text, max) : text)}
      </div>
      {rest > 0 && <p class="untrusted__rest">{rest.toLocaleString("en")} more characters are not shown</p>}
    </div>
  );
};

// Takes secrets out of text that comes in pieces: a piece is let go only when nothing that is still to come can make part of it a secret.
import { merge, type Redactor, replaced } from "./redactor.ts";

/** The end of the text that is held back, longer than any token; a private key that is still open is held from its beginning. */
const HOLD_CHARS = 4_096;
const HOLD_CHARS_MAX = 131_072;
/** What was let go and is kept in memory, so that a name still belongs to a value that comes later. */
const CONTEXT_CHARS = 4_096;
/** Text is looked at in stretches of this length: many small pieces must not cost a scan each. */
const STRETCH_CHARS = 16_384;

/** @param redactor whose secrets are taken out; places stay */
export function streamScrubber(redactor: Redactor) {
  let context = "";
  let held = "";
  let count = 0;

  /** Lets go of `held` up to `limit`, or up to a secret that crosses it. */
  function release(limit: number, last: boolean): string {
    const joined = context + held;
    const offset = context.length;
    const found = last ? redactor.findAtEnd(joined) : redactor.find(joined);
    const matches = merge(found).map((match) => ({ ...match, start: match.start - offset, end: match.end - offset }));
    const crossing = matches.find(({ start, end }) => start < limit && end > limit && held.length - start < HOLD_CHARS_MAX);
    const cut = Math.max(0, crossing ? crossing.start : limit);
    const inside = matches
      .filter(({ start, end }) => end > 0 && start < cut)
      .map((match) => ({ ...match, start: Math.max(0, match.start), end: Math.min(match.end, cut) }));
    const scrubbed = replaced(held.slice(0, cut), inside);
    count += scrubbed.replaced;
    context = joined.slice(0, offset + cut).slice(-CONTEXT_CHARS);
    held = held.slice(cut);
    return scrubbed.text;
  }

  return {
    /** Takes the next piece; answers what may be written now, often nothing. */
    push: (piece: string): string => {
      held += piece;
      return held.length < HOLD_CHARS + STRETCH_CHARS ? "" : release(held.length - HOLD_CHARS, false);
    },
    /** The source is quiet: lets go of whole lines, but of no secret that may still go on. */
    quiet: (): string => {
      const line = held.lastIndexOf("\n") + 1;
      return line === 0 ? "" : release(line, false);
    },
    /** The source ended: lets go of everything. */
    end: (): string => (held === "" ? "" : release(held.length, true)),
    /** Places that were taken out so far. */
    get replaced() {
      return count;
    },
  };
}

// The same text as another reader would see it: JSON escapes, percent escapes and invisible characters undone, with the way back to the original.

/** A reading of a text. `at[i]` is where character i of it begins in the original; `at[text.length]` is the original's end. */
export type View = { text: string; at: Uint32Array | undefined };

const HEX = /^[0-9a-fA-F]+$/;
/** Terminal sequences, control characters but tab and line ends, bidirectional and zero-width marks: what a person does not see. */
const INVISIBLE =
  /(?:\u001b\[[0-9;?]{0,32}[ -/]{0,4}[@-~]|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff])/g;

/** Every reading of a text that differs from it, itself first. At most five. */
export function viewsOf(text: string): View[] {
  const views: View[] = [{ text, at: undefined }];
  const add = (view: View | undefined) => {
    if (view) views.push(view);
    return view;
  };
  if (text.search(INVISIBLE) !== -1) add(visible(text));
  if (text.includes("\\")) {
    const once = add(unescaped({ text, at: undefined }));
    if (once?.text.includes("\\")) add(unescaped(once));
  }
  if (text.includes("%")) {
    const once = add(percentDecoded({ text, at: undefined }));
    if (once?.text.includes("%")) add(percentDecoded(once));
  }
  return views;
}

/** The text without what a person does not see. */
export const withoutInvisible = (text: string): string => text.replace(INVISIBLE, "");

/** Collects a new text and its way back. Pieces are copied whole, so a long plain stretch costs one step. */
function builder(source: View) {
  const at = new Uint32Array(source.text.length + 1);
  const back = (index: number) => (source.at ? source.at[index]! : index);
  const pieces: string[] = [];
  let length = 0;
  return {
    copy(from: number, to: number) {
      if (from === to) return;
      pieces.push(source.text.slice(from, to));
      for (let index = from; index < to; index++) at[length++] = back(index);
    },
    put(character: string, from: number) {
      pieces.push(character);
      at[length++] = back(from);
    },
    view(): View {
      at[length] = back(source.text.length);
      return { text: pieces.join(""), at };
    },
  };
}

function visible(text: string): View {
  const out = builder({ text, at: undefined });
  let from = 0;
  for (const found of text.matchAll(INVISIBLE)) {
    out.copy(from, found.index);
    from = found.index + found[0].length;
  }
  out.copy(from, text.length);
  return out.view();
}

const SIMPLE: Record<string, string> = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f", '"': '"', "'": "'", "\\": "\\", "/": "/" };

/** JSON and shell escapes undone: `\n`, `\"`, `\u0067`, `\x67`. */
function unescaped(source: View): View | undefined {
  const { text } = source;
  const out = builder(source);
  let from = 0;
  let changed = false;
  for (let slash = text.indexOf("\\"); slash !== -1; slash = text.indexOf("\\", from)) {
    out.copy(from, slash);
    const kind = text[slash + 1] ?? "";
    const digits = kind === "u" ? text.slice(slash + 2, slash + 6) : kind === "x" ? text.slice(slash + 2, slash + 4) : "";
    const simple = SIMPLE[kind];
    const whole = (kind === "u" && digits.length === 4) || (kind === "x" && digits.length === 2);
    if (whole && HEX.test(digits)) {
      out.put(String.fromCharCode(Number.parseInt(digits, 16)), slash);
      from = slash + 2 + digits.length;
      changed = true;
    } else if (simple !== undefined) {
      out.put(simple, slash);
      from = slash + 2;
      changed = true;
    } else {
      out.copy(slash, slash + 1);
      from = slash + 1;
    }
  }
  out.copy(from, text.length);
  return changed ? out.view() : undefined;
}

/** `%41` undone for ASCII; bytes beyond it stay as they are, since known values are also searched in their encoded form. */
function percentDecoded(source: View): View | undefined {
  const { text } = source;
  const out = builder(source);
  let from = 0;
  let changed = false;
  for (let percent = text.indexOf("%"); percent !== -1; percent = text.indexOf("%", from)) {
    out.copy(from, percent);
    const digits = text.slice(percent + 1, percent + 3);
    const code = digits.length === 2 && HEX.test(digits) ? Number.parseInt(digits, 16) : 255;
    if (code < 128) {
      out.put(String.fromCharCode(code), percent);
      from = percent + 3;
      changed = true;
    } else {
      out.copy(percent, percent + 1);
      from = percent + 1;
    }
  }
  out.copy(from, text.length);
  return changed ? out.view() : undefined;
}

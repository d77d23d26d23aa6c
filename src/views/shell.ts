// Commands to copy into a terminal. Invariant: a word from elsewhere is quoted so that a shell reads it as one word, or the command is not offered.

const PLAIN = /^[\w@%+=:,./-]+$/;
/** What a terminal or a reader could take for something else: control characters, line breaks, what cannot be seen or turns around. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/**
 * A command line of ours around words from elsewhere: command`kxm lease list ${name}`.
 * @returns undefined when a word cannot be quoted safely, or would be read as an option
 */
export function command(ours: TemplateStringsArray, ...words: readonly string[]): string | undefined {
  if (words.some((word) => word === "" || word.startsWith("-") || UNSAFE.test(word))) return undefined;
  const quoted = words.map((word) => (PLAIN.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`));
  return String.raw({ raw: ours }, ...quoted);
}

// Words of a text, as retrieval compares them: NFKC, lower case, 2 to 64 letters or digits, without stop words, plurals folded.

const STOP = new Set(
  "a an and are as at be been but by can could did do does for from had has have how if in into is it its may might more most no nor not of on or our shall should so than that the their them then there these they this those to too was we were what when where which while who why will with would you your".split(
    " ",
  ),
);

/** Folds the common English plurals; other words stay as they are. */
function singular(word: string): string {
  if (word.length > 4 && word.endsWith("ies")) return `${word.slice(0, -3)}y`;
  if (word.length > 4 && /(?:ses|xes|zes|ches|shes)$/.test(word)) return word.slice(0, -2);
  if (word.length > 3 && word.endsWith("s") && !/(?:ss|us|is)$/.test(word)) return word.slice(0, -1);
  return word;
}

/** The words of a text in order, repeats included. */
export function wordsOf(text: string): string[] {
  const words =
    text
      .normalize("NFKC")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.filter((word) => word.length >= 2 && word.length <= 64 && !STOP.has(word)).map(singular);
}

// BM25 over a pool of short texts, kept in memory and changed one text at a time. k1 and b are the usual 1.2 and 0.75 (Robertson and Zaragoza, 2009).
// Postings are flat arrays of [text number, count, …]: a hundred thousand texts take tens of megabytes.
import { wordsOf } from "./words.ts";

const K1 = 1.2;
const B = 0.75;

export interface Bm25 {
  /** Adds a text under an id that is not in the index. */
  add(id: string, text: string): void;
  /** Takes it out again; the text must be the one that was added. */
  remove(id: string, text: string): void;
  /** Score of every text that shares a word with the query; all others score 0. */
  score(query: string): Map<string, number>;
}

/** An empty index. Scores do not depend on the order in which texts were added. */
export function createBm25(): Bm25 {
  const postings = new Map<string, number[]>();
  const numbers = new Map<string, number>();
  const ids: (string | undefined)[] = [];
  const lengths: number[] = [];
  let total = 0;

  function take(id: string): number {
    const number = ids.length;
    numbers.set(id, number);
    ids.push(id);
    return number;
  }
  return {
    add(id, text) {
      const words = wordsOf(text);
      const number = take(id);
      lengths[number] = words.length;
      total += words.length;
      for (const [word, count] of countsOf(words)) {
        const posting = postings.get(word);
        if (posting) posting.push(number, count);
        else postings.set(word, [number, count]);
      }
    },
    remove(id, text) {
      const number = numbers.get(id);
      if (number === undefined) return;
      for (const word of new Set(wordsOf(text))) {
        const posting = postings.get(word);
        for (let at = 0; posting && at < posting.length; at += 2) {
          if (posting[at] !== number) continue;
          posting.splice(at, 2);
          break;
        }
        if (posting?.length === 0) postings.delete(word);
      }
      total -= lengths[number]!;
      numbers.delete(id);
      ids[number] = undefined;
    },
    score(query) {
      const sums = new Map<number, number>();
      const average = numbers.size === 0 ? 0 : total / numbers.size;
      for (const word of [...new Set(wordsOf(query))].sort()) {
        const posting = postings.get(word);
        if (!posting) continue;
        const frequency = posting.length / 2;
        const idf = Math.log(1 + (numbers.size - frequency + 0.5) / (frequency + 0.5));
        for (let at = 0; at < posting.length; at += 2) {
          const [number, count] = [posting[at]!, posting[at + 1]!];
          sums.set(number, (sums.get(number) ?? 0) + (idf * count * (K1 + 1)) / (count + K1 * (1 - B + (B * lengths[number]!) / average)));
        }
      }
      return new Map([...sums].flatMap(([number, score]) => (ids[number] === undefined ? [] : [[ids[number], score] as const])));
    },
  };
}

function countsOf(words: string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

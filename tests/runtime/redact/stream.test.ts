// Text in pieces: wherever a secret is cut, no part of it is let go, and everything else comes out as it went in.
import { expect, test } from "bun:test";
import { knownSecrets } from "../../../src/runtime/redact/known-secrets.ts";
import { createRedactor } from "../../../src/runtime/redact/redactor.ts";
import { streamScrubber } from "../../../src/runtime/redact/stream.ts";
import { corpus, leaks, seeded } from "./corpus.ts";

const redactor = createRedactor(knownSecrets());
const through = (pieces: string[], quiet = false): string => {
  const stream = streamScrubber(redactor);
  const out = pieces.map((piece) => stream.push(piece) + (quiet ? stream.quiet() : ""));
  return out.join("") + stream.end();
};

test("every cut of every shape over two and three pieces gives the text without the secret", () => {
  for (const { shape, text, core } of corpus(seeded(11))) {
    const [before, after] = ["first line\nthe program said ", " and went on\nlast line\n"];
    const whole = before + text + after;
    const expected = through([whole]);
    expect([shape, leaks(expected, core)]).toEqual([shape, false]);
    for (let cut = before.length; cut <= before.length + text.length; cut++) {
      expect([shape, cut, through([whole.slice(0, cut), whole.slice(cut)])]).toEqual([shape, cut, expected]);
      const next = cut + 7;
      expect([shape, cut, through([whole.slice(0, cut), whole.slice(cut, next), whole.slice(next)])]).toEqual([shape, cut, expected]);
    }
  }
});

test("a long text passes unchanged, in any pieces, and is not held for ever", () => {
  const random = seeded(4);
  const line = () => `${Array.from({ length: 12 }, () => Math.floor(random() * 900 + 100)).join(" ")} done\n`;
  const text = Array.from({ length: 4000 }, line).join("");
  const pieces: string[] = [];
  for (let at = 0; at < text.length; ) {
    const size = 1 + Math.floor(random() * 300);
    pieces.push(text.slice(at, at + size));
    at += size;
  }
  const stream = streamScrubber(redactor);
  let out = "";
  let held = 0;
  let given = 0;
  for (const piece of pieces) {
    given += piece.length;
    out += stream.push(piece);
    held = Math.max(held, given - out.length);
  }
  expect(held).toBeLessThan(25_000);
  expect(out + stream.end()).toBe(text);
});

test("secrets at the seams of long stretches are found, each once", () => {
  const samples = corpus(seeded(12)).filter(({ shape }) => !/pem|gcp|url|cookie|header|env|aws-secret|bearer/.test(shape));
  const text = samples.map(({ text }, index) => `${"lorem ipsum dolor ".repeat(400 + index * 7)}${text}\n`).join("");
  for (const size of [1000, 4097, 16_385, 50_000]) {
    const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, index) => text.slice(index * size, (index + 1) * size));
    const out = through(pieces);
    for (const { shape, core } of samples) expect([size, shape, leaks(out, core)]).toEqual([size, shape, false]);
    expect(out.split("[REDACTED:").length - 1).toBe(samples.length);
  }
});

test("a quiet source shows whole lines at once, but no half of a key", () => {
  const key = corpus(seeded(13)).find(({ shape }) => shape === "pem-rsa")!;
  const half = key.text.indexOf(key.core) + 20;
  const stream = streamScrubber(redactor);
  expect(stream.push("one line\nhalf a li") + stream.quiet()).toBe("one line\n");
  expect(stream.push(`ne\n${key.text.slice(0, half)}`) + stream.quiet()).toBe("half a line\n");
  expect(stream.quiet()).toBe("");
  expect(stream.push(`${key.text.slice(half)}\nafter\n`) + stream.quiet()).toBe("[REDACTED:private-key]\nafter\n");
  expect(stream.end()).toBe("");
  expect(stream.replaced).toBe(1);
});

// Prompts and transcripts: kept whole and in order, without their secrets, wherever a long text is cut into pieces.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { knownSecrets } from "../../../src/runtime/redact/known-secrets.ts";
import { createRedactor } from "../../../src/runtime/redact/redactor.ts";
import { openPromptStore } from "../../../src/runtime/store/prompts.ts";
import { corpus, leaks, seeded } from "../redact/corpus.ts";
import { fakeClock, temporaryFolder } from "../support.ts";

const open = (path = ":memory:") => openPromptStore(path, { redactor: createRedactor(knownSecrets()), clock: fakeClock() });

test("a prompt is found by the hash of what is kept, and the same prompt is kept once", () => {
  const prompts = open();
  const hash = prompts.keep("do it");
  expect(hash).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(prompts.keep("do it")).toBe(hash);
  expect(prompts.prompt(hash)).toBe("do it");
  expect(prompts.prompt(`sha256:${"0".repeat(64)}`)).toBeUndefined();
});

test("a long transcript comes back whole, and a key that lies over the seam of two pieces is gone", () => {
  using folder = temporaryFolder();
  const prompts = open(folder.file("prompts.db"));
  const of = { attemptId: "att_0123456789", runId: "run_0123456789", stream: "stdout" };
  const plain = Array.from({ length: 20_000 }, (_, index) => `line ${index} of the build\n`).join("");
  prompts.addTranscript({ ...of, text: plain });
  const pieces = prompts.transcript(of.attemptId);
  expect(pieces.map(({ ordinal }) => ordinal)).toEqual(pieces.map((_, index) => index + 1));
  expect(pieces.map(({ text }) => text).join("")).toBe(plain);
  expect(pieces.length).toBeGreaterThan(4);
  const key = corpus(seeded(31)).find(({ shape }) => shape === "pem-rsa")!;
  prompts.addTranscript({ ...of, attemptId: "att_with_a_key", text: `${"x".repeat(65_500)}\n${key.text}\n${plain}` });
  expect(
    prompts
      .transcript("att_with_a_key")
      .map(({ text }) => text)
      .join(""),
  ).toContain("[REDACTED:private-key]\nline 0");
  prompts.close();
  expect(leaks(readFileSync(folder.file("prompts.db"), "latin1"), key.core, 12)).toBeFalse();
});

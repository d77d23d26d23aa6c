// Prompts and transcripts of one project: on this machine only, never synced, with secrets taken out before they are written.
import type { Database } from "bun:sqlite";
import { sha256 } from "../../protocol/canonical.ts";
import type { Clock } from "../clock.ts";
import type { Redactor } from "../redact/redactor.ts";
import { streamScrubber } from "../redact/stream.ts";
import { closeDatabase, immediately, openDatabase, storeRefusal } from "./database.ts";
import sql from "./prompts-migrations/0001_prompts.sql" with { type: "text" };

export type TranscriptPiece = { attemptId: string; ordinal: number; runId: string; stream: string; text: string; recordedAt: number };
export type PromptStore = ReturnType<typeof openPromptStore>;

/** Characters of one stored piece, about. */
const PIECE_CHARS = 65_536;

function* scrubbedPieces(text: string, redactor: Redactor): Generator<string> {
  const scrubber = streamScrubber(redactor);
  for (let start = 0; start < text.length; start += PIECE_CHARS) {
    const piece = scrubber.push(text.slice(start, start + PIECE_CHARS));
    if (piece !== "") yield piece;
  }
  const last = scrubber.end();
  if (last !== "") yield last;
}

/** @param path prompts.db of the project, or `:memory:`. @throws RuntimeRefusal as openDatabase does */
export function openPromptStore(path: string, { redactor, clock }: { redactor: Redactor; clock: Clock }) {
  const db: Database = openDatabase(path, [{ name: "0001_prompts", sql }]);
  const put = db.prepare<unknown, any>("insert into prompts (hash, text, created_at) values ($hash, $text, $at) on conflict (hash) do nothing");
  const get = db.prepare<{ text: string }, any>("select text from prompts where hash = $hash");
  const add = db.prepare<unknown, any>(
    `insert into transcripts (attempt_id, ordinal, run_id, stream, text, recorded_at)
     select $attemptId, coalesce(max(ordinal), 0) + 1, $runId, $stream, $text, $at from transcripts where attempt_id = $attemptId`,
  );
  const read = db.prepare<TranscriptPiece, any>(
    `select attempt_id as attemptId, ordinal, run_id as runId, stream, text, recorded_at as recordedAt
     from transcripts where attempt_id = $attemptId and ordinal > $after order by ordinal limit $limit`,
  );
  const durable = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      throw storeRefusal(error, path);
    }
  };
  return {
    /** Keeps a prompt and answers the hash by which a run refers to it: that of the text as kept, without its secrets. */
    keep: (prompt: string): string => {
      const { text } = redactor.secrets(prompt);
      const hash = `sha256:${sha256(text)}`;
      durable(() => put.run({ hash, text, at: clock.now() }));
      return hash;
    },
    prompt: (hash: string): string | undefined => get.get({ hash })?.text,
    /** Adds what an attempt said or was told, in pieces of bounded length, none of which cuts a secret in two. */
    addTranscript: ({ text, ...of }: { attemptId: string; runId: string; stream: string; text: string }) =>
      durable(() =>
        immediately(db, () => {
          for (const piece of scrubbedPieces(text, redactor)) add.run({ ...of, text: piece, at: clock.now() });
        }),
      ),
    /** Pieces of an attempt in order. @param page.limit 1..10000 */
    transcript: (attemptId: string, page: { after?: number; limit?: number } = {}): TranscriptPiece[] =>
      read.all({ attemptId, after: page.after ?? 0, limit: page.limit ?? 1000 }),
    close: () => closeDatabase(db),
  };
}

// Keeps what an attempt was told and what it printed in the prompt store, in whole lines, so that no secret is cut in two before it is taken out.
import type { EngineContext } from "./context.ts";

/** Characters of one stored piece; a longer line stays whole. */
const PIECE_CHARS = 262_144;

/** Adds a text to an attempt's transcript. */
export function keepTranscript(context: EngineContext, runId: string, attemptId: string, stream: "prompt" | "stdout" | "stderr", text: string): void {
  for (let start = 0; start < text.length; ) {
    const cut = start + PIECE_CHARS >= text.length ? text.length : text.indexOf("\n", start + PIECE_CHARS) + 1 || text.length;
    context.prompts.addTranscript({ runId, attemptId, stream, text: text.slice(start, cut) });
    start = cut;
  }
}

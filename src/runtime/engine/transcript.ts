// Keeps what an attempt was told and what it printed in the prompt store, which takes the secrets out.
import type { EngineContext } from "./context.ts";

/** Adds a text to an attempt's transcript. */
export function keepTranscript(context: EngineContext, runId: string, attemptId: string, stream: "prompt" | "stdout" | "stderr", text: string): void {
  context.prompts.addTranscript({ runId, attemptId, stream, text });
}

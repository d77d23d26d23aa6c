// Structured log lines. Only allow-listed members are written; bodies, tokens and query strings never are. The writer is given by the program.

/** One line: what happened, and members that name things by id. Values are written as JSON, so no text can forge a line. */
export type LogLine = { event: string; level?: "info" | "warn" | "error" } & Record<string, string | number | boolean | null | undefined>;
/** Writes one line. */
export type Log = (line: LogLine) => void;

/** For tests and tools that want silence. */
export const silent: Log = () => {};

/** Where a failed query's message goes on with its values, which hold texts of agents. */
const VALUES = /\nparams: [\s\S]*$/;

/** What may be told of an unknown error: its class and message without line breaks, bounded. Never shown to a client. */
export function describeError(error: unknown): string {
  const cause = error instanceof Error && error.cause ? ` <- ${describeError(error.cause)}` : "";
  return `${error instanceof Error ? `${error.name}: ${error.message.replace(VALUES, "")}` : typeof error}${cause}`
    .replaceAll(/[\r\n]+/g, " ")
    .slice(0, 500);
}

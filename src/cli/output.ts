// What a command shows: tables and facts for people, one JSON document per result for programs (`--json`). Text of agents is made harmless here.
import { HubRefusal, HubTimeout, HubUnreachable } from "../client/http.ts";
import { ERRORS, type ErrorCode, HubError } from "../protocol/errors.ts";
import { CLI_HINTS } from "./hints.ts";
import { ownName } from "./own-name.ts";

/** How a command ended. */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, timedOut: 4 } as const;

/** Where a command runs: everything it may know of the process. Tests give their own. */
export interface World {
  env: Record<string, string | undefined>;
  cwd: string;
  /** What was piped in. `read` takes at most so many bytes. */
  stdin: { isTTY: boolean; read(max: number): Promise<string> };
  /** Writes results. */
  stdout: { write(text: string): void; isTTY: boolean; columns?: number | undefined };
  /** Writes notes, progress and failures. */
  stderr: { write(text: string): void; isTTY: boolean };
  /** Aborted by Ctrl-C or a termination signal: commands that wait end then. */
  stopping: AbortSignal;
}

/** A mistake in how a command was called, found after parsing. Ends with code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** An expected failure of a command that has no code of the hub's: a sentence, and what to do next. */
export class CommandFailed extends Error {
  override readonly name = "CommandFailed";
  constructor(
    message: string,
    readonly hint?: string,
    readonly exitCode: number = EXIT.failed,
  ) {
    super(message);
  }
}

/** A column of a table. */
export interface Column<T> {
  title: string;
  value: (row: T) => string | number | null | undefined;
  align?: "right";
  style?: (row: T) => Style | undefined;
}

export interface Output {
  readonly json: boolean;
  /** The result of the command: one JSON document with --json, else whatever `human` writes. */
  result(value: unknown, human: (out: Output) => void): void;
  /** A line on stdout; nothing with --json. Text is made harmless; style it through `styled`. */
  line(text?: string): void;
  /** Rows under titles; says `none` when there are no rows. Nothing with --json. */
  table<T>(rows: readonly T[], columns: readonly Column<T>[], none: string): void;
  /** Names and values, one a line. Values that are undefined are left out. */
  facts(pairs: readonly (readonly [string, string | number | undefined])[]): void;
  /** A note on stderr (progress, advice); shown with --json as well, because stdout stays clean. */
  note(text: string): void;
  /** What a long command is doing, on one line that is written over; only on a terminal. The next other output ends it. */
  progress(text: string): void;
  /** Text in a style, when stdout is a terminal. */
  styled(style: Style, text: string): string;
}

export type Style = "bold" | "dim" | "good" | "bad" | "warn";
const CODES: Record<Style, string> = { bold: "1", dim: "2", good: "32", bad: "31", warn: "33" };

// C0 without line feed and tab, DEL, C1, line and paragraph separators, bidirectional controls, zero-width and other invisible characters, lone surrogates.
const HARMFUL =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|(?<![\ud800-\udbff])[\udc00-\udfff]|[\ud800-\udbff](?![\udc00-\udfff])/gu;
const asEscape = (char: string) => `\\u{${char.codePointAt(0)!.toString(16)}}`;

/** Text of agents for a terminal or a log: every character that could move the cursor, hide or reorder text is written as `\u{…}`. */
export const visible = (text: string): string => text.replace(HARMFUL, asEscape);
const OUR_STYLES = /(\u001b\[(?:0|1|2|31|32|33)m)/;
/** The same for a text in which styles of ours stand: nothing else that it holds reaches a terminal. */
const visibleBetween = (text: string): string =>
  text
    .split(OUR_STYLES)
    .map((part, at) => (at % 2 === 0 ? visible(part) : part))
    .join("");
/** The same on one line, cut to `max` characters with an ellipsis. */
export const oneLine = (text: string, max = 120): string => {
  const flat = visible(text.replace(/\s*[\r\n\t]+\s*/g, " ").trim());
  return flat.length > max ? `${flat.slice(0, max - 1)}…` : flat;
};
/** JSON whose bytes are harmless on a terminal too; it means the same. */
export const harmlessJson = (value: unknown, indent?: number): string =>
  JSON.stringify(value, undefined, indent).replace(HARMFUL, (char) =>
    [...char.split("")].map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""),
  );

/** @param json whether the caller asked for JSON */
export function createOutput(world: World, json: boolean): Output {
  const colour = world.stdout.isTTY && !world.env["NO_COLOR"] && world.env["TERM"] !== "dumb";
  const paint = (style: Style | undefined, text: string) => (colour && style && text ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text);
  let progressing = false;
  const endProgress = () => {
    if (progressing) world.stderr.write("\r\u001b[K");
    progressing = false;
  };
  const write = (text: string) => {
    endProgress();
    if (!json) world.stdout.write(`${text}\n`);
  };
  const out: Output = {
    json,
    styled: (style, text) => paint(style, text),
    progress(text) {
      if (!world.stderr.isTTY) return;
      world.stderr.write(`\r\u001b[K${oneLine(text, 78)}`);
      progressing = true;
    },
    result(value, human) {
      endProgress();
      if (json) world.stdout.write(`${harmlessJson(value)}\n`);
      else human(out);
    },
    line: (text = "") => write(colour ? visibleBetween(text) : visible(text)),
    note(text) {
      endProgress();
      world.stderr.write(`${visible(asTyped(text, world))}\n`);
    },
    table(rows, columns, none) {
      if (rows.length === 0) return write(none);
      const cells = rows.map((row) => columns.map(({ value }) => oneLine(String(value(row) ?? "–"), 160)));
      const widths = columns.map(({ title }, at) => Math.max(Bun.stringWidth(title), ...cells.map((row) => Bun.stringWidth(row[at]!))));
      const pad = (text: string, at: number) => {
        const fill = " ".repeat(widths[at]! - Bun.stringWidth(text));
        if (columns[at]!.align === "right") return { before: fill, after: "" };
        return { before: "", after: at === columns.length - 1 ? "" : fill };
      };
      const put = (text: string, at: number, style: Style | undefined) => {
        const { before, after } = pad(text, at);
        return `${before}${paint(style, text)}${after}`;
      };
      write(columns.map(({ title }, at) => put(title, at, "dim")).join("  "));
      cells.forEach((row, index) => write(row.map((text, at) => put(text, at, columns[at]!.style?.(rows[index]!))).join("  ")));
    },
    facts(pairs) {
      const shown = pairs.filter(([, value]) => value !== undefined);
      const width = Math.max(0, ...shown.map(([name]) => name.length));
      for (const [name, value] of shown) write(`${paint("dim", name.padEnd(width))}  ${visible(String(value))}`);
    },
  };
  return out;
}

/** Commands to type next, as they are typed here. */
function asTyped(text: string, { cwd }: World): string {
  const name = ownName(cwd);
  return name === "kxm" ? text : text.replaceAll("`kxm ", `\`${name} `);
}

/** Tells of a failure on stderr (one JSON object with --json) and returns the exit code. Only unexpected failures show a stack. */
export function reportFailure(world: World, json: boolean, error: unknown): number {
  const failure = describeFailure(error);
  const known = { ...failure, message: asTyped(failure.message, world), ...(failure.hint && { hint: asTyped(failure.hint, world) }) };
  if (json) {
    world.stderr.write(
      `${harmlessJson({ error: known.message, ...(known.code && { code: known.code }), ...(known.hint && { hint: known.hint }), ...known.extras })}\n`,
    );
    return known.exitCode;
  }
  const red = (text: string) => (world.stderr.isTTY && !world.env["NO_COLOR"] ? `\u001b[31m${text}\u001b[0m` : text);
  world.stderr.write(`${red("kxm:")} ${visible(known.message)}${known.code ? ` (${visible(known.code)})` : ""}\n`);
  if (known.hint) world.stderr.write(`     ${visible(known.hint)}\n`);
  if (known.stack) world.stderr.write(`${visible(known.stack)}\n`);
  return known.exitCode;
}

interface Failure {
  message: string;
  code?: string;
  hint?: string | undefined;
  extras?: Record<string, unknown>;
  stack?: string;
  exitCode: number;
}

function describeFailure(error: unknown): Failure {
  if (error instanceof UsageError) return { message: error.message, exitCode: EXIT.usage };
  if (error instanceof CommandFailed) return { message: error.message, hint: error.hint, exitCode: error.exitCode };
  if (error instanceof HubRefusal)
    return {
      message: error.message,
      code: error.code,
      hint: CLI_HINTS[error.code as ErrorCode] ?? error.hint,
      extras: error.extras,
      exitCode: EXIT.failed,
    };
  if (error instanceof HubTimeout) return { message: error.message, exitCode: EXIT.timedOut };
  if (error instanceof HubUnreachable)
    return {
      message: error.message,
      hint: error.hint ?? "Start one with `kxm hub`, or name another with --hub URL or KXM_URL.",
      exitCode: EXIT.unreachable,
    };
  if (error instanceof HubError) {
    const { hint = ERRORS[error.code].hint, ...extras } = error.extras as { hint?: string };
    return { message: error.message, code: error.code, hint, extras, exitCode: EXIT.failed };
  }
  if (isRefusal(error))
    return { message: error.message, code: error.code, hint: error.hint, exitCode: UNREACHED.has(error.code) ? EXIT.unreachable : EXIT.failed };
  if (error instanceof Error && error.name === "AbortError") return { message: "interrupted", exitCode: EXIT.failed };
  const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined };
  return { message: `something unexpected went wrong: ${message}`, ...(stack && { stack }), exitCode: EXIT.failed };
}

/** Refusals that mean nobody was there to ask. */
const UNREACHED = new Set(["runtime_not_running", "runtime_imposter"]);

/** An expected refusal of another part (a store, a Runtime): it has a code and says what to do next. */
const isRefusal = (error: unknown): error is Error & { code: string; hint: string } =>
  error instanceof Error && "code" in error && typeof error.code === "string" && "hint" in error && typeof error.hint === "string";

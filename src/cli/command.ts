// How a command is written down: usage, summary, examples, options and one function. Parsing, --json, exit codes and failures are the same for all.
import { Command, CommanderError } from "commander";
import { nearest } from "../protocol/nearest.ts";
import { createOutput, type Output, reportFailure, UsageError, visible, type World } from "./output.ts";

/** What a command's function is given. `args` and `options` are as commander read them. */
export interface Call<O> {
  args: string[];
  options: O;
  out: Output;
  world: World;
}

/** An exit code, or nothing for 0. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without a return is the common case
export type Ended = number | void;

export interface CommandSpec<O> {
  /** Name and arguments: `send <to> [text]`. */
  usage: string;
  /** One sentence for the list of commands. */
  summary: string;
  /** More for --help, as plain text. */
  details?: string;
  /** Complete command lines; at least one. */
  examples: readonly string[];
  /** Adds the options; --json is there already. */
  options?: (command: Command) => Command;
  /** Run when the group is called without a command. */
  isDefault?: boolean;
  hidden?: boolean;
  /** Does the work. Returns an exit code, or nothing for 0. Throws HubError, HubRefusal, CommandFailed or UsageError for expected failures. */
  run: (call: Call<O>) => Promise<Ended> | Ended;
}

const examplesOf = new WeakMap<Command, readonly string[]>();
/** The examples a command was defined with: for the reference. */
export const examples = (command: Command): readonly string[] => examplesOf.get(command) ?? [];

/** The program's state while it parses: the world, and the code it ends with. */
export interface Session {
  world: World;
  exitCode: number;
}

const sessionOf = new WeakMap<Command, Session>();
const rootOf = (command: Command): Command => (command.parent ? rootOf(command.parent) : command);

/** Makes the program itself. */
export function createRoot(session: Session): Command {
  const root = prepare(new Command("kxm"), session.world);
  sessionOf.set(root, session);
  return root;
}

/** A group of commands, such as `kxm peer`. */
export function group(parent: Command, name: string, summary: string, details?: string): Command {
  const command = prepare(
    parent
      .command(name)
      .summary(summary)
      .description(details ? `${summary}\n\n${details}` : summary),
    worldOf(parent),
  );
  return command.addHelpText("after", () => exampleText(command.commands.flatMap((one) => examples(one).slice(0, 1)).slice(0, GROUP_EXAMPLES_MAX)));
}

/** Examples that the help of a group shows of its commands. */
const GROUP_EXAMPLES_MAX = 4;
const exampleText = (lines: readonly string[]): string => (lines.length === 0 ? "" : `\nExamples:\n${lines.map((line) => `  $ ${line}`).join("\n")}`);

/** Adds one command to a group or to the program. */
export function define<O extends Record<string, any> = Record<string, never>>(parent: Command, spec: CommandSpec<O>): Command {
  const { usage, summary, details, run } = spec;
  const command = parent.command(usage, { isDefault: spec.isDefault ?? false, hidden: spec.hidden ?? false });
  prepare(command.summary(summary).description(details ? `${summary}\n\n${details}` : summary), worldOf(parent));
  spec.options?.(command);
  for (const option of command.options)
    if (option.flags.includes("<span>") && typeof option.defaultValue === "number") option.default(option.defaultValue, spell(option.defaultValue));
  command.option("--json", "print the result as JSON, for programs");
  examplesOf.set(command, spec.examples);
  command.addHelpText("after", exampleText(spec.examples));
  if (spec.isDefault) command.allowExcessArguments(true); // the word may be a mistyped command of the group: refuseWord says so
  command.action(async () => {
    const session = sessionOf.get(rootOf(command))!;
    const options = command.optsWithGlobals<O & { json?: boolean }>();
    const json = options.json === true;
    const takesAny = command.registeredArguments.some(({ variadic }) => variadic);
    if (spec.isDefault && !takesAny && command.args.length > command.registeredArguments.length) return refuseWord(parent, command.args[0]!);
    refuseEmpty(command);
    const args = command.processedArgs.flat().filter((arg) => arg !== undefined);
    try {
      session.exitCode = (await run({ args, options, out: createOutput(session.world, json), world: session.world })) ?? 0;
    } catch (error) {
      session.exitCode = reportFailure(session.world, json, error);
    }
  });
  return command;
}

/** An empty value is most often a variable of a script that nobody set: nothing is done as if the option had not been given. @throws UsageError */
function refuseEmpty(command: Command): void {
  for (let at: Command | null = command; at; at = at.parent)
    for (const option of at.options) {
      const value = at.getOptionValue(option.attributeName());
      if (at.getOptionValueSource(option.attributeName()) === "cli" && [value].flat().some((one) => typeof one === "string" && one.trim() === ""))
        throw new UsageError(`${option.long ?? option.flags} was given an empty value`);
    }
}

function refuseWord(parent: Command, word: string): never {
  const similar = nearest(
    word,
    parent.commands.map((command) => command.name()),
  );
  throw new UsageError(`unknown command '${word}' of kxm ${parent.name()}${similar ? `\n(Did you mean ${similar}?)` : ""}`);
}

const worldOf = (command: Command): World => sessionOf.get(rootOf(command))!.world;

function prepare(command: Command, world: World): Command {
  return command
    .exitOverride()
    .helpCommand(false)
    .showHelpAfterError("(add --help for the options and examples)")
    .showSuggestionAfterError()
    .helpOption("-h, --help", "show this help")
    .configureOutput({
      writeOut: (text) => world.stdout.write(text),
      writeErr: (text) => world.stderr.write(visible(text.replace(/^error: /, "kxm: "))),
      getOutHelpWidth: () => world.stdout.columns ?? 100,
      getErrHelpWidth: () => world.stdout.columns ?? 100,
      getOutHasColors: () => world.stdout.isTTY && !world.env["NO_COLOR"],
      getErrHasColors: () => world.stderr.isTTY && !world.env["NO_COLOR"],
    });
}

/** A whole number of an option, within bounds. For `option("--n <number>", "…", number(1, 9))`. @throws UsageError */
export const number =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^-?\d+$/.test(text) || value < min || value > max)
      throw new UsageError(`${JSON.stringify(text)} is not a whole number from ${min} to ${max}`);
    return value;
  };

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** A time span such as `500ms`, `30s`, `5m`, `2h` or `7d`, as milliseconds within bounds. @throws UsageError */
export const duration =
  (minMs: number, maxMs: number) =>
  (text: string): number => {
    const [, count, unit] = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text) ?? [];
    const ms = count === undefined ? Number.NaN : Number(count) * UNITS[unit!]!;
    if (!(ms >= minMs && ms <= maxMs))
      throw new UsageError(
        `${JSON.stringify(text)} is not a time span from ${spell(minMs)} to ${spell(maxMs)}, such as ${fittingSpans(minMs, maxMs)}`,
      );
    return ms;
  };

/** Up to three spans that would be taken. */
const fittingSpans = (minMs: number, maxMs: number): string => {
  const fitting = [500, 10_000, 30_000, 300_000, 7_200_000, 604_800_000].filter((ms) => ms >= minMs && ms <= maxMs).slice(-3);
  return (fitting.length > 0 ? fitting : [maxMs])
    .map(spell)
    .join(", ")
    .replace(/, (?=[^,]*$)/, " or ");
};

/** Milliseconds as a short time span. */
export function spell(ms: number): string {
  for (const unit of ["d", "h", "m", "s"]) if (ms >= UNITS[unit]! && ms % UNITS[unit]! === 0) return `${ms / UNITS[unit]!}${unit}`;
  return `${ms}ms`;
}

/** The exit code of a parse that ended early: 0 after help or version, 2 after a mistake. */
export function codeOfParse(error: unknown, world: World): number {
  if (error instanceof UsageError) {
    world.stderr.write(`kxm: ${visible(error.message)}\n`);
    return 2;
  }
  if (!(error instanceof CommanderError)) throw error;
  return error.code === "commander.helpDisplayed" || error.code === "commander.version" ? 0 : 2;
}

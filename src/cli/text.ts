// The text a command sends: its words, or standard input.
import { CommandFailed, type World } from "./output.ts";

const TEXT_BYTES_MAX = 1_048_576;

/** The words joined; without any, or with a single `-`, what comes from standard input. @throws CommandFailed when there is nothing to send */
export async function readText(words: readonly string[], world: World): Promise<string> {
  if (words.length > 0 && !(words.length === 1 && words[0] === "-")) return words.join(" ");
  if (words.length === 0 && world.stdin.isTTY) throw new CommandFailed("there is no text to send", "Write it behind the command, or pipe it in.");
  const text = await world.stdin.read(TEXT_BYTES_MAX);
  if (text.trim() === "") throw new CommandFailed("there is no text to send: standard input was empty");
  return text;
}

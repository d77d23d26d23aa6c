// `kxm completion`: a script that completes commands and options in bash, zsh or fish. Made from the program itself, so it is never behind.
import type { Command } from "commander";
import { define } from "./command.ts";
import { UsageError } from "./output.ts";

const SHELLS: Record<string, (entries: Entry[]) => string> = { bash, zsh, fish };

/** Adds `kxm completion`. It comes last: it knows what was added before it. */
export function addCompletion(program: Command): void {
  define(program, {
    usage: "completion <shell>",
    summary: "print a completion script for bash, zsh or fish",
    examples: ["source <(kxm completion bash)", "kxm completion zsh > ~/.zfunc/_kxm", "kxm completion fish > ~/.config/fish/completions/kxm.fish"],
    run: ({ args: [shell], world }) => {
      const script = SHELLS[shell!];
      if (!script) throw new UsageError(`name one of ${Object.keys(SHELLS).join(", ")}`);
      world.stdout.write(script(entriesOf(program)));
    },
  });
}

type Word = { word: string; summary: string };
/** What may follow after some command words. */
type Entry = { path: string[]; commands: Word[]; options: Word[] };

function entriesOf(command: Command, path: string[] = []): Entry[] {
  const commands = command.commands.map((inner) => ({ word: inner.name(), summary: inner.summary() }));
  const inherited = path.length > 1 ? (command.parent?.options ?? []) : [];
  const defaults = command.commands.find((inner) => (command as unknown as { _defaultCommandName?: string })._defaultCommandName === inner.name());
  const options = [...command.options, ...inherited, ...(defaults?.options ?? [])].filter((option) => option.long && !option.hidden);
  const words = options.map((option) => ({ word: option.long!, summary: option.description }));
  const entry = { path, commands, options: [...words, { word: "--help", summary: "show help" }] };
  return [entry, ...command.commands.flatMap((inner) => entriesOf(inner, [...path, inner.name()]))];
}

const words = ({ commands, options }: Entry) => [...commands, ...options].map(({ word }) => word);

function bash(entries: Entry[]): string {
  const known = entries.filter(({ path }) => path.length > 0).map(({ path }) => `"${path.join(" ")}"`);
  return `# bash completion of kxm; use it with: source <(kxm completion bash)
_kxm() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in
      ${known.join("|")}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${entries.map((entry) => `    "${entry.path.join(" ")}") COMPREPLY=($(compgen -W "${words(entry).join(" ")}" -- "$current")) ;;`).join("\n")}
  esac
}
complete -o default -F _kxm kxm
`;
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

function zsh(entries: Entry[]): string {
  const known = entries.filter(({ path }) => path.length > 0).map(({ path }) => `"${path.join(" ")}"`);
  const described = ({ word, summary }: Word) => quoted(`${word}:${summary.replaceAll(":", "\\:")}`);
  return `#compdef kxm
# zsh completion of kxm; put it into a folder of $fpath as _kxm
_kxm() {
  local path_words="" word
  local -a choices
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${path_words:+$path_words }$word" in
      ${known.join("|")}) path_words="\${path_words:+$path_words }$word" ;;
    esac
  done
  case "$path_words" in
${entries.map((entry) => `    "${entry.path.join(" ")}") choices=(${[...entry.commands, ...entry.options].map(described).join(" ")}) ;;`).join("\n")}
  esac
  _describe 'kxm' choices || _files
}
compdef _kxm kxm
`;
}

function fish(entries: Entry[]): string {
  const lines = entries.flatMap(({ path, commands, options }) => {
    const here = path.length === 0 ? "__fish_use_subcommand" : `__kxm_at ${path.join(" ")}`;
    return [
      ...commands.map(({ word, summary }) => `complete -c kxm -f -n ${quoted(here)} -a ${quoted(word)} -d ${quoted(summary)}`),
      ...options.map(({ word, summary }) => `complete -c kxm -n ${quoted(here)} -l ${quoted(word.slice(2))} -d ${quoted(summary)}`),
    ];
  });
  return `# fish completion of kxm; put it into ~/.config/fish/completions/kxm.fish
function __kxm_at
  set -l given (string match --invert -- '-*' (commandline -opc)[2..-1])
  test (count $given) -ge (count $argv); and test "$given[1..(count $argv)]" = "$argv"
end
${lines.join("\n")}
`;
}

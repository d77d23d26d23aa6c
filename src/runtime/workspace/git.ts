// Calls git: no prompt, no hooks, no settings of the environment, bounded output, and a sentence when it fails.
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import { environmentFor } from "../harness/environment.ts";

/** Longest one git command may take, in milliseconds. */
const GIT_MS_MAX = 120_000;
/** Bytes of output that are read. */
const OUTPUT_BYTES_MAX = 16_777_216;

/** Whatever the repository's own settings say. */
const SETTINGS = ["core.hooksPath=/dev/null", "core.fsmonitor=false", "commit.gpgSign=false", "submodule.recurse=false"].flatMap((one) => [
  "-c",
  one,
]);

/** What git said. */
export type GitAnswer = { code: number; stdout: string; stderr: string };

/** As little as any program gets: a repository's own settings, which agents may change, can make git run what they name. */
const environment = (extra: Record<string, string>): Record<string, string> =>
  environmentFor(process.env, [], { GIT_TERMINAL_PROMPT: "0", GIT_OPTIONAL_LOCKS: "0", LC_ALL: "C", ...extra });

const start = (folder: string, args: string[], options: { input?: string; env?: Record<string, string>; maxBuffer?: number }) =>
  Bun.spawn(["git", ...SETTINGS, ...args], {
    cwd: folder,
    env: environment(options.env ?? {}),
    stdin: options.input === undefined ? "ignore" : new TextEncoder().encode(options.input),
    stdout: "pipe",
    stderr: "pipe",
    timeout: GIT_MS_MAX,
    maxBuffer: options.maxBuffer,
  });

/**
 * Runs git and answers whatever comes of it.
 * @param folder where it runs
 * @param input what it reads
 */
export async function tryGit(folder: string, args: string[], options: { input?: string; env?: Record<string, string> } = {}): Promise<GitAnswer> {
  const child = start(folder, args, { ...options, maxBuffer: OUTPUT_BYTES_MAX });
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { code, stdout, stderr };
}

/** Runs git and answers what it printed, without the last line break. @throws RuntimeRefusal repository_unusable when it fails */
export async function git(folder: string, args: string[], options: { input?: string; env?: Record<string, string> } = {}): Promise<string> {
  const answer = await tryGit(folder, args, options);
  if (answer.code === 0) return answer.stdout.replace(/\n$/, "");
  const words = answer.stderr.trim().split("\n").slice(-3).join(" ").slice(0, 400);
  throw new RuntimeRefusal("repository_unusable", `git ${args[0]} failed (${answer.code}): ${words}`);
}

/** The folders in a worktree that its index takes for other repositories. However many files there are, little is kept of them. */
export async function gitlinksIn(folder: string): Promise<string[]> {
  const child = start(folder, ["ls-files", "--stage", "-z"], {});
  const found: string[] = [];
  let rest = "";
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    const entries = (rest + text).split("\0");
    rest = entries.pop()!;
    for (const entry of entries) if (entry.startsWith("160000 ")) found.push(entry.slice(entry.indexOf("\t") + 1));
  }
  if ((await child.exited) !== 0) throw new RuntimeRefusal("repository_unusable", `git ls-files failed (${child.exitCode}) in ${folder}`);
  return found;
}

// Calls git: no prompt, no hooks, no settings of the environment, bounded output, and a sentence when it fails.
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import { environmentFor } from "../harness/environment.ts";

/** Longest one git command may take, in milliseconds. */
const GIT_MS_MAX = 120_000;
/** Bytes of output that are read. */
const OUTPUT_BYTES_MAX = 16_777_216;

/** What git said. */
export type GitAnswer = { code: number; stdout: string; stderr: string };

/** As little as any program gets: a repository's own settings, which agents may change, can make git run what they name. */
const environment = (extra: Record<string, string>): Record<string, string> =>
  environmentFor(process.env, [], { GIT_TERMINAL_PROMPT: "0", GIT_OPTIONAL_LOCKS: "0", LC_ALL: "C", ...extra });

/**
 * Runs git and answers whatever comes of it.
 * @param folder where it runs
 * @param input what it reads
 */
export async function tryGit(folder: string, args: string[], options: { input?: string; env?: Record<string, string> } = {}): Promise<GitAnswer> {
  const child = Bun.spawn(["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false", ...args], {
    cwd: folder,
    env: environment(options.env ?? {}),
    stdin: options.input === undefined ? "ignore" : new TextEncoder().encode(options.input),
    stdout: "pipe",
    stderr: "pipe",
    timeout: GIT_MS_MAX,
    maxBuffer: OUTPUT_BYTES_MAX,
  });
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

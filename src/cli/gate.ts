// `kxm gate run` runs a gate of the project by hand; `kxm gate push` is a ready-made deliver command: it moves a remote ref to an exact commit only if
// the ref still is what was expected.
import { statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { Command } from "commander";
import { sha256 } from "../protocol/canonical.ts";
import { type Gate, REFERENCES } from "../protocol/project-files.ts";
import type { Receipt } from "../protocol/receipt.ts";
import { define, group } from "./command.ts";
import { openProject } from "./local.ts";
import { CommandFailed, EXIT, harmlessJson, type Output, UsageError, type World } from "./output.ts";

const GIT_MS_MAX = 300_000;
/** Longest a gate may take that does not say, in milliseconds: as in a run. */
const GATE_MS_DEFAULT = 600_000;
const OBJECT_ID = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

type PushOptions = { commit: string; to: string; remote: string; expect?: string };

/** Adds `kxm gate`. */
export function addGate(program: Command): void {
  const gate = group(program, "gate", "run a gate by hand, and deliver an exact commit");
  define(gate, {
    usage: "run <gate>",
    summary: "run a gate of this project in the current checkout; ends as the gate does",
    examples: ["kxm gate run tests"],
    run: async ({ args: [id], out, world }) => {
      const { runtime, key, root } = await openProject(world, { start: true, check: true });
      const { gate: found } = (await runtime.get(`/v1/projects/${key}/gates/${id}`)) as { gate: Gate };
      const exitCode = await runGate(found, id!, root, { out, world });
      out.result({ gate: id, passed: exitCode === 0, exitCode }, () => {});
      return exitCode === 0 ? EXIT.ok : EXIT.failed;
    },
  });
  define<PushOptions>(gate, {
    usage: "push",
    summary: "move a remote ref to an exact commit, only if it still is what was expected",
    details:
      'For gates: `argv: [kxm, gate, push, --commit, "{{commit}}", --to, refs/heads/main, --expect, "{{base}}", --json]` with a lease. Pushing again what is there already is a success. Prints a receipt.',
    examples: [
      "kxm gate push --commit 0123456789abcdef0123456789abcdef01234567 --to refs/heads/main --expect 89abcdef0123456789abcdef0123456789abcdef",
      "kxm gate push --commit HEAD --to refs/heads/release --expect none",
    ],
    options: (command) =>
      command
        .requiredOption("--commit <commit>", "the commit to deliver")
        .requiredOption("--to <ref>", "the full ref on the remote, such as refs/heads/main")
        .option("--remote <name>", "the remote", "origin")
        .option("--expect <object>", "the object the ref must still have, or none for a ref that must not exist (default: what it has now)"),
    run: async ({ options, out, world }) => {
      const receipt = await push(options, world);
      // One line in any case: the engine reads it from the gate's output.
      if (out.json || world.env["KXM_RUN_ID"]) world.stdout.write(`${harmlessJson(receipt)}\n`);
      else out.line(`${options.to} on ${options.remote} is ${receipt.id.split(" ").at(-1)}`);
    },
  });
}

/** Answers the exit code of the gate's command. With --json what it prints goes to stderr: stdout is for the answer. @throws CommandFailed when it cannot run */
async function runGate(gate: Gate, id: string, root: string, { out, world }: { out: Output; world: World }): Promise<number> {
  if (!("argv" in gate)) {
    const missing = gate.paths.filter((path) => !(Bun.file(join(root, path)).size > 0));
    if (missing.length > 0) throw new CommandFailed(`the gate ${id} does not pass: ${missing.join(", ")} missing or empty`);
    return EXIT.ok;
  }
  if (gate.lease)
    throw new CommandFailed(
      `the gate ${id} needs the lease ${gate.lease}: it runs only as a step of a run`,
      "Start a run of a workflow that has it as a step.",
    );
  const named = gate.argv.join(" ").match(REFERENCES)?.[0];
  if (named)
    throw new CommandFailed(
      `the gate ${id} is told ${named} of its run: it runs only as a step of a run`,
      "Start a run of a workflow that has it as a step.",
    );
  const given = gate.argv[0]!;
  const program = given.includes("/") ? (isAbsolute(given) ? given : join(root, given)) : Bun.which(given, { PATH: world.env["PATH"] ?? "" });
  if (!program) throw new CommandFailed(`the program ${given} of the gate ${id} is not installed`);
  const cwd = join(root, gate.cwd ?? ".");
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory())
    throw new CommandFailed(`the gate ${id} runs in ${gate.cwd}, which is no folder of the project`, "Correct its cwd in .kxm/gates.yaml.");
  const { timeoutMs = GATE_MS_DEFAULT } = gate;
  const late = AbortSignal.timeout(timeoutMs);
  const child = spawned([program, ...gate.argv.slice(1)], { cwd, env: world.env, json: out.json, signal: AbortSignal.any([late, world.stopping]) });
  if (typeof child === "string")
    throw new CommandFailed(
      `the program ${given} of the gate ${id} cannot be executed: ${child}`,
      "Install it, or correct its argv in .kxm/gates.yaml.",
    );
  const code = await child.exited;
  if (late.aborted) throw new CommandFailed(`the gate ${id} did not end within ${timeoutMs / 1000} s`, "Raise its timeoutMs in .kxm/gates.yaml.");
  return code;
}

/** The command, or why the system cannot execute it. */
function spawned(argv: string[], { cwd, env, json, signal }: { cwd: string; env: World["env"]; json: boolean; signal: AbortSignal }) {
  try {
    return Bun.spawn(argv, { cwd, env, stdin: "ignore", stdout: json ? 2 : "inherit", stderr: "inherit", signal });
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

async function git(world: World, args: string[]): Promise<{ code: number; out: string; err: string }> {
  const env = Object.fromEntries(Object.entries(world.env).filter(([name, value]) => value !== undefined && !name.startsWith("GIT_"))) as Record<
    string,
    string
  >;
  const child = Bun.spawn(["git", "-c", "core.hooksPath=/dev/null", ...args], {
    cwd: world.cwd,
    env: { ...env, GIT_TERMINAL_PROMPT: "0", LC_ALL: "C" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: GIT_MS_MAX,
  });
  const [out, err, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { code, out: out.trim(), err: err.trim() };
}

/** What a remote ref is now; undefined when it does not exist. @throws CommandFailed when the remote cannot be asked */
async function remoteRef(world: World, remote: string, ref: string, hint = "Nothing was pushed."): Promise<string | undefined> {
  const { code, out, err } = await git(world, ["ls-remote", "--exit-code", "--", remote, ref]);
  if (code === 2) return undefined;
  if (code !== 0) throw new CommandFailed(`the remote ${remote} cannot be asked: ${cause(err)}`, hint, EXIT.unreachable);
  return out
    .split("\n")
    .map((line) => line.split("\t"))
    .find(([, name]) => name === ref)?.[0];
}

/** The line of git's words that says what is wrong; the last one is often advice. */
function cause(text: string): string {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return (lines.find((line) => /^(fatal|error):|^!/.test(line)) ?? lines.at(-1) ?? "git says nothing").slice(0, 300);
}

async function push({ commit, to, remote, expect }: PushOptions, world: World): Promise<Receipt> {
  if (!to.startsWith("refs/") || (await git(world, ["check-ref-format", to])).code !== 0)
    throw new UsageError(`--to must be a full ref such as refs/heads/main, not ${JSON.stringify(to)}`);
  if (remote.startsWith("-")) throw new UsageError("--remote must be a remote's name");
  if (expect !== undefined && expect !== "none" && !OBJECT_ID.test(expect)) throw new UsageError("--expect must be a full object id, or none");
  const found = await git(world, ["rev-parse", "--verify", "--end-of-options", `${commit}^{commit}`]);
  if (found.code !== 0) throw new CommandFailed(`there is no commit ${commit} here`);
  const before = await remoteRef(world, remote, to);
  if (before === found.out) return receiptOf(remote, to, found.out);
  const wanted = expect === undefined ? (before ?? "none") : expect;
  if ((before ?? "none") !== wanted)
    throw new CommandFailed(
      `${to} on ${remote} is ${before ?? "not there"}, expected was ${wanted}: nothing was pushed`,
      "Somebody else moved it. Bring the work up to date and deliver again.",
    );
  const lease = `--force-with-lease=${to}:${wanted === "none" ? "" : wanted}`;
  const pushed = await git(world, ["push", "--porcelain", "--no-verify", lease, remote, `${found.out}:${to}`]);
  // What the remote says counts, not how the command ended: a line that broke may have come after the change.
  const after = await remoteRef(world, remote, to, "Whether the ref was moved is not known: look at the remote before you deliver again.");
  if (after === found.out) return receiptOf(remote, to, found.out);
  throw new CommandFailed(`${to} on ${remote} was not moved: ${cause(pushed.err || pushed.out)}`, "Nothing was pushed.");
}

const receiptOf = (remote: string, ref: string, commit: string): Receipt => ({
  schema: "kxm.receipt.v1",
  provider: "git",
  kind: "ref-update",
  id: `${remote} ${ref} ${commit}`,
  hash: `sha256:${sha256(`${remote}\n${ref}\n${commit}\n`)}`,
  observedAt: new Date().toISOString(),
});

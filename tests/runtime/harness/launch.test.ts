import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hasStarted, launch, OUTPUT_BYTES_MAX, prepareFolder, readOutput, reattach, USAGE_FILE } from "../../../src/runtime/harness/launch.ts";
import { endAttempt, isAlive, markedProcesses, waitFor } from "../../../src/runtime/harness/process.ts";

let folder: string;
let serial = 0;
beforeEach(() => {
  folder = mkdtempSync("/dev/shm/kxm-launch-");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));
const start = (script: string, stdin = "") => {
  const attemptId = `att_test${process.pid}x${serial++}`;
  const at = join(folder, attemptId);
  prepareFolder(at, stdin);
  const launched = launch({ attemptId, folder: at, argv: ["/bin/sh", "-c", script], cwd: folder, env: { PATH: "/usr/bin:/bin" }, stdin });
  return { ...launched, attemptId, at };
};

test("a program reads its prompt to the end and what it prints is kept, with its exit code", async () => {
  const { ended, at } = start("cat; echo problem >&2; exit 3", "the prompt\n");
  await ended;
  expect(readOutput(at)).toEqual({ stdout: "the prompt\n", stderr: "problem\n", stdoutDropped: 0, stderrDropped: 0, exitCode: 3 });
  expect(hasStarted(at)).toBe(true);
});

test("a program that prints 200 MB is bounded and counted", async () => {
  const { ended, at } = start("head -c 200000000 /dev/zero; echo done >&2");
  await ended;
  const output = readOutput(at);
  expect(output.stdout.length).toBe(OUTPUT_BYTES_MAX);
  // One piece of the copying program is lost to the count.
  expect(output.stdoutDropped).toBeLessThanOrEqual(200_000_000 - OUTPUT_BYTES_MAX);
  expect(output.stdoutDropped).toBeGreaterThan(200_000_000 - OUTPUT_BYTES_MAX - 262_144);
  expect(output.stderr).toBe("done\n");
});

test("a program that prints a little too much is known to have been cut", async () => {
  const { ended, at } = start(`head -c ${OUTPUT_BYTES_MAX + 10} /dev/zero`);
  await ended;
  expect(readOutput(at).stdout.length).toBe(OUTPUT_BYTES_MAX);
  expect(readOutput(at).stdoutDropped).toBeGreaterThan(0);
});

test("arguments are read by no shell", async () => {
  const at = join(folder, "plain");
  prepareFolder(at, "");
  const argv = ["/bin/echo", "$(id)", "`id`", "a b", "*", '"; id'];
  await launch({ attemptId: "att_plain1", folder: at, argv, cwd: folder, env: {}, stdin: "" }).ended;
  expect(readOutput(at).stdout).toBe('$(id) `id` a b * "; id\n');
});

test("the program gets only the environment it was given, and its own session", async () => {
  process.env["KXM_PLANTED"] = "secret";
  const { ended, at, mark } = start("env; ps -o sid= -p $$");
  await ended;
  const { stdout } = readOutput(at);
  expect(stdout).not.toContain("KXM_PLANTED");
  expect(stdout).toContain("KXM_ATTEMPT_ID=att_test");
  expect(stdout.trim().split("\n").at(-1)!.trim()).toBe(String(mark.pid));
});

test("a program that ends in order on SIGTERM is heard to the end", async () => {
  const { ended, at, mark, attemptId } = start("trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.02; done");
  await waitFor(() => readOutput(at).stdout.includes("ready"), 5000);
  expect(await endAttempt({ mark, attemptId }, 3000)).toBe(true);
  await ended;
  expect(readOutput(at)).toMatchObject({ stdout: "ready\nbye\n", exitCode: 5 });
});

test("a program that ignores SIGTERM, its children and a child that left the group are all ended", async () => {
  const { ended, mark, attemptId, at } = start(
    "trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 0.02; done' & sh -c 'trap \"\" TERM; while :; do sleep 0.02; done' & echo up; while :; do sleep 0.02; done",
  );
  await waitFor(() => readOutput(at).stdout.includes("up") && markedProcesses(attemptId).length >= 6, 5000);
  const started = performance.now();
  expect(await endAttempt({ mark, attemptId }, 200)).toBe(true);
  expect(performance.now() - started).toBeLessThan(4000);
  await ended;
  expect(markedProcesses(attemptId)).toEqual([]);
  expect(isAlive(mark)).toBe(false);
});

test("a daemon that holds the output does not keep the attempt open", async () => {
  const { ended, at, attemptId, mark } = start("(setsid sh -c 'while :; do sleep 0.05; done') & echo done");
  await ended;
  expect(readOutput(at)).toMatchObject({ stdout: "done\n", exitCode: 0 });
  expect(await endAttempt({ mark, attemptId }, 100)).toBe(true);
  expect(markedProcesses(attemptId)).toEqual([]);
});

test("of two starts of one attempt only one program runs, and both are told of its end", async () => {
  const attemptId = `att_twice${process.pid}`;
  const at = join(folder, attemptId);
  prepareFolder(at, "");
  const request = {
    attemptId,
    folder: at,
    argv: ["/bin/sh", "-c", `echo once >>${folder}/ran; sleep 0.2`],
    cwd: folder,
    env: { PATH: "/usr/bin:/bin" },
    stdin: "",
  };
  const both = [launch(request), launch(request)];
  await Promise.all(both.map(({ ended }) => ended));
  expect(readFileSync(join(folder, "ran"), "utf8")).toBe("once\n");
  expect(readOutput(at).exitCode).toBe(0);
});

test("a group that has become somebody else's is left alone", async () => {
  const { mark, ended, attemptId } = start("while :; do sleep 0.02; done");
  expect(await endAttempt({ mark: { ...mark, started: "another boot:1" }, attemptId: "att_other1" }, 100)).toBe(true);
  expect(isAlive(mark)).toBe(true);
  await endAttempt({ mark, attemptId }, 100);
  await ended;
});

test("another process finds the end of a program it did not start", async () => {
  const { at, mark } = start("sleep 0.2; echo late");
  expect(isAlive(mark)).toBe(true);
  expect(isAlive({ ...mark, started: `${mark.started}1` })).toBe(false);
  await reattach(at, mark);
  expect(readOutput(at)).toMatchObject({ stdout: "late\n", exitCode: 0 });
});

test("a killed program leaves no exit code behind", async () => {
  const { at, mark, ended } = start("echo hi; while :; do sleep 0.02; done");
  await waitFor(() => readOutput(at).stdout !== "", 5000);
  process.kill(-mark.pid, "SIGKILL");
  await ended;
  expect(readOutput(at).exitCode).toBeUndefined();
  expect(readFileSync(join(at, "started"), "utf8").trim()).toBe(String(mark.pid));
});

test("the usage that a program writes is read from a plain file alone", () => {
  const path = join(folder, USAGE_FILE);
  expect(readOutput(folder).usage).toBeUndefined();
  writeFileSync(path, "{}");
  expect(readOutput(folder).usage).toBe("{}");
  for (const trick of [`mkfifo '${path}'`, `ln -s /etc/hostname '${path}'`, `mkdir '${path}'`]) {
    rmSync(path, { recursive: true });
    Bun.spawnSync(["/bin/sh", "-c", trick]);
    expect(readOutput(folder).usage).toBeUndefined();
  }
});

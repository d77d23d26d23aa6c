// Reads what `bun test` says: shortens its running output to what did not pass, and counts from its JUnit report.
import { existsSync, readFileSync } from "node:fs";

/**
 * A filter for the running output: tests that pass are only counted; failures, skips and everything else are shown under their file's name.
 * @param {(line: string) => void} print
 * @returns {{push: (chunk: string) => void, end: () => void, progress: () => string}}
 */
export function quietly(print) {
  let rest = "";
  let file;
  let named; // the file whose name stands above the line that was printed last
  const seen = { pass: 0, fail: 0, skip: 0 };
  const line = (text) => {
    const header = /^(tests\/\S+\.test\.tsx?):$/.exec(text);
    const result = /^\((pass|fail|skip)\) /.exec(text);
    if (result) seen[result[1]]++;
    if (header) file = header[1];
    else if (/^\d+ tests failed:$|^ (--seed=\d+| *\d+ pass)$/.test(text)) file = undefined;
    if (header || result?.[1] === "pass" || (text === "" && named !== file)) return;
    if (file && named !== file) print(`${file}:`);
    named = file;
    print(text);
  };
  return {
    push(chunk) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop();
      for (const text of lines) line(text);
    },
    end() {
      if (rest) line(rest);
    },
    progress: () => `${seen.pass} passed, ${seen.fail} failed, ${seen.skip} skipped so far`,
  };
}

/**
 * Counts and the time of each file from a JUnit report.
 * @returns {{passed: number, failed: number, skipped: number, files: {path: string, seconds: number}[]} | undefined} undefined: no complete report
 */
export function readJunit(path) {
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  const total = /<testsuites [^>]*tests="(\d+)"[^>]*failures="(\d+)"[^>]*skipped="(\d+)"/.exec(text);
  if (!total || !text.includes("</testsuites>")) return;
  const [tests, failed, skipped] = total.slice(1).map(Number);
  const suites = [...text.matchAll(/<testsuite name="([^"]+)" file="\1"[^>]* time="([\d.]+)"/g)];
  return { passed: tests - failed - skipped, failed, skipped, files: suites.map(([, path, time]) => ({ path, seconds: Number(time) })) };
}

/** The closing line of every command that counts. */
export function closingLine({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

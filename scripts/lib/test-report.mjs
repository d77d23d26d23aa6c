// Reads what `bun test` says: shortens its running output to one line per passing file, and counts from its JUnit report.
import { existsSync, readFileSync } from "node:fs";

/**
 * A filter for the running output: a file whose tests all pass becomes one line; failures, skips and everything else stay as they are.
 * @param {(line: string) => void} print
 * @returns {{push: (chunk: string) => void, end: () => void}}
 */
export function quietly(print) {
  let rest = "";
  let file;
  let passed = 0;
  let shown = false;
  const closeFile = () => {
    if (file && passed > 0) print(shown ? `  and ${passed} passed` : `ok ${file} ${passed} passed`);
    file = undefined;
    passed = 0;
    shown = false;
  };
  const line = (text) => {
    const header = /^(tests\/\S+\.test\.tsx?):$/.exec(text);
    if (header) {
      if (header[1] === file) return;
      closeFile();
      file = header[1];
    } else if (file && text.startsWith("(pass) ")) passed++;
    else if (/^ (--seed=\d+| *\d+ pass)$/.test(text)) {
      closeFile();
      print(text);
    } else if (text !== "" || shown) {
      if (file && !shown) print(`${file}:`);
      if (file) shown = true;
      print(text);
    }
  };
  return {
    push(chunk) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop();
      for (const text of lines) line(text);
    },
    end() {
      if (rest) line(rest);
      closeFile();
    },
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

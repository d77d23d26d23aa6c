// The hub's log on disk: one object a line whatever is logged, bounded, private, and never a reason to stop.
import { expect, test } from "bun:test";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openLog } from "../../src/cli/log-file.ts";
import { temporaryFolder } from "../support/folders.ts";

const AT = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const linesOf = (path: string) =>
  readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

test("a line is one JSON object with its time, and no text can forge another or harm a terminal", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "logs", "hub.jsonl");
  const { log, close } = openLog(
    path,
    () => AT,
    () => {},
  );
  expect(existsSync(path)).toBe(false); // a hub that is refused leaves no trace
  log({ event: "started", pid: 5 });
  log({ event: "failed", level: "error", error: 'a\n{"event":"forged"}\u001b[2J\u009b\u202e' });
  close();
  expect(linesOf(path)).toEqual([
    { at: "2026-01-02T03:04:05.678Z", level: "info", event: "started", pid: 5 },
    { at: "2026-01-02T03:04:05.678Z", level: "error", event: "failed", error: 'a\n{"event":"forged"}\u001b[2J\u009b\u202e' },
  ]);
  expect(readFileSync(path, "utf8")).toMatch(/^[\x20-\x7e\n]*$/);
  expect((statSync(path).mode & 0o777).toString(8)).toBe("600");
  expect((statSync(join(folder.path, "logs")).mode & 0o777).toString(8)).toBe("700");
});

test("a folder that is there keeps its rights: a log may lie beside those of other programs", () => {
  using folder = temporaryFolder();
  chmodSync(folder.path, 0o755);
  const path = join(folder.path, "hub.jsonl");
  const { log, close } = openLog(
    path,
    () => AT,
    () => {},
  );
  log({ event: "started" });
  close();
  expect([folder.path, path].map((one) => (statSync(one).mode & 0o777).toString(8))).toEqual(["755", "600"]);
});

test("a full log becomes the one before, and there are never more than two", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "hub.jsonl");
  writeFileSync(path, "x".repeat(16_777_217), { mode: 0o600 });
  writeFileSync(`${path}.1`, "older", { mode: 0o600 });
  const { log, close } = openLog(
    path,
    () => AT,
    () => {},
  );
  log({ event: "first" });
  log({ event: "second" });
  close();
  expect(linesOf(path).map(({ event }) => event)).toEqual(["first", "second"]);
  expect(statSync(`${path}.1`).size).toBe(16_777_217);
  expect(readdirSync(folder.path).sort()).toEqual(["hub.jsonl", "hub.jsonl.1"]);
});

test("a log that cannot be written is told once, and again after it could", () => {
  using folder = temporaryFolder();
  const logs = join(folder.path, "logs");
  writeFileSync(logs, "a file where the folder should be");
  const alarms: string[] = [];
  const { log, close } = openLog(
    join(logs, "hub.jsonl"),
    () => AT,
    (text) => alarms.push(text),
  );
  log({ event: "one" });
  log({ event: "two" });
  expect(alarms).toHaveLength(1);
  rmSync(logs);
  log({ event: "three" });
  close();
  expect(linesOf(join(logs, "hub.jsonl")).map(({ event }) => event)).toEqual(["three"]);
  expect(alarms).toHaveLength(1);
});

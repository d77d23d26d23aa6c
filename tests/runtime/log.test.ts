// The supervisor's log: lines that parse, without secrets, in two files of bounded size.
import { expect, test } from "bun:test";
import { existsSync, readFileSync, statSync } from "node:fs";
import { LOG_BYTES_MAX, openLog } from "../../src/runtime/log.ts";
import { knownSecrets } from "../../src/runtime/redact/known-secrets.ts";
import { createRedactor } from "../../src/runtime/redact/redactor.ts";
import { fakeClock, temporaryFolder } from "./support.ts";

test("a line says what happened, cut and without secrets", () => {
  using folder = temporaryFolder();
  const known = knownSecrets();
  known.add("s3cr3t-Planted-Value-0001", "hub-token");
  const { log, close } = openLog(folder.file("log"), { clock: fakeClock(), redactor: createRedactor(known) });
  log("push_failed", { level: "warn", reason: `it said s3cr3t-Planted-Value-0001\nand ${"more ".repeat(1000)}`, count: 3 });
  close();
  const line = JSON.parse(readFileSync(folder.file("log"), "utf8"));
  expect(line).toMatchObject({ at: "2026-01-02T03:04:05.000Z", level: "warn", event: "push_failed", count: 3 });
  expect(line.reason.length).toBe(500);
  expect(line.reason).toStartWith("it said [REDACTED:hub-token]\nand more");
  expect(statSync(folder.file("log")).mode & 0o777).toBe(0o600);
});

test("a full log becomes the older one, and there are never more than two", () => {
  using folder = temporaryFolder();
  const path = folder.file("log");
  const { log, close } = openLog(path, { clock: fakeClock(), redactor: createRedactor(knownSecrets()) });
  const lines = Math.ceil((LOG_BYTES_MAX * 2.5) / 560);
  for (let index = 0; index < lines; index++) log("line", { reason: "x".repeat(499), count: index });
  close();
  expect(statSync(path).size).toBeLessThanOrEqual(LOG_BYTES_MAX);
  expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(LOG_BYTES_MAX);
  expect(existsSync(`${path}.2`)).toBeFalse();
  const last = readFileSync(path, "utf8").trimEnd().split("\n").at(-1)!;
  expect(JSON.parse(last).count).toBe(lines - 1);
});

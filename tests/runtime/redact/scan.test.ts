// The scan finds what older rules let through, says where and of what kind, and never what.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { statePaths } from "../../../src/client/state-paths.ts";
import { knownSecrets } from "../../../src/runtime/redact/known-secrets.ts";
import { createRedactor } from "../../../src/runtime/redact/redactor.ts";
import { scanFiles } from "../../../src/runtime/redact/scan.ts";
import { startRuntime } from "../runtime-process.ts";
import { aRun, PROJECT_ID, store, temporaryFolder } from "../support.ts";
import { corpus, leaks, seeded } from "./corpus.ts";

const token = corpus(seeded(41)).find(({ shape }) => shape === "github-ghp")!.text;

test("a clean store and log have no findings; planted ones are found wherever they are", async () => {
  using folder = temporaryFolder();
  const path = folder.file("run-events.db");
  const events = store({ path });
  events.commit((tx) => tx.createRun(aRun()));
  events.close();
  const redactor = createRedactor(knownSecrets());
  const scan = () => scanFiles([path, folder.file("log.jsonl"), folder.file("missing.db")], redactor, new AbortController().signal);
  expect(await scan()).toMatchObject({ files: 1, findings: [] });
  const db = new Database(path);
  db.run("update runs set detail = ?", [`{"x":"${token}"}`]);
  db.close();
  writeFileSync(folder.file("log.jsonl"), `{"event":"fine"}\n${"x ".repeat(200_000)}${token}\n`);
  const { findings } = await scan();
  expect(findings.map(({ file, kind }) => [file, kind])).toEqual([
    ["run-events.db", "github-token"],
    ["log.jsonl", "github-token"],
  ]);
  expect(findings[0]!.place).toStartWith("runs.detail of run_");
  expect(findings[1]!.place).toBe("line 2");
  expect(leaks(JSON.stringify(findings), token)).toBeFalse();
});

test("a running Runtime scans its own state", async () => {
  using folder = temporaryFolder();
  mkdirSync(join(folder.path, "checkout"));
  await using runtime = await startRuntime(folder.path);
  const client = await runtime.client();
  await client.register({ root: join(folder.path, "checkout"), projectId: PROJECT_ID, name: "Demo" });
  expect((await client.redactScan()).findings).toEqual([]);
  writeFileSync(`${statePaths(folder.path).log}.1`, `${token}\n`);
  expect((await client.redactScan()).findings).toEqual([{ file: "kxm-runtime.jsonl.1", place: "line 1", kind: "github-token", count: 1 }]);
});

// `npm run check`: types, lint and format, house rules, documentation. One line and a time per step; a step's output only when it fails.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { install } from "./lib/install.mjs";
import { at, ROOT, say } from "./lib/project.mjs";
import { closingLine } from "./lib/test-report.mjs";

const bun = install();
const tool = (name) => at("node_modules", ".bin", name);
const tests = (folder) => [bun, "--no-env-file", "test", `./tests/${folder}/`];
const STEPS = [
  { name: "types", command: [tool("tsc")] },
  { name: "lint and format", command: [tool("biome"), "check", "--error-on-warnings"] },
  { name: "house rules", command: tests("tidy"), needs: "tests/tidy" },
  { name: "documentation", command: tests("docs"), needs: "tests/docs" },
];

const counts = { passed: 0, failed: 0, skipped: 0 };
for (const { name, command, needs } of STEPS) {
  if (needs && !existsSync(at(needs))) {
    counts.skipped++;
    say(`skipped  ${name}: there is no ${needs}`);
    continue;
  }
  const started = performance.now();
  const { status, stdout, stderr, error } = spawnSync(command[0], command.slice(1), { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 26 });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (status !== 0) process.stderr.write(`${stdout ?? ""}${stderr ?? ""}${error ? `${error.message}\n` : ""}`);
  counts[status === 0 ? "passed" : "failed"]++;
  say(`${status === 0 ? "ok      " : "FAILED  "} ${name} ${seconds} s`);
}
console.log(closingLine(counts));
process.exitCode = counts.failed > 0 ? 1 : 0;

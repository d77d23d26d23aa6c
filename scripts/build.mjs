// `npm run build`: the two programs as single files, `dist/kxm` and `dist/kxm-runtime`, each started once to see that it runs,
// `dist/client`, the package for other programs, and `dist/sbom.cdx.json`, the list of everything inside.
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { install } from "./lib/install.mjs";
import { at, giveUp, ROOT, say } from "./lib/project.mjs";

const PROGRAMS = [
  { entry: "src/main.ts", file: "dist/kxm" },
  { entry: "src/runtime/main.ts", file: "dist/kxm-runtime" },
];
// A program must not read settings from whatever folder it is started in: a .env there, or a bunfig.toml that preloads code. Names are
// kept as written, because Elysia reads the parameters of hooks from their source text.
const FLAGS = ["--compile", "--bytecode", "--format=esm", "--sourcemap", "--no-compile-autoload-dotenv", "--no-compile-autoload-bunfig"];

const bun = install();
mkdirSync(at("dist"), { recursive: true });
for (const { entry, file } of PROGRAMS) {
  const started = performance.now();
  rmSync(at(file), { force: true });
  const { status } = spawnSync(bun, ["build", ...FLAGS, entry, "--outfile", file], { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
  if (status !== 0) giveUp(`${file} could not be built.`, "The error is above.");
  const shown = spawnSync(at(file), ["--version"], { cwd: at("dist"), encoding: "utf8", timeout: 10_000 });
  if (shown.status !== 0)
    giveUp(`${file} --version ended with ${shown.status ?? shown.signal}: ${`${shown.stderr}${shown.error ?? ""}`.trim().split("\n").at(-1)}`);
  const size = (statSync(at(file)).size / 1e6).toFixed(1);
  say(`${file.padEnd(17)} ${size} MB  ${((performance.now() - started) / 1000).toFixed(1)} s  --version: ${shown.stdout.trim()}`);
}
if (spawnSync(bun, ["--no-env-file", at("scripts", "build-client.ts")], { cwd: ROOT, stdio: "inherit" }).status !== 0)
  giveUp("dist/client could not be built.", "The error is above.");
writeBillOfMaterials();

function writeBillOfMaterials() {
  const npm = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ["npm"];
  const args = [...npm.slice(1), "sbom", "--sbom-format=cyclonedx", "--package-lock-only", "--omit=dev"];
  const { status, stdout, stderr } = spawnSync(npm[0], args, { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 26 });
  if (status !== 0) giveUp(`npm could not list the packages: ${stderr.trim().split("\n").at(-1)}`);
  writeFileSync(at("dist", "sbom.cdx.json"), stdout);
  say(`dist/sbom.cdx.json ${JSON.parse(stdout).components.length} packages`);
}

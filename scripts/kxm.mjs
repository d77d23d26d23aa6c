#!/usr/bin/env node
// `npx kxm …` in the repository: the command line from source, in the folder it was called from.
import { spawn } from "node:child_process";
import { install } from "./lib/install.mjs";
import { at } from "./lib/project.mjs";
import { endLike } from "./lib/run.mjs";

const args = ["--no-env-file", `--tsconfig-override=${at("tsconfig.json")}`, at("src", "main.ts"), ...process.argv.slice(2)];
const child = spawn(install(), args, { stdio: "inherit" });
// The terminal sends its signals to both of us; those of others are passed on.
for (const signal of ["SIGINT", "SIGHUP"]) process.on(signal, () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.once("error", (error) => {
  process.stderr.write(`kxm: ${error.message}\n`);
  process.exitCode = 1;
});
child.once("exit", (code, signal) => {
  if (signal) for (const name of ["SIGINT", "SIGHUP", "SIGTERM"]) process.removeAllListeners(name);
  endLike({ code, signal });
});

// `npm start`: installs what is missing and runs the hub in the foreground. Arguments after `--` reach `kxm hub`.
import { install } from "./lib/install.mjs";
import { at } from "./lib/project.mjs";
import { endLike, run } from "./lib/run.mjs";

const bun = install();
endLike(await run(bun, ["--no-env-file", at("src", "main.ts"), "hub", ...process.argv.slice(2)]));

// `npm run build:client`: makes dist/client, the package `kxm/client` for Node, Bun and browsers (scripts/build-client.ts says how).
import { install } from "./lib/install.mjs";
import { at } from "./lib/project.mjs";
import { endLike, run } from "./lib/run.mjs";

const bun = install();
endLike(await run(bun, ["--no-env-file", at("scripts", "build-client.ts")]));

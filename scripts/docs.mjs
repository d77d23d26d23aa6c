// `npm run docs`: writes the pages that are made from the code (scripts/docs.ts says which).
import { install } from "./lib/install.mjs";
import { at } from "./lib/project.mjs";
import { endLike, run } from "./lib/run.mjs";

const bun = install();
endLike(await run(bun, ["--no-env-file", at("scripts", "docs.ts")]));

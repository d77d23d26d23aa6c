// Who may import whom. The direction keeps every layer readable alone: rules without HTTP, screens without SQL, a Runtime without a hub.
import { type Finding, importsOf, product, type Rule, type SourceFile } from "./source.ts";

/** Each layer and the layers it may import. A folder that is not here does not exist. */
const MAY_IMPORT: Record<string, string[]> = {
  protocol: [],
  db: ["protocol"],
  hub: ["db", "protocol"],
  http: ["protocol"],
  api: ["hub", "http", "protocol"],
  views: ["hub", "http", "protocol"],
  mcp: ["hub", "http", "protocol"],
  client: ["protocol"],
  cli: ["client", "protocol"],
  runtime: ["client", "protocol"],
  main: ["cli", "protocol"],
};

/** Layers whose types (not values) a layer may name beside that: an API handler holds an engine that the hub hands it. */
const MAY_NAME: Record<string, string[]> = { api: ["db"], views: ["db"], mcp: ["db"] };

/** The files of cli that put a hub together; only they may know all its parts. */
const STARTS_A_HUB = /^src\/cli\/(serve|settings|log-file|store|doctor|memory-files|retrospective-files|workflow-definitions|hub[a-z-]*)\.ts$/;
const PARTS_OF_A_HUB = ["api", "views", "mcp", "hub", "db", "http"];

/** Packages and built-in modules a layer must not know. */
const FOREIGN: Record<string, RegExp> = {
  protocol: /^(elysia|@elysiajs\/|drizzle-orm|bun:sqlite|htmx|node:(fs|http|https|net|child_process))/,
  db: /^(elysia|@elysiajs\/|htmx|node:(http|https|child_process))/,
  hub: /^(elysia|@elysiajs\/|drizzle-orm|bun:sqlite|htmx|node:(fs|http|https|net|child_process|process|timers))/,
  api: /^(drizzle-orm|bun:sqlite)/,
  views: /^(drizzle-orm|bun:sqlite|node:child_process)/,
  mcp: /^(drizzle-orm|bun:sqlite)/,
};

export const layerOf = (path: string) => (path === "src/main.ts" ? "main" : (path.split("/")[1] ?? ""));

function direction(files: SourceFile[]): Finding[] {
  return product(files).flatMap((file) => {
    const layer = layerOf(file.path);
    const allowed = MAY_IMPORT[layer];
    if (!allowed)
      return [{ path: file.path, line: 1, message: `src/${layer} is not a layer: put the file in one of ${Object.keys(MAY_IMPORT).join(", ")}` }];
    return importsOf(file).flatMap(({ target, line, typeOnly }) => {
      if (!target.startsWith("src/")) {
        const foreign = FOREIGN[layer]?.test(target);
        return foreign ? [{ path: file.path, line, message: `${layer} must not know ${target}` }] : [];
      }
      const other = layerOf(target);
      if (other === layer || allowed.includes(other)) return [];
      if (typeOnly && MAY_NAME[layer]?.includes(other)) return [];
      if (PARTS_OF_A_HUB.includes(other) && STARTS_A_HUB.test(file.path)) return [];
      return [{ path: file.path, line, message: `${layer} must not import ${target}: it may import ${allowed.join(", ") || "nothing of ours"}` }];
    });
  });
}

/** Files of src that no entry reaches: two programs, the client's package, and what the compiler asks for. Asked only of a tree that has its entries. */
function dead(files: SourceFile[]): Finding[] {
  const entries = [
    "src/main.ts",
    "src/runtime/main.ts",
    "src/client/published.ts",
    "src/views/jsx/jsx-dev-runtime.ts",
    "src/views/jsx/jsx-runtime.ts",
  ];
  const byPath = new Map(files.map((file) => [file.path, file]));
  if (!byPath.has("src/main.ts") || !byPath.has("src/runtime/main.ts")) return [];
  const reached = new Set<string>();
  const visit = (path: string) => {
    const file = byPath.get(path);
    if (!file || reached.has(path)) return;
    reached.add(path);
    if (/\.tsx?$/.test(path)) for (const { target } of importsOf(file)) visit(target);
  };
  for (const entry of entries) visit(entry);
  return files
    .filter(({ path }) => path.startsWith("src/") && /\.(tsx?|sql|css|js)$/.test(path) && !path.endsWith(".d.ts") && !reached.has(path))
    .map(({ path }) => ({ path, line: 1, message: "no program imports this file: wire it in or remove it" }));
}

export const IMPORT_RULES: Rule[] = [
  {
    name: "imports follow the direction of the layers",
    check: direction,
    offends: [
      [{ path: "src/hub/leases.ts", text: 'import * as api from "../api/leases.ts";' }],
      [{ path: "src/api/leases.ts", text: 'import {\n  page,\n} from "../views/leases.tsx";' }],
      [{ path: "src/views/leases.tsx", text: 'export { route } from "../mcp/leases.ts";' }],
      [{ path: "src/runtime/outbox.ts", text: 'const x = await import("../db/sync.ts");' }],
      [{ path: "src/api/leases.ts", text: 'import { engine } from "../db/engine.ts";' }],
      [{ path: "src/cli/peer.ts", text: 'import { open } from "../hub/hub.ts";' }],
      [{ path: "src/protocol/ids.ts", text: 'import "../client/hub-client.ts";' }],
      [{ path: "src/hub/leases.ts", text: 'import { Elysia } from "elysia";' }],
      [{ path: "src/hub/backup.ts", text: 'import { readFileSync } from "node:fs";' }],
      [{ path: "src/helpers/strings.ts", text: "" }],
    ],
    passes: [
      [
        {
          path: "src/hub/leases.ts",
          text: 'import { HubError } from "../protocol/errors.ts";\nimport type { Tx } from "../db/tx.ts";\n// import "../api/leases.ts"',
        },
        { path: "src/api/leases.ts", text: 'import * as leases from "../hub/leases.ts";\nimport type { Engine } from "../db/engine.ts";' },
        { path: "src/cli/serve.ts", text: 'import { server } from "../api/server.ts";\nimport { openSqlite } from "../db/engine-sqlite.ts";' },
        { path: "src/runtime/main.ts", text: 'import { RuntimeClient } from "../client/runtime-client.ts";\nimport { mkdirSync } from "node:fs";' },
      ],
    ],
  },
  {
    name: "every file of src is reached from a program",
    check: dead,
    offends: [
      [
        { path: "src/main.ts", text: 'import "./cli/cli.ts";' },
        { path: "src/runtime/main.ts", text: "" },
        { path: "src/cli/cli.ts", text: "" },
        { path: "src/cli/forgotten.ts", text: 'import "./cli.ts";' },
      ],
    ],
    passes: [
      [
        { path: "src/main.ts", text: 'import { run } from "./cli/cli.ts";' },
        { path: "src/runtime/main.ts", text: "" },
        { path: "src/cli/cli.ts", text: 'import css from "../views/assets/app.css" with { type: "text" };' },
        { path: "src/views/assets/app.css", text: "" },
        { path: "src/css.d.ts", text: "" },
      ],
    ],
  },
];

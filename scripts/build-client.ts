// Makes the package `kxm/client`: one ES module per source file and declarations beside them, without a dependency. Only what
// src/client/published.ts reaches is in it, and it is compiled without the types of Node and Bun: what runs here runs in a browser.
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, normalize } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import manifest from "../package.json";
import { typeOf } from "./lib/schema-types.ts";

const ROOT = join(import.meta.dir, "..");
const ENTRY = "client/published";
const IMPORTS = /(?:from|import\()\s*"([^"]+)"/g;
/** Consumers may compile with an older library; the two names of explicit resource management come with this line. */
const LIBRARY = '/// <reference lib="esnext.disposable" preserve="true" />\n';

/** What was made: its files and the bytes of the modules among them. */
export type Built = { files: string[]; bytes: number };

/** Builds the package into a folder, which is emptied first. @throws Error with the compiler's words */
export async function buildClient(out: string): Promise<Built> {
  const raw = mkdtempSync(join(tmpdir(), "kxm-client-"));
  try {
    const tsc = join(ROOT, "node_modules/.bin/tsc");
    const compiled = Bun.spawnSync([tsc, "-p", join(ROOT, "scripts/client.tsconfig.json"), "--outDir", raw], { cwd: ROOT });
    const modules = reached(raw, `${ENTRY}.js`);
    const types = reached(raw, `${ENTRY}.d.ts`);
    // Files that only lend their types may name Bun; what is in the package may not.
    const complaints = `${compiled.stdout}${compiled.stderr}`.split(/\n(?=\S)/).filter((line) => {
      const [, file] = /^src\/(.+)\.ts\(/.exec(line) ?? [];
      return line.trim() !== "" && (file === undefined || modules.has(`${file}.js`));
    });
    if (complaints.length > 0) throw new Error(`the client does not compile for every place it runs in:\n${complaints.join("\n")}`);
    rmSync(out, { recursive: true, force: true });
    for (const [path, text] of modules) put(out, path, text);
    for (const [path, text] of types) put(out, path, path === `${ENTRY}.d.ts` ? LIBRARY + toJs(text) : toJs(await withoutSchemas(path, text)));
    writeFileSync(join(out, "package.json"), `${JSON.stringify(published(), undefined, 2)}\n`);
    copyFileSync(join(ROOT, "LICENSE"), join(out, "LICENSE"));
    copyFileSync(join(ROOT, "src/client/README.md"), join(out, "README.md"));
    const bytes = [...modules.values()].reduce((sum, text) => sum + text.length, 0);
    return { files: [...modules.keys(), ...types.keys()], bytes };
  } finally {
    rmSync(raw, { recursive: true, force: true });
  }
}

function published() {
  const { name, version, description: _, license, engines } = manifest;
  return {
    name,
    version,
    description: "Client of a KXM hub: messages, leases, workflows, context and search for agents and programs",
    license,
    type: "module",
    sideEffects: false,
    engines,
    exports: { "./client": { types: `./${ENTRY}.d.ts`, default: `./${ENTRY}.js` }, "./package.json": "./package.json" },
  };
}

/** The files that a file reaches by its imports, itself first. @throws Error for an import of a package: there is none to install */
function reached(folder: string, entry: string): Map<string, string> {
  const found = new Map<string, string>();
  const visit = (path: string) => {
    if (found.has(path)) return;
    const text = readFileSync(join(folder, path), "utf8");
    found.set(path, text);
    for (const [, target] of text.matchAll(IMPORTS)) {
      if (!target!.startsWith(".")) {
        if (path.endsWith(".d.ts")) continue; // the schema library; its types are written out
        throw new Error(`${path} imports ${target}: the package has no dependencies`);
      }
      const next = normalize(join(dirname(path), target!.replace(/\.(ts|js)$/, "")));
      const file = `${next}${path.endsWith(".d.ts") ? ".d.ts" : ".js"}`;
      if (existsSync(join(folder, file))) visit(file);
      else throw new Error(`${path} imports ${target}, which is not there`);
    }
  };
  visit(entry);
  return found;
}

/** A declaration file with every schema gone and every type made of one written out. */
async function withoutSchemas(path: string, text: string): Promise<string> {
  if (!text.includes("@sinclair/typebox")) return text;
  const module = (await import(join(ROOT, "src", path.replace(/\.d\.ts$/, ".ts")))) as Record<string, TSchema>;
  // A statement begins in the first column with a word; what belongs to it is indented or closes it.
  const statements = text.split(/\n(?=(?:\/\*\*|export |import |declare ))/);
  const kept = statements.flatMap((statement) => {
    const [, name] = /^export type (\w+) = Static<typeof \1>;$/m.exec(statement) ?? [];
    if (name) return `export type ${name} = ${typeOf(module[name]!)};`;
    const isSchema = /@sinclair\/typebox|\bStatic<|\bT(Schema|Object|String|Union)\b/.test(statement);
    return isSchema ? [] : statement;
  });
  return `${kept.join("\n")}\n`;
}

const toJs = (text: string) => text.replaceAll(/((?:from|import\()\s*"\.[^"]*)\.ts"/g, '$1.js"');

function put(folder: string, path: string, text: string) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

if (import.meta.main) {
  const { files, bytes } = await buildClient(join(ROOT, "dist/client"));
  console.log(`dist/client       ${files.filter((path) => path.endsWith(".js")).length} modules, ${(bytes / 1e3).toFixed(1)} kB, no dependencies`);
}

// What comes from outside: few packages, each with a reason, one exact version each, from no address of its own.
import { type Finding, importsOf, product, type Rule, type SourceFile } from "./source.ts";

const RUNTIME_MAX = 15;
const RECORD = "docs/decisions/dependencies.md";
/** Licences that let anyone use, change and pass on the result. */
const LICENCES = new Set([
  "MIT",
  "ISC",
  "0BSD",
  "BSD-0-Clause", // how htmx.org writes 0BSD

  "BSD-2-Clause",
  "BSD-3-Clause",
  "Apache-2.0",
  "MIT OR Apache-2.0",
  "MPL-2.0",
  "BlueOak-1.0.0",
  "CC0-1.0",
  "Unlicense",
]);
/** The one package that has an install script. It is not run: scripts/lib/install.mjs links the same file. */
const HAS_INSTALL_SCRIPT = new Set(["node_modules/bun"]);

type Manifest = { dependencies?: Record<string, string>; devDependencies?: Record<string, string> };
type Locked = { version?: string; resolved?: string; link?: boolean; license?: string; hasInstallScript?: boolean; integrity?: string };

const find = (files: SourceFile[], path: string) => files.find((file) => file.path === path)?.text ?? "";
const manifestOf = (files: SourceFile[]) => JSON.parse(find(files, "package.json") || "{}") as Manifest;
const lockOf = (files: SourceFile[]) =>
  (JSON.parse(find(files, "package-lock.json") || "{}") as { packages?: Record<string, Locked> }).packages ?? {};
const inManifest = (message: string): Finding => ({ path: "package.json", line: 1, message });
const inLock = (message: string): Finding => ({ path: "package-lock.json", line: 1, message });

function versions(files: SourceFile[]): Finding[] {
  const { dependencies = {}, devDependencies = {} } = manifestOf(files);
  const loose = Object.entries({ ...dependencies, ...devDependencies }).filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version));
  const count = Object.keys(dependencies).length;
  return [
    ...loose.map(([name, version]) => inManifest(`${name} is "${version}": one exact version from the registry, no range and no address`)),
    ...(count > RUNTIME_MAX ? [inManifest(`${count} direct dependencies; at most ${RUNTIME_MAX}`)] : []),
  ];
}

function lock(files: SourceFile[]): Finding[] {
  return Object.entries(lockOf(files)).flatMap(([path, { resolved, link, license, hasInstallScript, integrity }]) => {
    if (path === "") return [];
    const wrong = [
      resolved !== undefined && `names an address (${resolved})`,
      link && "is a link into the file system",
      !integrity && "has no checksum",
      !LICENCES.has(license ?? "") && `has the licence ${license ?? "(none)"}`,
      hasInstallScript && !HAS_INSTALL_SCRIPT.has(path) && "wants to run a script when it is installed",
    ];
    return wrong.filter((what) => typeof what === "string").map((what) => inLock(`${path} ${what}`));
  });
}

function reasons(files: SourceFile[]): Finding[] {
  const { dependencies = {}, devDependencies = {} } = manifestOf(files);
  const names = [...Object.keys(dependencies), ...Object.keys(devDependencies)];
  const text = find(files, RECORD);
  const described = [...text.matchAll(/^\| `([^`]+)` \| (.+) \|$/gm)]
    .filter(([, , sentence]) => /\w+ \w+ .*\.$/.test(sentence!))
    .map(([, name]) => name!);
  return [
    ...names.filter((name) => !described.includes(name)).map((name) => inManifest(`${name} has no sentence in ${RECORD} that says what for`)),
    ...described
      .filter((name) => !names.includes(name))
      .map((name) => ({ path: RECORD, line: 1, message: `${name} is described, but not used any more` })),
  ];
}

/** Packages that are pinned for a layer before it exists; once the folder is there, it has to import them. */
const PINNED_FOR: Record<string, string> = { "@modelcontextprotocol/sdk": "src/mcp/", zod: "src/mcp/" };

/** A package that src imports is a dependency, and a dependency is imported. Asked only of a tree that has a program. */
function used(files: SourceFile[]): Finding[] {
  if (!files.some(({ path }) => path === "src/main.ts")) return [];
  const { dependencies = {} } = manifestOf(files);
  const imported = new Map<string, { path: string; line: number }>();
  for (const file of product(files))
    for (const { target, line, typeOnly } of importsOf(file)) {
      if (typeOnly || target.startsWith("src/") || /^(node:|bun$|bun:|\.)/.test(target)) continue;
      imported.set(
        target
          .split("/")
          .slice(0, target.startsWith("@") ? 2 : 1)
          .join("/"),
        { path: file.path, line },
      );
    }
  return [
    ...[...imported].filter(([name]) => !dependencies[name]).map(([name, at]) => ({ ...at, message: `${name} is imported, but no dependency` })),
    ...Object.keys(dependencies)
      .filter((name) => !imported.has(name) && (!PINNED_FOR[name] || files.some(({ path }) => path.startsWith(PINNED_FOR[name]!))))
      .map((name) => inManifest(`nothing in src imports ${name}: remove it`)),
  ];
}

const manifest = (value: unknown): SourceFile => ({ path: "package.json", text: JSON.stringify(value) });
const locked = (value: Locked): SourceFile => ({
  path: "package-lock.json",
  text: JSON.stringify({ packages: { "": {}, "node_modules/a": value } }),
});
const record = (text: string): SourceFile => ({ path: RECORD, text });
const many = Object.fromEntries(Array.from({ length: RUNTIME_MAX + 1 }, (_, index) => [`a${index}`, "1.0.0"]));
const good: Locked = { version: "1.0.0", integrity: "sha512-x", license: "MIT" };

export const PACKAGE_RULES: Rule[] = [
  {
    name: "packages have one exact version and are few",
    check: versions,
    offends: [
      [manifest({ dependencies: { a: "^1.0.0" } })],
      [manifest({ devDependencies: { a: "git+ssh://git@host/a.git" } })],
      [manifest({ dependencies: { a: "https://host/a.tgz" } })],
      [manifest({ dependencies: { a: "file:../a" } })],
      [manifest({ dependencies: { a: "latest" } })],
      [manifest({ dependencies: many })],
    ],
    passes: [[manifest({ dependencies: { a: "1.0.0" }, devDependencies: many })]],
  },
  {
    name: "the lock file names no address, and every package is free and inert",
    check: lock,
    offends: [
      [locked({ ...good, resolved: "https://host/a.tgz" })],
      [locked({ ...good, link: true })],
      [locked({ ...good, license: "GPL-3.0" })],
      [locked({ version: "1.0.0", license: "MIT" })],
      [locked({ ...good, hasInstallScript: true })],
    ],
    passes: [[locked(good)]],
  },
  {
    name: "every package has a reason",
    check: reasons,
    offends: [
      [manifest({ dependencies: { a: "1.0.0" } }), record("| `b` | Does a thing well. |")],
      [manifest({ dependencies: { a: "1.0.0" } }), record("| `a` | |")],
      [manifest({}), record("| `gone` | Did a thing well. |")],
    ],
    passes: [[manifest({ devDependencies: { a: "1.0.0" } }), record("| `a` | Does a thing well. |")]],
  },
  {
    name: "packages are imported where they are declared",
    check: used,
    offends: [
      [manifest({ dependencies: { a: "1.0.0" } }), { path: "src/main.ts", text: "" }],
      [manifest({ dependencies: { zod: "1.0.0" } }), { path: "src/main.ts", text: "" }, { path: "src/mcp/tools.ts", text: "" }],
      [manifest({ devDependencies: { "@b/c": "1.0.0" } }), { path: "src/main.ts", text: 'import { x } from "@b/c/d";' }],
    ],
    passes: [
      [
        manifest({ dependencies: { a: "1.0.0" } }),
        { path: "src/main.ts", text: 'import x from "a/x.js";\nimport type { Y } from "y";\nimport "node:fs";' },
      ],
    ],
  },
];

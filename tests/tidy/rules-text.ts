// What committed text must not contain, and that migrations are complete.
import { basename } from "node:path";
import { type Finding, lineAt, type Rule, type SourceFile } from "./source.ts";

// Written in halves, so that this file does not contain what it looks for.
const MACHINE_PATHS = new RegExp(["/wo" + "rk/", "/tmp/k" + "xm/", "(?<![\\w.])/ro" + "ot/"].join("|"), "g");
const REGISTRY_HOSTS = new RegExp(
  ["registry\\.(npm" + "js|yarn" + "pkg)\\.\\w+", "npm\\.pkg\\.git" + "hub\\.com", "https?://[\\w.-]*(artifactory|nexus|verdaccio)[\\w.-]*"].join(
    "|",
  ),
  "g",
);

function texts(files: SourceFile[]): Finding[] {
  return files.flatMap(({ path, text }) => [
    ...[...text.matchAll(MACHINE_PATHS)].map(({ 0: found, index }) => ({
      path,
      line: lineAt(text, index),
      message: `${found} is a path on one machine`,
    })),
    ...[...text.matchAll(REGISTRY_HOSTS)].map(({ 0: found, index }) => ({
      path,
      line: lineAt(text, index),
      message: `${found}: packages come by name from the registry npm is set to`,
    })),
  ]);
}

function migrations(files: SourceFile[]): Finding[] {
  const sql = files.filter(({ path }) => /^src\/.*migrations\/[^/]+\.sql$/.test(path));
  const code = files.filter(({ path }) => /^src\/.*\.ts$/.test(path));
  const numbers = new Map<string, number>();
  return sql.flatMap(({ path }) => {
    const folder = path.slice(0, path.lastIndexOf("/"));
    const name = basename(path, ".sql");
    const number = (numbers.get(folder) ?? 0) + 1;
    numbers.set(folder, number);
    const findings: Finding[] = [];
    if (!new RegExp(`^${String(number).padStart(4, "0")}_[a-z0-9_]+$`).test(name))
      findings.push({
        path,
        line: 1,
        message: `the next migration is ${String(number).padStart(4, "0")}_what_it_does.sql: no gaps, no two with one number`,
      });
    if (!code.some(({ text }) => text.includes(`migrations/${name}.sql"`) && text.includes(`name: "${name}"`)))
      findings.push({ path, line: 1, message: "no list of migrations has this file: it would never run" });
    return findings;
  });
}

const list = 'import a from "./migrations/0001_hub.sql";\nconst M = [{ name: "0001_hub", sqlite: a }];';

export const TEXT_RULES: Rule[] = [
  {
    name: "no text names a machine's paths or a registry",
    check: texts,
    offends: [
      [{ path: "docs/a.md", text: "Open `/wo" + "rk/main`." }],
      [{ path: "README.md", text: "cd /ro" + "ot/kxm" }],
      [{ path: ".npmrc", text: "registry=https://registry.npm" + "js.org/" }],
      [{ path: "docs/a.md", text: "https://nex" + "us.example.com/npm" }],
    ],
    passes: [[{ path: "docs/a.md", text: "rework/ this, see https://example.com/network/root/a" }]],
  },
  {
    name: "every migration is listed, in order",
    check: migrations,
    offends: [
      [{ path: "src/db/migrations/0001_hub.sql", text: "" }],
      [
        { path: "src/db/migrations/0001_hub.sql", text: "" },
        { path: "src/db/migrations/0003_late.sql", text: "" },
        { path: "src/db/migrate.ts", text: `${list}\nimport b from "./migrations/0003_late.sql"; const N = { name: "0003_late" };` },
      ],
    ],
    passes: [
      [
        { path: "src/db/migrations/0001_hub.sql", text: "" },
        { path: "src/db/migrate.ts", text: list },
      ],
    ],
  },
  {
    // Bun reads the factory from the tsconfig of the folder it was started in, so a program started elsewhere would look for React.
    name: "a component file names its JSX factory",
    check: (files) =>
      files
        .filter(({ path, text }) => path.endsWith(".tsx") && !text.includes("/** @jsxImportSource #jsx */"))
        .map(({ path }) => ({ path, line: 1, message: "add /** @jsxImportSource #jsx */ below the opening comment" })),
    offends: [[{ path: "src/views/page.tsx", text: "// A page.\nexport const Page = () => <p />;" }]],
    passes: [
      [
        { path: "src/views/page.tsx", text: "// A page.\n/** @jsxImportSource #jsx */\nexport const Page = () => <p />;" },
        { path: "src/views/page.ts", text: "// No component." },
      ],
    ],
  },
];

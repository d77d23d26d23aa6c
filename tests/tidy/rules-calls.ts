// Calls that break a promise of the product, each with what to use instead.
import { type Finding, matches, product, type Rule, type SourceFile } from "./source.ts";

const within = (files: SourceFile[], ...layers: string[]) =>
  product(files).filter(({ path }) => layers.some((layer) => path.startsWith(`src/${layer}/`)));
const tests = (files: SourceFile[]) => files.filter(({ path }) => /^tests\/.*\.tsx?$/.test(path) && !path.startsWith("tests/tidy/"));

/** One pattern over some files is a rule; the samples are lines of a file at `path`. */
function ban(rule: {
  name: string;
  in: (files: SourceFile[]) => SourceFile[];
  pattern: RegExp;
  instead: string;
  path: string;
  offends: string[];
  passes: string[];
}): Rule {
  const sample = (text: string): SourceFile[] => [{ path: rule.path, text: `// Sample.\n${text}\n` }];
  return {
    name: rule.name,
    check: (files): Finding[] => matches(rule.in(files), rule.pattern, ([found]) => `${found.trim()}: ${rule.instead}`),
    offends: rule.offends.map(sample),
    passes: rule.passes.map(sample),
  };
}

export const CALL_RULES: Rule[] = [
  ban({
    name: "rules and stores know no clock, no chance and no timer",
    in: (files) => within(files, "hub", "db"),
    pattern: /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bsetTimeout\(|\bsetInterval\(|\bperformance\.now\b|\bcrypto\.randomUUID\b/,
    instead: "take time from tx.now or hub.clock, ids from tx.newId, waits from the loop",
    path: "src/hub/leases.ts",
    offends: [
      "const at = Date.now();",
      "setTimeout(sweep, 10);",
      "const id = Math.random();",
      "setInterval(sweep, 10);",
      "const at = new Date().getTime();",
    ],
    passes: ["// not Date.now()", "const day = new Date(tx.now);", "hub.clock.now();"],
  }),
  ban({
    name: "rules know no process and no network",
    in: (files) => within(files, "hub"),
    pattern: /\bprocess\.\w+|\bBun\.(serve|spawn|spawnSync|file|write|env|sleep|connect|listen)\b|\bfetch\(|\bnew (Response|Request|WebSocket)\(/,
    instead: "the caller in api, cli or a loop does this and hands the rule what it needs",
    path: "src/hub/leases.ts",
    offends: ["const path = process.env.KXM_DATA_PATH;", "await Bun.sleep(5);", "await fetch(url);", "return new Response();"],
    passes: ["const process = 1;", "Bun.CryptoHasher.hash('sha256', text);", "await tx.events.fetchAfter(1);"],
  }),
  ban({
    name: "a transaction is opened by the write lane alone",
    in: product,
    pattern: /\.transaction\(|\btransaction\(\s*async/,
    instead: "use engine.write(project, rule); a transaction callback that awaits commits at its first await",
    path: "src/hub/leases.ts",
    offends: ["db.transaction(() => {});", "await database\n  .transaction(async (tx) => {});"],
    passes: ["await engine.write(project, rule);", "// db.transaction(async"],
  }),
  ban({
    name: "programs are never minified",
    in: (files) => files.filter(({ path }) => /^(src|scripts|\.ci)\/|^package\.json$/.test(path)),
    pattern: /--minify\b|\bminify: true/,
    instead: "the HTTP framework reads hooks from their source text, and minified ones lose their parameters",
    path: "scripts/build.mjs",
    offends: ['const FLAGS = ["--compile", "--minify"];', "Bun.build({ minify: true });"],
    passes: ["// never --minify", 'const FLAGS = ["--compile"];'],
  }),
  ban({
    name: "exports have names",
    in: product,
    pattern: /^\s*export default\b|\bexport \{[^}]*\bas default\b/,
    instead: "export a named thing; the module is the namespace",
    path: "src/hub/leases.ts",
    offends: ["export default function acquire() {}", "export { acquire as default };"],
    passes: ['export const defaults = "export default";', "export { acquire };"],
  }),
  ban({
    name: "no file passes another file's exports on",
    in: (files) => product(files).filter(({ path }) => path !== "src/views/jsx/jsx-dev-runtime.ts"),
    pattern: /^\s*export \*/,
    instead: "import from the file that owns it",
    path: "src/hub/leases.ts",
    offends: ['export * from "./waiters.ts";', 'export * as waiters from "./waiters.ts";'],
    passes: ["export const a = 1;"],
  }),
  ban({
    name: "markup is trusted in few places",
    in: product,
    pattern: /(?<![\w.])raw\((?!\))/,
    instead: "let JSX escape it; a file that must call raw() is listed in exceptions.ts with its reason",
    path: "src/views/messages.tsx",
    offends: ["return <p>{raw(message.content)}</p>;", 'const html = raw("<b>" + name);'],
    passes: ["const text = String.raw`a`;", "draw(shape);", "// raw(text) is trusted", 'throw new TypeError("takes raw() only");'],
  }),
  ban({
    name: "tests run whole and do not sleep", // those of faults do: a kill comes at a random moment
    in: (files) => tests(files).filter(({ path }) => /\.test\.tsx?$/.test(path) && !/^tests\/(bench|faults)\//.test(path)),
    pattern: /\b(test|describe|it)\.only\(|\bBun\.sleep\(|\bsetTimeout\((resolve|r|done|ok)\b|\bsleepSync\(/,
    instead: "remove .only; await a condition, advance the fake clock or call the loop's own step",
    path: "tests/hub/leases.test.ts",
    offends: ['test.only("a lease", () => {});', "await Bun.sleep(50);", "await new Promise((resolve) => setTimeout(resolve, 50));"],
    passes: ['test("a lease", () => {});', "await until(() => done);", "setTimeout(abort, 50);"],
  }),
];

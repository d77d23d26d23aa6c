// The house rules as a test: each rule over the whole repository, and each rule over samples that must and must not be found.
import { describe, expect, test } from "bun:test";
import { EXCEPTIONS } from "./exceptions.ts";
import { CALL_RULES } from "./rules-calls.ts";
import { IMPORT_RULES } from "./rules-imports.ts";
import { PACKAGE_RULES } from "./rules-packages.ts";
import { SIZE_RULES } from "./rules-size.ts";
import { TEXT_RULES } from "./rules-text.ts";
import { type Finding, importsOf, type Rule, readProject, withoutComments } from "./source.ts";

const RULES = [...IMPORT_RULES, ...SIZE_RULES, ...CALL_RULES, ...PACKAGE_RULES, ...TEXT_RULES];
const project = readProject();
const isExcepted = (rule: Rule, { path }: Finding) => EXCEPTIONS.some((exception) => exception.rule === rule.name && exception.path === path);
const written = ({ path, line, message }: Finding) => `${path}:${line} ${message}`;

describe("the repository", () => {
  for (const rule of RULES)
    test(rule.name, () => {
      expect(
        rule
          .check(project)
          .filter((finding) => !isExcepted(rule, finding))
          .map(written),
      ).toEqual([]);
    });

  test("every exception is still needed, and says why", () => {
    const idle = EXCEPTIONS.filter(
      ({ rule, path }) => !RULES.some((candidate) => candidate.name === rule && candidate.check(project).some((finding) => finding.path === path)),
    );
    expect(idle).toEqual([]);
    expect(EXCEPTIONS.filter(({ why }) => why.length < 20)).toEqual([]);
  });

  test("is really read", () => {
    const paths = project.map(({ path }) => path);
    for (const path of ["package.json", ".npmrc", ".ci/run", "scripts/test.mjs", "src/db/migrations/0001_hub.sql"]) expect(paths).toContain(path);
    expect(paths.filter((path) => path.includes("node_modules"))).toEqual([]);
  });
});

describe("each rule finds what it is for, and nothing beside it", () => {
  for (const rule of RULES)
    test(rule.name, () => {
      expect(rule.offends.length).toBeGreaterThan(0);
      rule.offends.forEach((sample, index) => {
        expect([index, rule.check(sample).length]).not.toEqual([index, 0]);
      });
      for (const sample of rule.passes ?? []) expect(rule.check(sample).map(written)).toEqual([]);
    });
});

test("comments are blanked without moving lines, and strings are not taken for comments", () => {
  const text = 'const a = "http://x"; // gone\n/* two\nlines */ const b = `// kept`;\n<p>Don\'t</p> // gone';
  expect(withoutComments(text)).toBe('const a = "http://x"; \n\n const b = `// kept`;\n<p>Don\'t</p> // gone');
});

test("imports are read over several lines, as types, and as calls", () => {
  const text =
    'import a, {\n  b,\n} from "./b.ts";\nimport type { C } from "../c.ts";\nexport { d } from "d";\nimport "./e.css";\nawait import("./f.ts");\nconst from = "g";';
  const found = importsOf({ path: "src/hub/a.ts", text }).map(({ target, typeOnly }) => [target, typeOnly] as const);
  expect(found).toEqual([
    ["src/hub/b.ts", false],
    ["src/c.ts", true],
    ["d", false],
    ["src/hub/e.css", false],
    ["src/hub/f.ts", false],
  ]);
});

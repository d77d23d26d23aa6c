// The reference says what the code does: made pages are up to date, and nothing that users meet is missing from them.
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { madeFiles } from "../../scripts/docs.ts";
import { MODEL_MODULES, modelsOf } from "../../src/api/models.ts";
import { openapiDocument } from "../../src/api/openapi.ts";
import { ROUTES } from "../../src/api/routes.ts";
import { ERRORS } from "../../src/protocol/errors.ts";
import { RUNTIME_ERRORS } from "../../src/protocol/runtime-errors.ts";
import { TEST_VARIABLES, VARIABLES } from "../../src/protocol/variables.ts";

const ROOT = join(import.meta.dir, "../..");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const sources = () =>
  readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => /\.tsx?$/.test(path) && path !== "runtime/redact/known-secrets.ts") // a list of names that hold no secret, not of settings
    .map((path) => read(join("src", path)));

test.each(Object.keys(madeFiles()))("%s is what the code says now (`npm run docs` writes it)", (path) => {
  expect(read(path)).toBe(madeFiles()[path]!);
});

test("every route, error code and variable is in the reference", () => {
  const [api, errors, settings] = [read("docs/api.md"), read("docs/errors.md"), read("docs/settings.md")];
  for (const { method, path } of ROUTES) expect(api).toContain(`\`${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}\``);
  for (const code of [...Object.keys(ERRORS), ...Object.keys(RUNTIME_ERRORS)]) expect(errors).toContain(`| \`${code}\` |`);
  for (const { name } of VARIABLES) expect(settings).toContain(`| \`${name}\` |`);
});

test("every environment variable that src reads is described, and every described one is read", () => {
  const described = new Set<string>(VARIABLES.map(({ name }) => name));
  const table = read("src/protocol/variables.ts");
  const used = new Set(
    sources()
      .filter((text) => text !== table)
      .flatMap((text) => [...text.matchAll(/\bKXM_[A-Z][A-Z_]*[A-Z]\b/g)].map(([name]) => name)),
  );
  expect([...used].filter((name) => !described.has(name) && !TEST_VARIABLES.test(name))).toEqual([]);
  expect([...described].filter((name) => !used.has(name))).toEqual([]);
  expect(described.size).toBe(VARIABLES.length);
});

test("every protocol file whose schemas the API uses has its models in the reference", async () => {
  const imported = readdirSync(join(ROOT, "src/api")).flatMap((file) =>
    [...read(`src/api/${file}`).matchAll(/"\.\.\/protocol\/([\w-]+)\.ts"/g)].map(([, name]) => name!),
  );
  expect(imported.length).toBeGreaterThan(10);
  const withModels = [];
  for (const name of new Set(imported)) if (modelsOf(await import(join(ROOT, `src/protocol/${name}.ts`))).length > 0) withModels.push(name);
  expect(withModels.filter((name) => !MODEL_MODULES.includes(name))).toEqual([]);
});

test("the OpenAPI document is whole: unique ids, no loose reference, a schema for every answer, a security scheme for every credential", () => {
  const document = openapiDocument(ROUTES) as any;
  const text = JSON.stringify(document);
  const operations = Object.values<any>(document.paths).flatMap((path) => Object.values<any>(path));
  expect(operations).toHaveLength(ROUTES.length);
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(ROUTES.length);
  for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) expect(document.components.schemas).toHaveProperty(name!);
  for (const { responses, security } of operations) {
    expect(Object.keys(responses)).toContainAnyValues(["403", "500"]);
    for (const need of security) for (const scheme of Object.keys(need)) expect(document.components.securitySchemes).toHaveProperty(scheme);
  }
  for (const code of ["lease_held", "invalid_agent_identity"]) expect(document["x-kxm-errors"]).toHaveProperty(code);
  expect(text).not.toContain("x-kxm-code");
});

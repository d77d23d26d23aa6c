// The programs that the documentation shows, for the tests that run them.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const DOCS = join(import.meta.dir, "../../docs");

/** The code of `<!-- example: name -->` in a page. @throws Error when the page has none of that name */
export function example(page: string, name: string): string {
  const [, code] = readFileSync(join(DOCS, page), "utf8").split(`<!-- example: ${name} -->\n`);
  const found = /^```\w+\n([\s\S]*?)```\n/.exec(code ?? "");
  if (!found) throw new Error(`${page} has no example ${name}`);
  return found[1]!;
}

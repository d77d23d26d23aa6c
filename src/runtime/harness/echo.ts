// The built-in harness for demos and tests: answers at once, costs nothing, and always says what it was told last.
import { readDeclaration } from "../engine/declaration.ts";

/**
 * The answer of the echo harness. When the instructions end with a declaration, such as `{"outcome":"failed"}`, it is that declaration; else it
 * declares `passed` with every evidence that is asked for.
 * @param instructions the step's own instructions, without what is put around them
 */
export function echo(instructions: string, title: string, evidenceKeys: string[]): string {
  const told = readDeclaration(instructions);
  if (told.kind === "declared") return JSON.stringify(told.declaration);
  const evidence = Object.fromEntries(evidenceKeys.map((key) => [key, `echo of ${key}`]));
  return JSON.stringify({ outcome: "passed", summary: `echo: ${title}`.slice(0, 200), ...(evidenceKeys.length > 0 && { evidence }) });
}

// Where in their JSON text definitions have a problem: the line, for the person who edits the file. The text is only read again once something is wrong.
import { findNodeAtLocation, type Node, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";

const STRICT = { disallowComments: true, allowTrailingComma: false };

/** Spaces between the words of an error's name: `PropertyNameExpected` → "property name expected". */
const spoken = (code: string) => code.replaceAll(/(?<=[a-z])[A-Z]/g, " $&").toLowerCase();

/** Tells lines of one text. */
export type Places = {
  /** What the JSON grammar says about the first thing it stumbles over. */
  readonly syntax: { line: number; message: string } | undefined;
  /** @param path such as `$[0].stages[1].label`; a part that is not there has the line of what it is missing from */
  line(path: string): number;
};

/** @param text the definitions as they were given, valid or not */
export function placesOf(text: string): Places {
  const errors: ParseError[] = [];
  const root = treeOf(text, errors);
  const lineAt = (offset: number) => text.slice(0, offset).split("\n").length;
  const [first] = errors;
  return {
    syntax: first && { line: lineAt(first.offset), message: spoken(printParseErrorCode(first.error)) },
    line(path) {
      let node: Node | undefined = root;
      for (const [, member, index] of path.matchAll(/\.([^.[]+)|\[(\d+)\]/g)) {
        const next: Node | undefined = node && findNodeAtLocation(node, [index === undefined ? member! : Number(index)]);
        if (!next) break;
        node = next;
      }
      const named = node?.parent?.type === "property" ? node.parent : node;
      return lineAt(named?.offset ?? 0);
    },
  };
}

/** Of a text that nests deeper than the parser can follow there is none: then every problem has the first line. */
function treeOf(text: string, errors: ParseError[]): Node | undefined {
  try {
    return parseTree(text, errors, STRICT);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

// How this program was started and how it is called: for starting it again and for the commands it tells people to type.
import { dirname, join, relative } from "node:path";

const COMPILED = Bun.main.startsWith("/$bunfs/") || Bun.main.includes("~BUN");
/** The repository, when the program runs from source. */
const ROOT = join(dirname(Bun.main), "..");

/** Arguments that stand between the runtime and our own: none for a compiled program. */
export const ownScript = (): string[] => (COMPILED ? [] : ["--no-env-file", `--tsconfig-override=${join(ROOT, "tsconfig.json")}`, Bun.main]);

/** What people type: `kxm`, or `npx kxm` inside the repository. @param cwd where they are */
export function ownName(cwd: string): string {
  if (COMPILED) return "kxm";
  return relative(ROOT, cwd).startsWith("..") ? "kxm" : "npx kxm";
}

// A throw-away copy of the project's scripts, around sources of a test's own: what `npm start` and `npm test` do is seen from outside.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export const ROOT = join(import.meta.dir, "..", "..");
export const NODE = Bun.which("node")!;

export type Workbench = Disposable & {
  path: (name: string) => string;
  write: (name: string, text: string) => void;
  run: (script: string, args?: string[], env?: Record<string, string>) => Promise<{ code: number; out: string; err: string }>;
};

/**
 * A folder with the scripts and the manifest. `packages` "as here" lends this project's node_modules and is locked to what is in there, so that
 * nothing is installed; "none" starts without. Files are removed at the end of the test.
 */
export function workbench(packages: "as here" | "none"): Workbench {
  const folder = mkdtempSync(join(tmpdir(), "kxm-scripts-"));
  const path = (name: string) => join(folder, name);
  const write = (name: string, text: string) => {
    mkdirSync(dirname(path(name)), { recursive: true });
    writeFileSync(path(name), text);
  };
  for (const name of ["scripts", "package.json"]) cpSync(join(ROOT, name), path(name), { recursive: true });
  if (packages === "as here") {
    symlinkSync(join(ROOT, "node_modules"), path("node_modules"));
    write("package-lock.json", lockOfWhatIsInstalled());
  }
  return {
    path,
    write,
    async run(script, args = [], env = {}) {
      const child = Bun.spawn([NODE, path(`scripts/${script}`), ...args], {
        cwd: folder,
        env: { ...process.env, ...env },
        stdout: "pipe",
        stderr: "pipe",
      });
      const [out, err, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
      return { code, out, err };
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function lockOfWhatIsInstalled() {
  const installed = JSON.parse(readFileSync(join(ROOT, "node_modules/.package-lock.json"), "utf8")) as { packages: object };
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  return JSON.stringify({ packages: { "": { dependencies, devDependencies }, ...installed.packages } });
}

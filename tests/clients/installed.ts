// The real agent programs, installed from the package registry once into the cache of this checkout, in the versions their rows were checked with.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
/** Some programs need a newer Node than this machine's. */
const NODE = "node@24";

/** Installs packages; answers the folder of their programs. @param place a folder of their own in the cache @throws with npm's words when it cannot */
export async function installed(packages: string[], place = "clients"): Promise<string> {
  const wanted = [...packages, NODE].toSorted();
  const folder = join(ROOT, "node_modules/.cache/kxm", place);
  const note = join(folder, "installed.json");
  if (existsSync(note) && JSON.stringify(await Bun.file(note).json()) === JSON.stringify(wanted)) return join(folder, "node_modules/.bin");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), "{}");
  const npm = Bun.spawn(["npm", "install", "--no-audit", "--no-fund", "--no-save", ...wanted], { cwd: folder, stdout: "ignore", stderr: "pipe" });
  const [words, code] = await Promise.all([new Response(npm.stderr).text(), npm.exited]);
  if (code !== 0) throw new Error(`npm install ended with ${code}: ${words.slice(-1000)}`);
  writeFileSync(note, JSON.stringify(wanted));
  return join(folder, "node_modules/.bin");
}

/** A stand-in of the model providers that plays a script. */
export async function modelStandIn(script: object[]): Promise<{ url: string } & AsyncDisposable> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "model-stand-in.ts")], {
    env: { PATH: process.env["PATH"]!, PORT: "0", LOG: "/dev/null", SCRIPT: JSON.stringify(script) },
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await child.stdout.getReader().read();
  const { url } = JSON.parse(new TextDecoder().decode(value)) as { url: string };
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await child.exited;
    },
  };
}

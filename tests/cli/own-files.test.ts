// What came with a repository, or from a hub that lies, must not make a command write outside of the folder or give a token away.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { writeBelow } from "../../src/cli/own-files.ts";
import { temporaryFolder } from "../support/folders.ts";
import { runHere } from "../support/served.ts";

let base: ReturnType<typeof temporaryFolder>;
let folder: string;
beforeEach(() => {
  base = temporaryFolder();
  folder = join(base.path, "shop");
  mkdirSync(folder);
  writeFileSync(join(base.path, "mine"), "as it was");
});
afterEach(() => base[Symbol.dispose]());
const put = (path: string, text: string) => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
};
const linkTo = (path: string, target: string) => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  symlinkSync(target, join(folder, path));
};
const mine = () => readFileSync(join(base.path, "mine"), "utf8");
const kxm = (...args: string[]) => runHere(args, { folder, env: { HOME: join(base.path, "home"), PATH: "", KXM_URL: "http://127.0.0.1:1" } });

describe("a file below a folder", () => {
  test("is written, with the folders between, also through a link that stays below", () => {
    writeBelow(folder, "a/b/c.md", "one");
    linkTo("AGENTS.md", "a/b/c.md");
    linkTo("d", "a");
    writeBelow(folder, "AGENTS.md", "two");
    expect(readFileSync(join(folder, "a/b/c.md"), "utf8")).toBe("two");
    writeBelow(folder, "d/b/c.md", "three");
    expect(readFileSync(join(folder, "a/b/c.md"), "utf8")).toBe("three");
    expect(() => writeBelow(folder, "a/b/c.md", "four", "new")).toThrow("EEXIST");
  });

  test.each(["../mine", "a/../../mine", "/mine", "", "a//b", "./a", "a/.", "..\\mine", "C:/mine", "a\0b"])("never at %j", (path) => {
    expect(() => writeBelow(folder, path, "no")).toThrow("leads out of this folder");
    expect(() => writeBelow(folder, join(base.path, "mine"), "no")).toThrow("leads out of this folder");
    expect(mine()).toBe("as it was");
  });

  test("never through a link that leads out, or to nothing yet", () => {
    linkTo("file", "../mine");
    linkTo("folder", "..");
    linkTo("nothing", "../new");
    for (const path of ["file", "folder/mine", "folder/new", "nothing", "nothing/a"])
      expect(() => writeBelow(folder, path, "no")).toThrow("leads out of this folder");
    expect(() => writeBelow(folder, "nothing", "no", "new")).toThrow("EEXIST");
    expect([mine(), existsSync(join(base.path, "new"))]).toEqual(["as it was", false]);
  });
});

test("a hub that names pages outside of the wiki is not believed", async () => {
  const paths = ["../mine", join(base.path, "mine"), ".git/hooks/pre-commit", ".kxm/knowledge/wiki/../../../../mine.md", ".kxm/knowledge/wiki/a.sh"];
  let path = "";
  using hub = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => Response.json({ pages: [{ path, content: "no" }], lint: [] }) });
  const url = `http://127.0.0.1:${hub.port}`;
  for (path of paths)
    for (const command of [
      ["context", "wiki", "--write"],
      ["memory", "sync"],
    ]) {
      const ran = await runHere([...command, "--hub", url], { folder, env: { HOME: base.path, KXM_PROJECT: "shop" } });
      expect([path, ran.code]).toEqual([path, 1]);
      expect(ran.stderr).toContain("outside of the wiki");
    }
  expect([mine(), existsSync(join(folder, ".git")), existsSync(join(folder, ".kxm"))]).toEqual(["as it was", false, false]);
});

test("links in a repository do not lead what commands write somewhere else", async () => {
  linkTo(".mcp.json.kxm-new", "../mine");
  expect((await kxm("connect", "claude")).code).toBe(0);
  expect(readFileSync(join(folder, ".mcp.json"), "utf8")).toContain("kxm");

  put(".cursor/mcp.json", "{}");
  linkTo(".cursor/mcp.json.before-kxm", "../../new");
  expect((await kxm("connect", "cursor")).stderr).toContain("cannot be written");

  linkTo(".claude/skills/kxm/SKILL.md", "../../../../mine");
  expect((await kxm("skill", "install")).stderr).toContain("leads out of this folder");

  linkTo(".kxm/memory", "../..");
  expect((await kxm("memory", "note", "--title", "new", "text")).stderr).toContain("leads out of this folder");

  Bun.spawnSync(["git", "init", "-q"], { cwd: folder });
  linkTo(".kxm/project.yaml", "../../new");
  const init = await runHere(["init"], { folder, env: { HOME: base.path, PATH: process.env["PATH"]! } });
  expect(init.stderr).toContain("leads out of this folder");

  expect([mine(), existsSync(join(base.path, "new")), existsSync(join(base.path, "new.md"))]).toEqual(["as it was", false, false]);
});

test("an address that came with a repository gets no token; a hub's own note does its work", async () => {
  const seen: (string | null)[] = [];
  const asked = (request: Request) => {
    seen.push(request.headers.get("authorization"));
    return Response.json({ leases: [] });
  };
  using hub = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: asked });
  const state = join(folder, ".kxm", "state");
  const list = async (url: string, mode: number) => {
    put(".kxm/state/hub.json", JSON.stringify({ pid: process.pid, url, version: "0", startedAt: "", logPath: "" }));
    chmodSync(state, mode);
    // Without a note a command asks at KXM_PORT, where nobody is.
    await runHere(["lease", "list"], { folder, env: { HOME: base.path, KXM_TOKEN: "token-of-mine", KXM_PORT: "1", KXM_PROJECT: "shop" } });
    return seen.splice(0);
  };
  const url = `http://127.0.0.1:${hub.port}`;
  expect(await list(url, 0o755)).toEqual([]); // as Git makes folders
  expect(await list(url.replace("127.0.0.1", "somebody@127.0.0.1"), 0o700)).toEqual([]);
  expect(await list(url, 0o700)).toEqual(["Bearer token-of-mine"]);
});

test("a note names an address of this machine, or counts for nothing", async () => {
  const { readNote } = await import("../../src/cli/state-dir.ts");
  const state = join(folder, ".kxm", "state");
  const noted = (url: string) => {
    put(".kxm/state/hub.json", JSON.stringify({ pid: 1, url, version: "0", startedAt: "", logPath: "" }));
    chmodSync(state, 0o700);
    return readNote(state)?.url;
  };
  for (const url of ["http://127.0.0.1:7331", "http://localhost:7331", "http://[::1]:7331"]) expect(noted(url)).toBe(url);
  for (const url of [
    "http://evil.example",
    "http://192.0.2.1:7331",
    "http://127.0.0.1.evil.example:7331",
    "http://localhost:7331/path",
    "file:///etc",
    "x",
  ])
    expect([url, noted(url)]).toEqual([url, undefined]);
  symlinkSync(state, join(base.path, "state"));
  noted("http://127.0.0.1:7331");
  expect(readNote(join(base.path, "state"))).toBeUndefined();
});

test("this machine's operator token goes to a hub that runs, not to whoever took the port of one that ended", async () => {
  const seen: (string | null)[] = [];
  const asked = (request: Request) => {
    seen.push(request.headers.get("authorization"));
    return Response.json({ leases: [] });
  };
  using impostor = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: asked });
  const url = `http://127.0.0.1:${impostor.port}`;
  const ended = Bun.spawnSync(["true"]).pid;
  put(".kxm/state/admin.token", "token-of-this-machine\n");
  const state = join(folder, ".kxm", "state");
  chmodSync(state, 0o700);
  const list = async (pid: number | undefined) => {
    if (pid !== undefined) put(".kxm/state/hub.json", JSON.stringify({ pid, url, version: "0", startedAt: "", logPath: "" }));
    await runHere(["lease", "list"], { folder, env: { HOME: base.path, KXM_PORT: String(impostor.port), KXM_PROJECT: "shop" } });
    return seen.splice(0);
  };
  expect(await list(undefined)).toEqual([null]); // no hub left a note
  expect(await list(ended)).toEqual([null]); // it was killed
  expect(await list(process.pid)).toEqual(["Bearer token-of-this-machine"]);
});

// Projects of several repositories, on real ones: one that holds others, and one whose folder holds no repository itself.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Workspace } from "../../../src/runtime/engine/local.ts";
import type { Repository } from "../../../src/runtime/project/repositories.ts";
import { listWorktrees, removeWorktree, whyKeep } from "../../../src/runtime/workspace/inventory.ts";
import { capture, materialize, pinHeads, restore } from "../../../src/runtime/workspace/worktrees.ts";
import { sh } from "../engine/world.ts";

let base: string;
let root: string;
beforeEach(() => {
  base = mkdtempSync("/dev/shm/kxm-repositories-");
  root = join(base, "project");
  mkdirSync(root);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const SHOP: Repository = { id: "shop", path: "." };
const API: Repository = { id: "api", path: "api" };
const LIB: Repository = { id: "lib", path: "libs/lib" };

/** Makes a repository with a file of its own; answers its commit. */
function repository(path: string, files: Record<string, string> = {}): string {
  const folder = join(root, path);
  mkdirSync(folder, { recursive: true });
  sh(folder, "git init -q -b main && git config user.name Ana && git config user.email ana@localhost");
  for (const [name, text] of Object.entries({ "a.txt": `${path}\n`, ...files })) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  sh(folder, "git add -A && git commit -qm start");
  return sh(folder, "git rev-parse HEAD");
}
/** A workspace of these repositories at their commits; those that are named may be changed. */
async function workspaceOf(repositories: Repository[], name: string, ...writes: string[]): Promise<Workspace> {
  const pinned = await pinHeads(root, repositories);
  const branch = `kxm/run_1/${name}`;
  const trees = repositories.map((one) => ({ ...one, base: pinned[one.id]!.base, ...(writes.includes(one.id) && { branch }) }));
  return { access: writes.length > 0 ? "write" : "read", path: join(base, "trees/run_1", name), trees };
}
const folder = () => join(base, "trees");
const text = (...path: string[]) => readFileSync(join(...path), "utf8");

describe("pinning", () => {
  test("each repository is pinned at its own commit; a change in an inner one is none of the outer one", async () => {
    const shop = repository(".", { ".gitignore": "/api/\n" });
    const api = repository("api");
    writeFileSync(join(root, "api/a.txt"), "changed");
    expect(await pinHeads(root, [SHOP, API])).toEqual({ shop: { base: shop, dirty: false }, api: { base: api, dirty: true } });
  });

  test("the project's folder need not be a repository when others are named", async () => {
    const [api, lib] = [repository("api"), repository("libs/lib")];
    expect(await pinHeads(root, [API, LIB])).toEqual({ api: { base: api, dirty: false }, lib: { base: lib, dirty: false } });
  });

  test.each<[string, () => void, Repository[], RegExp]>([
    ["that is not there", () => repository("."), [SHOP, API], /api is not there/],
    ["that is only a folder of another one", () => repository(".", { "api/a.txt": "a" }), [SHOP, API], /is a folder of another repository/],
    ["whose folder is no repository", () => mkdirSync(join(root, "api")), [API], /is not in a Git repository/],
    [
      "that the outer one would take up in its commits",
      () => {
        repository(".");
        repository("api");
      },
      [SHOP, API],
      /which would take it up/,
    ],
    [
      "that a link leads to",
      () => {
        repository("../elsewhere");
        symlinkSync(join(base, "elsewhere"), join(root, "api"));
      },
      [API],
      /is a link/,
    ],
  ])("a repository %s is refused with what to do", async (_, make, repositories, sentence) => {
    make();
    const refused = await pinHeads(root, repositories).catch((error) => error);
    expect(refused).toMatchObject({ code: "repository_unusable", message: expect.stringMatching(sentence) });
    expect(refused.hint).toBeTruthy();
  });
});

describe.each<[string, Repository[], () => void]>([
  [
    "a repository that holds another",
    [SHOP, API],
    () => {
      repository(".", { ".gitignore": "/api/\n" });
      repository("api");
    },
  ],
  [
    "a repository with a submodule",
    [SHOP, API],
    () => {
      repository("../origin");
      repository(".");
      sh(root, `git -c protocol.file.allow=always submodule --quiet add ${base}/origin api && git commit -qm submodule`);
      sh(join(root, "api"), "git config user.name Ana && git config user.email ana@localhost");
    },
  ],
  [
    "two repositories in a folder that is none",
    [API, LIB],
    () => {
      repository("api");
      repository("libs/lib");
    },
  ],
])("%s", (_, repositories, make) => {
  const [one, two] = repositories as [Repository, Repository];
  beforeEach(make);

  test("a workspace is laid out as the project; what may be changed is kept on a branch of each repository", async () => {
    const work = await workspaceOf(repositories, "both", one.id, two.id);
    await materialize(root, work);
    for (const { path } of repositories) writeFileSync(join(work.path, path, "new.txt"), path);
    const changes = await capture(root, work, "both");
    expect(changes).toMatchObject([
      { repositoryId: one.id, branch: "kxm/run_1/both", added: ["new.txt"], modified: [], deleted: [] },
      { repositoryId: two.id, branch: "kxm/run_1/both", added: ["new.txt"], modified: [], deleted: [] },
    ]);
    for (const { path } of repositories) {
      expect(sh(join(root, path), "git show --name-only --format=%s kxm/run_1/both")).toBe("both\n\nnew.txt");
      expect(sh(join(root, path), "git status --porcelain")).toBe("");
    }
  });

  test("what was only to be read is thrown away, committed or not, and the rest is kept", async () => {
    const work = await workspaceOf(repositories, "half", one.id);
    await materialize(root, work);
    writeFileSync(join(work.path, one.path, "new.txt"), "kept");
    const read = join(work.path, two.path);
    sh(read, "echo mine >a.txt && git commit -qam mine && echo loose >loose.txt");
    expect(await capture(root, work, "half")).toMatchObject([{ repositoryId: one.id, added: ["new.txt"], modified: [] }]);
    expect([sh(read, "git status --porcelain"), sh(read, "git rev-parse HEAD")]).toEqual(["", work.trees[1]!.base]);
    expect(existsSync(join(work.path, one.path, "new.txt"))).toBe(true);
  });

  test("a reading checkout is brought back in every repository, and one that was cut short is made anew", async () => {
    const read = await workspaceOf(repositories, "read");
    await materialize(root, read);
    for (const { path } of repositories) writeFileSync(join(read.path, path, "junk.txt"), "junk");
    expect((await restore(root, read)).toSorted()).toEqual(repositories.map(({ path }) => join(path, "junk.txt")).toSorted());
    expect(await restore(root, read)).toEqual([]);
    rmSync(`${read.path}.ready`);
    rmSync(join(read.path, two.path), { recursive: true });
    writeFileSync(join(read.path, one.path, "left.txt"), "left");
    await materialize(root, read);
    expect(await restore(root, read)).toEqual([]);
    expect(existsSync(join(read.path, two.path, "a.txt"))).toBe(true);
  });

  test("a repository that somebody removed from a workspace is put back without touching the others", async () => {
    const work = await workspaceOf(repositories, "work", one.id, two.id);
    await materialize(root, work);
    writeFileSync(join(work.path, one.path, "mine.txt"), "mine");
    rmSync(join(work.path, two.path), { recursive: true });
    await materialize(root, work);
    expect(text(work.path, one.path, "mine.txt")).toBe("mine");
    expect(existsSync(join(work.path, two.path, "a.txt"))).toBe(true);
  });

  test("worktrees are listed by repository, and removed from the inside out when nothing in them is lost", async () => {
    const work = await workspaceOf(repositories, "work", one.id, two.id);
    await materialize(root, work);
    writeFileSync(join(work.path, two.path, "mine.txt"), "mine");
    const before = await listWorktrees(root, folder(), repositories);
    const keep = Object.fromEntries(before.map((report) => [report.repository, whyKeep(report)]));
    expect(keep).toEqual({ [one.id]: undefined, [two.id]: "1 files are not committed" } as never);
    await capture(root, work, "kept");
    for (const report of await listWorktrees(root, folder(), repositories)) await removeWorktree(root, report);
    expect(await listWorktrees(root, folder(), repositories)).toEqual([]);
    expect([existsSync(work.path), existsSync(`${work.path}.ready`)]).toEqual([false, false]);
    expect(sh(join(root, two.path), "git show --name-only --format= kxm/run_1/work")).toBe("mine.txt");
  });
});

test.each<[string, string]>([
  ["is taken away", "rm -rf api && mkdir api && echo x >api/x.txt"],
  [
    "is replaced by another repository",
    "rm -rf api && git init -q api && cd api && echo x >x.txt && git add -A && git -c user.name=A -c user.email=a@localhost commit -qm x",
  ],
])("a worktree that %s by the step is not taken for the repository: nothing is recorded of it", async (_, harm) => {
  const shop = repository(".", { ".gitignore": "/api/\n" });
  repository("api");
  const work = await workspaceOf([SHOP, API], "work", "shop", "api");
  await materialize(root, work);
  sh(work.path, harm);
  expect(await capture(root, work, "work").catch((error) => error)).toMatchObject({ code: "worktree_unusable" });
  expect(sh(root, "git rev-parse HEAD kxm/run_1/work").split("\n")).toEqual([shop, shop]);
  expect(sh(join(root, "api"), "git log --format=%s --all")).toBe("start");
});

test("a reading checkout that a step has broken is made anew for the next one", async () => {
  repository(".", { ".gitignore": "/api/\n" });
  repository("api");
  const read = await workspaceOf([SHOP, API], "read");
  await materialize(root, read);
  for (const harm of ["rm -rf api", "rm -rf api/.git", "rm .git", "rm -rf api && mkdir api && touch api/x"]) {
    sh(read.path, harm);
    await materialize(root, read);
    expect(await restore(root, read)).toEqual([]);
    expect([text(read.path, "a.txt"), text(read.path, "api/a.txt")]).toEqual([".\n", "api\n"]);
  }
});

test("a submodule that somebody has checked out in a worktree may hold work: the worktree stays", async () => {
  repository("../origin");
  repository(".");
  sh(root, `git -c protocol.file.allow=always submodule --quiet add ${base}/origin api && git commit -qm submodule`);
  const work = await workspaceOf([SHOP], "work", "shop");
  await materialize(root, work);
  sh(work.path, "git -c protocol.file.allow=always submodule --quiet update --init");
  const [report] = await listWorktrees(root, folder(), [SHOP]);
  await expect(removeWorktree(root, report!)).rejects.toMatchObject({ code: "worktree_unproven" });
  expect(existsSync(join(work.path, "api/a.txt"))).toBe(true);
});

test("a link in one repository does not lead the worktree of another one out of the workspace", async () => {
  repository(".", { ".gitignore": "/libs/\n" });
  repository("libs/lib");
  // The pinned commit holds a link where the checkout has the other repository's folder.
  sh(root, `mv libs aside && ln -s ${base}/outside libs && git add -f libs && git commit -qm trap && rm libs && mv aside libs`);
  mkdirSync(join(base, "outside"));
  const work = await workspaceOf([SHOP, LIB], "work", "shop", "lib").catch((error) => error);
  expect(await materialize(root, work).catch((error) => error)).toMatchObject({ code: "worktree_unusable" });
  expect(existsSync(join(base, "outside/lib"))).toBe(false);
});

test.each(["-n", "--help", "a b", "ü/ñ 日本", "a[b]*", ":(top)x", "!x", "#y", "a'b\"c", "x.lock"])(
  "folders are taken by their names, whatever git takes them for: %s",
  async (path) => {
    repository(".", { ".gitignore": `${path.replace(/[[\]*!#]/g, "\\$&").replace(/^/, "/")}\n` });
    repository(path);
    const odd: Repository = { id: "odd", path };
    const work = await workspaceOf([SHOP, odd], "work", "shop", "odd");
    await materialize(root, work);
    for (const one of [".", path]) writeFileSync(join(work.path, one, "new.txt"), one);
    expect(await capture(root, work, "work")).toMatchObject([
      { repositoryId: "shop", added: ["new.txt"] },
      { repositoryId: "odd", added: ["new.txt"] },
    ]);
    const read = await workspaceOf([SHOP, odd], "read");
    await materialize(root, read);
    writeFileSync(join(read.path, path, "junk.txt"), "");
    expect(await restore(root, read)).toEqual([join(path, "junk.txt")]);
    const reports = await listWorktrees(root, folder(), [SHOP, odd]);
    expect(reports.map(whyKeep)).toEqual(reports.map(() => undefined));
    for (const report of reports) await removeWorktree(root, report);
    expect(existsSync(read.path) || existsSync(work.path)).toBe(false);
  },
);

// Steps that put something else where a worktree was: a link to the user's own checkout, or a `.git` that leads elsewhere. Nothing outside the workspace
// is ever changed for it, and nothing that it names is run.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Workspace } from "../../../src/runtime/engine/local.ts";
import type { Repository } from "../../../src/runtime/project/repositories.ts";
import { listWorktrees, removeWorktree, whyKeep } from "../../../src/runtime/workspace/inventory.ts";
import { capture, materialize, pinHeads, restore } from "../../../src/runtime/workspace/worktrees.ts";
import { sh } from "../engine/world.ts";

let base: string;
let root: string;
const SHOP: Repository = { id: "shop", path: "." };
const API: Repository = { id: "api", path: "libs/api" };

beforeEach(() => {
  base = mkdtempSync("/dev/shm/kxm-replaced-");
  root = join(base, "project");
  for (const [path, files] of [
    [".", { ".gitignore": "/libs/\n", "a.txt": "shop\n" }],
    ["libs/api", { "a.txt": "api\n" }],
  ] as const) {
    const folder = join(root, path);
    mkdirSync(folder, { recursive: true });
    sh(folder, "git init -q -b main && git config user.name Ana && git config user.email ana@localhost");
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    sh(folder, "git add -A && git commit -qm start");
    writeFileSync(join(folder, "a.txt"), "what the user is working on\n");
    writeFileSync(join(folder, "new.txt"), "not yet added\n");
  }
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

async function made(name: string, repositories: Repository[], ...writes: string[]): Promise<Workspace> {
  const pinned = await pinHeads(root, repositories);
  const trees = repositories.map((one) => ({ ...one, base: pinned[one.id]!.base, ...(writes.includes(one.id) && { branch: `kxm/run_1/${name}` }) }));
  const workspace: Workspace = { access: writes.length > 0 ? "write" : "read", path: join(base, "trees/run_1", name), trees };
  await materialize(root, workspace);
  return workspace;
}
/** All that is the user's own. */
const own = (path: string) => sh(join(root, path), "git symbolic-ref HEAD; git rev-parse HEAD; git status --porcelain; cat a.txt new.txt");
const users = () => [own("."), own("libs/api")];

/** How a step puts something of the user's in the place of the worktree of the api. */
const REPLACED: [string, (tree: string) => void][] = [
  ["a link to the checkout", (tree) => sh(base, `rm -rf ${tree} && ln -s ${root}/libs/api ${tree}`)],
  ["a link in the folder above", (tree) => sh(base, `rm -rf ${dirname(tree)} && ln -s ${root}/libs ${dirname(tree)}`)],
  ["the repository of the checkout as its own", (tree) => writeFileSync(join(tree, ".git"), `gitdir: ${root}/libs/api/.git\n`)],
  ["a link to the repository of the checkout", (tree) => sh(base, `rm ${tree}/.git && ln -s ${root}/libs/api/.git ${tree}/.git`)],
];

test.each(REPLACED)("work is not recorded on what the user has: %s", async (_, replace) => {
  const workspace = await made("code", [SHOP, API], "shop", "api");
  const before = users();
  replace(join(workspace.path, "libs/api"));
  await expect(capture(root, workspace, "code")).rejects.toMatchObject({ code: "worktree_unusable" });
  expect(users()).toEqual(before);
});

test.each(REPLACED)("what was only to be read is not brought back in what the user has: %s", async (_, replace) => {
  const workspace = await made("code", [SHOP, API], "shop");
  const before = users();
  replace(join(workspace.path, "libs/api"));
  writeFileSync(join(workspace.path, "a.txt"), "of the step");
  expect(await capture(root, workspace, "code")).toMatchObject([{ repositoryId: "shop", modified: ["a.txt"] }]);
  expect(users()).toEqual(before);
});

test.each(REPLACED)("a reading checkout is made anew without touching what the user has: %s", async (_, replace) => {
  const workspace = await made("read", [SHOP, API]);
  const before = users();
  replace(join(workspace.path, "libs/api"));
  await materialize(root, workspace);
  await restore(root, workspace);
  expect(users()).toEqual(before);
  expect(readFileSync(join(workspace.path, "libs/api/a.txt"), "utf8")).toBe("api\n");
});

/** A repository whose settings make git run a program at nearly anything. */
const trap = (folder: string) =>
  sh(
    folder,
    `git init -q . && echo '* filter=trap' >.gitattributes && git config filter.trap.clean 'touch ${base}/sprung; cat' &&
     git config filter.trap.smudge 'touch ${base}/sprung; cat' && git config core.fsmonitor 'touch ${base}/sprung'`,
  );

test.each([[[]], [["shop"]], [["shop", "api"]]])(
  "a repository of the step's own in the place of a worktree is never asked anything (writes: %p)",
  async (writes) => {
    const workspace = await made("step", [SHOP, API], ...writes);
    const tree = join(workspace.path, "libs/api");
    sh(tree, "rm .git");
    trap(tree);
    sh(tree, "git add -A && git -c user.name=a -c user.email=a@localhost commit -qm trap && echo more >>a.txt");
    rmSync(join(base, "sprung"));
    const reports = await listWorktrees(root, join(base, "trees"), [SHOP, API]);
    expect(reports.map((one) => [one.repository, whyKeep(one)])).toEqual([
      ["api", "something else was put in its place"],
      ["shop", undefined],
    ]);
    await capture(root, workspace, "step").catch(() => {});
    await restore(root, workspace);
    if (workspace.access === "read") await materialize(root, workspace);
    expect(existsSync(join(base, "sprung"))).toBe(false);
  },
);

test("a repository that a step leaves in its worktree is not asked anything, its commit is recorded, and the worktree stays", async () => {
  const workspace = await made("step", [SHOP], "shop");
  const inner = join(workspace.path, "inner");
  mkdirSync(inner);
  trap(inner);
  sh(inner, "git add -A && git -c user.name=a -c user.email=a@localhost commit -qm trap && echo more >>a.txt");
  sh(workspace.path, "git -c advice.addEmbeddedRepo=false add -A");
  sh(workspace.path, `printf '[submodule "inner"]\n\tpath = inner\n\turl = ./inner\n\tignore = none\n' >.gitmodules`);
  rmSync(join(base, "sprung"), { force: true });
  expect(await capture(root, workspace, "step")).toMatchObject([{ added: [".gitmodules", "inner"] }]);
  expect(sh(workspace.path, "git ls-tree HEAD inner")).toContain(sh(inner, "git rev-parse HEAD"));
  const [report] = await listWorktrees(root, join(base, "trees"), [SHOP]);
  expect(whyKeep(report!)).toContain("inner is a repository of its own");
  await expect(removeWorktree(root, { ...report!, nested: [] })).rejects.toMatchObject({ code: "worktree_unproven" });
  await restore(root, workspace);
  expect(existsSync(join(base, "sprung"))).toBe(false);
});

test("a worktree of the user's that is not there just now, as on a drive that was taken out, is theirs when it is back", async () => {
  sh(root, `git worktree add -q -b usb ${base}/drive/usb && echo draft >${base}/drive/usb/a.txt && mv ${base}/drive ${base}/away`);
  const workspace = await made("code", [SHOP], "shop");
  const read = await made("read", [SHOP]);
  rmSync(read.path, { recursive: true });
  await materialize(root, read);
  rmSync(read.path, { recursive: true });
  for (const report of await listWorktrees(root, join(base, "trees"), [SHOP])) await removeWorktree(root, report);
  expect([existsSync(workspace.path), existsSync(read.path)]).toEqual([false, false]);
  expect(await listWorktrees(root, join(base, "trees"), [SHOP])).toEqual([]);
  sh(base, "mv away drive");
  expect(sh(`${base}/drive/usb`, "git symbolic-ref HEAD; git status --porcelain")).toBe("refs/heads/usb\n M a.txt");
});

test("a reading checkout keeps no repository that a step made in it", async () => {
  const read = await made("read", [SHOP, API]);
  for (const place of [".", "libs/api", "libs"]) sh(join(read.path, place), "git init -q left && touch left/a && git -C left add a");
  await restore(root, read);
  expect(["left", "libs/api/left"].map((path) => existsSync(join(read.path, path)))).toEqual([false, false]);
  expect(await restore(root, read)).toEqual([]);
  expect(readFileSync(join(read.path, "libs/api/a.txt"), "utf8")).toBe("api\n");
});

test("new files count as work, also for who has set git not to show them", async () => {
  sh(root, "git config status.showUntrackedFiles no");
  const [work, read] = [await made("code", [SHOP], "shop"), await made("read", [SHOP])];
  for (const { path } of [work, read]) writeFileSync(join(path, "fresh.txt"), "fresh");
  expect((await listWorktrees(root, join(base, "trees"), [SHOP])).map(whyKeep)).toEqual(["1 files are not committed", "1 files are not committed"]);
  expect(await restore(root, read)).toEqual(["fresh.txt"]);
  expect(existsSync(join(read.path, "fresh.txt"))).toBe(false);
});

// Worktrees on real repositories: made once and again after a crash, their work captured, and never removed while something in them is kept nowhere else.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Workspace } from "../../../src/runtime/engine/local.ts";
import { listWorktrees, removeWorktree, whyKeep } from "../../../src/runtime/workspace/inventory.ts";
import { capture, materialize, pinHeads, restore } from "../../../src/runtime/workspace/worktrees.ts";
import { openWorld, PASSED, script, sh, workflow } from "../engine/world.ts";

let base: string;
let root: string;
let head: string;
beforeEach(() => {
  base = mkdtempSync("/dev/shm/kxm-trees-");
  root = join(base, "repo");
  mkdirSync(root);
  sh(
    root,
    "git init -q -b main && git config user.name Ana && git config user.email ana@localhost && echo a >a.txt && git add -A && git commit -qm start",
  );
  head = sh(root, "git rev-parse HEAD");
});
afterEach(() => rmSync(base, { recursive: true, force: true }));
const MAIN = { id: "main", path: "." };
const writing = (name = "work"): Workspace => ({
  access: "write",
  path: join(base, "trees/run_1", name),
  trees: [{ ...MAIN, base: head, branch: `kxm/run_1/${name}` }],
});
const reading = (): Workspace => ({ access: "read", path: join(base, "trees/run_1/read"), trees: [{ ...MAIN, base: head }] });
const list = () => listWorktrees(root, join(base, "trees"), [MAIN]);
const pinHead = async (folder: string) => (await pinHeads(folder, [MAIN]))["main"]!;
/** What a writing attempt changed in its one repository. */
const captured = async (workspace: Workspace, message: string) => (await capture(root, workspace, message))[0]!;
const branchOf = ({ trees }: Workspace) => trees[0]!.branch;

test("a repository without commits starts from an empty commit that is the same everywhere and on no branch", async () => {
  for (const name of ["x", "y"]) sh(base, `git init -q ${name}`);
  const [x, y] = [await pinHead(join(base, "x")), await pinHead(join(base, "y"))];
  expect(x).toEqual(y);
  expect(sh(join(base, "x"), "git branch -a")).toBe("");
  await expect(pinHead(base)).rejects.toMatchObject({ code: "repository_unusable" });
});

test("HEAD is pinned, and changes of tracked files are told", async () => {
  expect(await pinHead(root)).toEqual({ base: head, dirty: false });
  writeFileSync(join(root, "a.txt"), "changed");
  expect(await pinHead(root)).toEqual({ base: head, dirty: true });
});

test("a worktree is made once; work in it survives another call; one that was cut short is made anew", async () => {
  const work = writing();
  await materialize(root, work);
  writeFileSync(join(work.path, "b.txt"), "b");
  await materialize(root, work);
  expect(existsSync(join(work.path, "b.txt"))).toBe(true);
  const half = writing("half");
  mkdirSync(half.path, { recursive: true });
  writeFileSync(join(half.path, "left"), "from git, cut short");
  await materialize(root, half);
  expect(readFileSync(join(half.path, "a.txt"), "utf8")).toBe("a\n");
  expect(existsSync(join(half.path, "left"))).toBe(false);
});

test("what a repository makes git run is told nothing of this machine's secrets", async () => {
  // A writer may change the repository's own settings; git then runs what they name, with what the Runtime gave git.
  const seen = join(base, "seen");
  const work = writing();
  await materialize(root, work);
  sh(work.path, `git config filter.spy.clean 'env >>${seen}; cat' && echo '* filter=spy' >.gitattributes`);
  process.env["KEY_OF_ANOTHER_PROGRAM"] = "not for repositories";
  try {
    expect((await captured(work, "work")).added).toEqual([".gitattributes"]);
  } finally {
    delete process.env["KEY_OF_ANOTHER_PROGRAM"];
  }
  expect(readFileSync(seen, "utf8")).toContain("PATH=");
  expect(readFileSync(seen, "utf8")).not.toContain("not for repositories");
});

test("many at once do not get in each other's way", async () => {
  const all = Array.from({ length: 6 }, (_, i) => writing(`w${i}`));
  await Promise.all([...all, reading(), reading()].map((work) => materialize(root, work)));
  expect(await list()).toHaveLength(7);
});

test("what an attempt did is committed on its branch, by the user's own name, also what the agent committed or moved itself", async () => {
  const plain = writing();
  await materialize(root, plain);
  expect(await capture(root, plain, "nothing")).toEqual([]);
  writeFileSync(join(plain.path, "b.txt"), "1\n2\n");
  const changes = await captured(plain, "work: b");
  expect(changes).toMatchObject({ branch: branchOf(plain), added: ["b.txt"], modified: [], deleted: [], linesAdded: 2, linesRemoved: 0 });
  expect(sh(root, `git log -1 --format='%an %s' ${branchOf(plain)}`)).toBe("Ana work: b");
  const own = writing("own");
  await materialize(root, own);
  sh(own.path, "git checkout -q -b elsewhere && echo c >c.txt && git add -A && git commit -qm mine && echo d >d.txt");
  expect(await captured(own, "rest")).toMatchObject({ added: ["c.txt", "d.txt"] });
  expect(sh(root, `git rev-parse ${branchOf(own)}`)).toBe(sh(root, "git rev-parse elsewhere"));
});

test("names that git would quote come through as they are", async () => {
  const work = writing();
  await materialize(root, work);
  const names = ["with space.txt", "ümlaut.txt", 'quo"te.txt', "tab\there.txt"];
  for (const name of names) writeFileSync(join(work.path, name), "x");
  expect((await captured(work, "odd")).added.toSorted()).toEqual(names.toSorted());
});

test("a reading checkout is brought back to its commit", async () => {
  const read = reading();
  await materialize(root, read);
  writeFileSync(join(read.path, "a.txt"), "changed");
  writeFileSync(join(read.path, "junk.txt"), "junk");
  expect((await restore(root, read)).toSorted()).toEqual(["a.txt", "junk.txt"]);
  expect(await restore(root, read)).toEqual([]);
  expect(readFileSync(join(read.path, "a.txt"), "utf8")).toBe("a\n");
  sh(read.path, "echo committed >a.txt && git commit -qam 'not allowed'");
  expect(await restore(root, read)).toEqual(["."]);
  expect(readFileSync(join(read.path, "a.txt"), "utf8")).toBe("a\n");
});

test("work that is kept nowhere else is never removed: uncommitted files, and commits on no branch", async () => {
  const [work, read] = [writing(), reading()];
  await materialize(root, work);
  await materialize(root, read);
  writeFileSync(join(work.path, "b.txt"), "b");
  sh(read.path, "echo c >c.txt && git add -A && git commit -qm loose");
  const reports = await list();
  const of = (path: string) => reports.find((report) => report.path === path)!;
  expect(whyKeep(of(work.path))).toBe("1 files are not committed");
  expect(whyKeep(of(read.path))).toBe("1 commits are on no branch");
  expect(of(work.path).bytes).toBeGreaterThan(0);
  for (const report of reports) await expect(removeWorktree(root, report)).rejects.toMatchObject({ code: "worktree_unproven" });
  await capture(root, work, "kept");
  sh(read.path, "git branch saved");
  for (const report of await list()) await removeWorktree(root, report);
  expect(await list()).toEqual([]);
  expect(sh(root, `git show --name-only --format= ${branchOf(work)}`)).toBe("b.txt");
});

test("a stale report does not remove work that was done after it", async () => {
  const work = writing();
  await materialize(root, work);
  const [report] = await list();
  writeFileSync(join(work.path, "late.txt"), "late");
  await expect(removeWorktree(root, report!)).rejects.toMatchObject({ code: "repository_unusable" });
  expect(existsSync(join(work.path, "late.txt"))).toBe(true);
});

test("worktrees of runs are listed with why they stay, and cleaned when nothing is lost", async () => {
  await using world = await openWorld({
    ".kxm/agents/a.yaml": script(`cat >/dev/null; echo x >x.txt; ${PASSED}`, { tools: "workspace-writer" }),
    ".kxm/workflows/main.yaml": workflow([
      { id: "code", kind: "agent", agent: "a" },
      { id: "ask", kind: "approval" },
    ]),
  });
  const runId = await world.start();
  const { asked } = await world.until(runId, (run) => run.asked !== undefined);
  const before = (await world.call("GET", "/v1/projects/:projectKey/worktrees")).worktrees;
  expect(before).toMatchObject([{ runId, keep: "its run is waiting", branch: `kxm/${runId}/code` }]);
  expect(await world.call("POST", "/v1/projects/:projectKey/worktrees/clean")).toMatchObject({ removed: [], kept: [{ why: "its run is waiting" }] });
  world.apply("approve", { approvalId: asked!.approvalId, contentHash: asked!.contentHash }, runId);
  await world.finished(runId);
  writeFileSync(join(before[0].path, "later.txt"), "somebody works here");
  expect((await world.call("POST", "/v1/projects/:projectKey/worktrees/clean")).kept).toMatchObject([{ why: "1 files are not committed" }]);
  rmSync(join(before[0].path, "later.txt"));
  expect((await world.call("POST", "/v1/projects/:projectKey/worktrees/clean")).removed).toEqual([before[0].path]);
  expect(sh(world.root, `git show --name-only --format= kxm/${runId}/code`)).toBe("x.txt");
});

test("a repository that was made inside a worktree is kept nowhere else: the worktree stays, and says so", async () => {
  const work = writing();
  await materialize(root, work);
  sh(work.path, "git init -q inner && cd inner && git config user.name Ana && git config user.email ana@localhost");
  sh(work.path, "cd inner && echo work >f.txt && git add -A && git commit -qm inside");
  await capture(root, work, "a step");
  const [report] = await listWorktrees(root, join(base, "trees"), [MAIN]);
  expect(whyKeep(report!)).toBe("inner is a repository of its own, which is kept nowhere else");
  await expect(removeWorktree(root, report!)).rejects.toMatchObject({ code: "worktree_unproven" });
  expect(readFileSync(join(work.path, "inner/f.txt"), "utf8")).toBe("work\n");
  // Also for whoever looked before it was there.
  await expect(removeWorktree(root, { ...report!, nested: [] })).rejects.toMatchObject({ code: "worktree_unproven" });
  sh(work.path, "rm -rf inner && mkdir inner");
  const [empty] = await listWorktrees(root, join(base, "trees"), [MAIN]);
  await removeWorktree(root, empty!);
  expect(existsSync(work.path)).toBe(false);
});

test("a worktree whose folder is gone is made again with the work that its branch has", async () => {
  const work = writing();
  await materialize(root, work);
  sh(work.path, "echo one >one.txt && git add -A && git commit -qm one");
  const [report] = await listWorktrees(root, join(base, "trees"), [MAIN]);
  await removeWorktree(root, report!);
  await materialize(root, work);
  expect(readFileSync(join(work.path, "one.txt"), "utf8")).toBe("one\n");
  expect(await capture(root, work, "later")).toMatchObject([{ added: ["one.txt"] }]);
});

// Delivering an exact commit to a real remote: only if the ref still is what was expected; again is no change; a run records the receipt.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gates, openWorld, PASSED, script, sh, workflow } from "./engine/world.ts";

const MAIN = join(import.meta.dir, "../../src/main.ts");
let base: string;
let work: string;
beforeEach(() => {
  base = mkdtempSync("/dev/shm/kxm-push-");
  work = join(base, "work");
  sh(base, "git init -q --bare remote.git && git clone -q remote.git work 2>/dev/null");
  sh(
    work,
    "git config user.name T && git config user.email t@localhost && git checkout -q -b main && git commit -q --allow-empty -m one && git push -q origin main",
  );
});
afterEach(() => rmSync(base, { recursive: true, force: true }));
const oid = (name: string) => sh(work, `git rev-parse ${name}`);
const remote = (ref = "refs/heads/main") => sh(base, `git -C remote.git rev-parse -q --verify ${ref} || echo none`);
const push = async (...args: string[]) => {
  const child = Bun.spawn([process.execPath, MAIN, "gate", "push", ...args, "--json"], {
    cwd: work,
    env: { PATH: process.env["PATH"]!, HOME: base },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { code, err, receipt: out ? JSON.parse(out) : undefined };
};
const commit = (name: string) => sh(work, `git commit -q --allow-empty -m ${name} && git rev-parse HEAD`);

test("moves the ref to the commit, says so in a receipt, and again changes nothing", async () => {
  const before = oid("HEAD");
  const next = commit("two");
  const first = await push("--commit", next, "--to", "refs/heads/main", "--expect", before);
  expect(first).toMatchObject({
    code: 0,
    receipt: { schema: "kxm.receipt.v1", provider: "git", kind: "ref-update", id: `origin refs/heads/main ${next}` },
  });
  expect(remote()).toBe(next);
  expect((await push("--commit", next, "--to", "refs/heads/main", "--expect", before)).receipt.id).toBe(first.receipt.id);
});

test("refuses when somebody moved the ref, and pushes nothing", async () => {
  const before = oid("HEAD");
  const theirs = commit("theirs");
  sh(work, "git push -q origin HEAD:main");
  const ours = sh(work, `git checkout -q ${before} && git commit -q --allow-empty -m ours && git rev-parse HEAD`);
  const { code, err } = await push("--commit", ours, "--to", "refs/heads/main", "--expect", before);
  expect([code, remote()]).toEqual([1, theirs]);
  expect(err).toContain("nothing was pushed");
  // With the object that is there now it goes, also where it is no fast-forward: that is what was asked for.
  expect((await push("--commit", ours, "--to", "refs/heads/main", "--expect", theirs)).code).toBe(0);
  expect(remote()).toBe(ours);
});

test("the expectation is held at the remote itself, not only before the push", async () => {
  // A remote that is moved between the look and the push: a hook of the remote does it.
  const before = oid("HEAD");
  const theirs = commit("theirs");
  sh(work, "git push -q origin HEAD:refs/heads/side");
  const ours = sh(work, `git checkout -q ${before} && git commit -q --allow-empty -m ours && git rev-parse HEAD`);
  writeFileSync(
    join(base, "git"),
    `#!/bin/sh\ncase "$*" in *push*) GIT_DIR=${base}/remote.git ${Bun.which("git")} update-ref refs/heads/main ${theirs};; esac\nexec ${Bun.which("git")} "$@"\n`,
  );
  chmodSync(join(base, "git"), 0o755);
  const child = Bun.spawn([process.execPath, MAIN, "gate", "push", "--commit", ours, "--to", "refs/heads/main", "--expect", before], {
    cwd: work,
    env: { PATH: `${base}:${process.env["PATH"]}`, HOME: base },
    stdout: "pipe",
    stderr: "pipe",
  });
  expect(await child.exited).toBe(1);
  expect(remote()).toBe(theirs);
});

test("a new ref needs none, an existing one is not new", async () => {
  const next = commit("two");
  expect((await push("--commit", next, "--to", "refs/heads/release", "--expect", "none")).code).toBe(0);
  expect((await push("--commit", oid("HEAD~1"), "--to", "refs/heads/release", "--expect", "none")).code).toBe(1);
  expect(remote("refs/heads/release")).toBe(next);
});

test("refuses what is no ref, no commit, no object id, and options in disguise", async () => {
  for (const args of [
    ["--commit", "HEAD", "--to", "main"],
    ["--commit", "HEAD", "--to", "refs/heads/a..b"],
    ["--commit", "HEAD", "--to", "refs/heads/x", "--expect", "abc"],
    ["--commit", "HEAD", "--to", "refs/heads/x", "--remote=--upload-pack=touch /tmp/x"],
  ])
    expect((await push(...args)).code, args.join(" ")).toBe(2);
  expect((await push("--commit", "nothing", "--to", "refs/heads/x")).code).toBe(1);
  expect((await push("--commit", "--output=x", "--to", "refs/heads/x")).code).toBe(1);
  expect((await push("--commit", "HEAD", "--to", "refs/heads/x", "--remote", "nowhere")).code).toBe(3);
  expect(remote("refs/heads/x")).toBe("none");
  expect(existsSync(join(work, "x"))).toBe(false);
});

test("hooks of the checkout do not run", async () => {
  mkdirSync(join(work, ".git/hooks"), { recursive: true });
  writeFileSync(join(work, ".git/hooks/pre-push"), `#!/bin/sh\ntouch ${base}/hooked\n`);
  chmodSync(join(work, ".git/hooks/pre-push"), 0o755);
  expect((await push("--commit", commit("two"), "--to", "refs/heads/main")).code).toBe(0);
  expect(existsSync(join(base, "hooked"))).toBe(false);
});

test("a run delivers its own commit with it, and the receipt is evidence", async () => {
  const argv = [process.execPath, MAIN, "gate", "push", "--commit", "{{commit}}", "--to", "refs/heads/main", "--expect", "{{base}}"];
  await using world = await openWorld({
    ".kxm/agents/a.yaml": script(`cat >/dev/null; echo x >x.txt; ${PASSED}`, { tools: "workspace-writer" }),
    ".kxm/gates.yaml": gates({ deliver: { argv, effect: "external-idempotent" } }),
    ".kxm/workflows/main.yaml": workflow([
      { id: "code", kind: "agent", agent: "a" },
      {
        id: "deliver",
        kind: "gate",
        gate: "deliver",
        requiredEvidence: [{ key: "deliver", kind: "receipt" }],
        on: { passed: "$terminal", "implementation-failure": "$terminal" },
      },
    ]),
  });
  sh(world.root, `git remote add origin ${base}/remote.git && git push -q -f origin main`);
  const runId = await world.start();
  const run = await world.finished(runId);
  expect(run.status).toBe("completed");
  expect(remote()).toBe(run.repositories[0]!.head);
  const recorded = world.events(runId).find(({ eventType }) => eventType === "effect.receipt_recorded")!;
  expect(recorded.payload.receipts).toMatchObject([
    { provider: "git", kind: "ref-update", id: `origin refs/heads/main ${run.repositories[0]!.head}` },
  ]);
  expect(world.outbox().filter(({ problem }) => problem)).toEqual([]);
});

// A run over several repositories: who may change which, what later steps and gates see, and what is recorded.
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { inspectBundle } from "../../../src/runtime/project/bundle.ts";
import { gates, openWorld, PASSED, PROJECT_ID, script, sh, type World, workflow } from "./world.ts";

const PROJECT = {
  schema: "kxm.project.v1",
  id: PROJECT_ID,
  name: "demo",
  defaultWorkflow: "main",
  defaultHarness: "echo",
  repositories: [
    { id: "shop", path: "." },
    { id: "api", path: "services/api" },
  ],
};
const writer = (text: string, more: object = {}) => script(`cat >/dev/null; ${text}; ${PASSED}`, { tools: "workspace-writer", ...more });

/** A world whose project has a second repository. */
async function openShop(files: Parameters<typeof openWorld>[0]): Promise<World> {
  const world = await openWorld({ ".kxm/project.yaml": PROJECT, ".gitignore": "/services/\n", ...files });
  const api = join(world.root, "services/api");
  mkdirSync(api, { recursive: true });
  writeFileSync(join(api, "api.txt"), "api\n");
  sh(api, "git init -q -b main && git config user.name Test && git config user.email test@localhost && git add -A && git commit -qm start");
  return world;
}
const outcomes = (world: World, runId: string) =>
  Object.fromEntries(
    world
      .events(runId)
      .filter(({ eventType }) => eventType === "step.outcome_recorded")
      .map(({ payload }) => [payload.stepId, payload.fileChanges ?? []]),
  );

test("a step changes the repositories it may; later steps and gates see all of it, and each change is recorded with its repository", async () => {
  await using world = await openShop({
    ".kxm/agents/both.yaml": writer("echo new >shop.txt; echo more >>services/api/api.txt"),
    ".kxm/agents/reader.yaml": script(`cat >"$OUT.prompt"; test -f shop.txt && grep -q more services/api/api.txt && ${PASSED}`, { env: ["OUT"] }),
    ".kxm/gates.yaml": gates({
      check: {
        argv: [
          "/bin/sh",
          "-c",
          'test "$(git rev-parse HEAD)" = "$1" && test "$2" != "$1" && grep -q more api.txt',
          "sh",
          "{{commit.api}}",
          "{{commit}}",
        ],
        cwd: "services/api",
      },
    }),
    ".kxm/workflows/main.yaml": workflow([
      { id: "code", kind: "agent", agent: "both" },
      { id: "check", kind: "gate", gate: "check", on: { passed: "look", "implementation-failure": "$terminal" } },
      { id: "look", kind: "agent", agent: "reader" },
    ]),
  });
  process.env["OUT"] = join(world.base, "out");
  const runId = await world.start();
  const run = await world.finished(runId);
  expect([run.status, run.reason]).toEqual(["completed", undefined]);
  expect(outcomes(world, runId)).toEqual({
    code: [
      { repositoryId: "shop", added: ["shop.txt"], modified: [], deleted: [] },
      { repositoryId: "api", added: [], modified: ["api.txt"], deleted: [] },
    ],
    check: [],
    look: [],
  });
  const branch = `kxm/${runId}/code`;
  expect(run.repositories).toMatchObject([
    { id: "shop", branch, head: sh(world.root, `git rev-parse ${branch}`) },
    { id: "api", path: "services/api", branch, head: sh(join(world.root, "services/api"), `git rev-parse ${branch}`) },
  ]);
  expect(await Bun.file(join(world.base, "out.prompt")).text()).toContain("- api: services/api/, to read: changes there are thrown away");
  const { receipt } = await world.call("GET", "/v1/projects/:projectKey/runs/:runId/receipt", { runId });
  expect(receipt.commits.api).toEqual({ base: run.repositories[1]!.base, head: run.repositories[1]!.head });
  expect(world.outbox().filter(({ problem }) => problem)).toEqual([]);
});

test.each<[string, object, object, string[]]>([
  ["neither says anything", {}, {}, ["shop", "api"]],
  ["the step asks for one: the other may be read", {}, { api: "write" }, ["api"]],
  ["the agent's ceiling holds whatever the step asks for", { repositories: { shop: "write" } }, { shop: "write", api: "write" }, ["shop"]],
  ["a ceiling of none takes the repository away", { repositories: { shop: "write", api: "none" } }, {}, ["shop"]],
  ["the tools only read", { tools: "read-only" }, { shop: "write", api: "write" }, []],
])("what may be changed: %s", async (_, agent, repositories, changed) => {
  const text = "echo new >shop.txt; mkdir -p services/api; echo new >services/api/api.txt";
  await using world = await openShop({
    ".kxm/agents/a.yaml": writer(text, agent),
    ".kxm/workflows/main.yaml": workflow([{ id: "code", kind: "agent", agent: "a", ...(Object.keys(repositories).length > 0 && { repositories }) }]),
  });
  const runId = await world.start();
  expect((await world.finished(runId)).status).toBe("completed");
  const { code } = outcomes(world, runId) as { code: { repositoryId: string }[] };
  expect(code.map(({ repositoryId }) => repositoryId)).toEqual(changed);
  expect(sh(world.root, "git status --porcelain")).toBe("");
});

test("a worktree stays while one that lies in it does, and both go when nothing is lost", async () => {
  await using world = await openShop({
    ".kxm/agents/a.yaml": writer("echo a >a.txt; echo a >services/api/a.txt"),
    ".kxm/workflows/main.yaml": workflow([{ id: "code", kind: "agent", agent: "a" }]),
  });
  await world.finished(await world.start());
  const clean = async () => world.call("POST", "/v1/projects/:projectKey/worktrees/clean");
  const { worktrees } = await world.call("GET", "/v1/projects/:projectKey/worktrees");
  const [inner, outer] = worktrees as { path: string; repository: string }[];
  expect([inner!.repository, outer!.repository, inner!.path]).toEqual(["api", "shop", `${outer!.path}/services/api`]);
  // The outer repository ignores the inner one: git itself would take it away with the outer worktree.
  writeFileSync(join(inner!.path, "later.txt"), "somebody works here");
  expect(await clean()).toEqual({
    removed: [],
    kept: [
      { path: inner!.path, why: "1 files are not committed" },
      { path: outer!.path, why: "a worktree in it stays" },
    ],
  });
  sh(inner!.path, "git add -A && git commit -qm later");
  expect(await clean()).toEqual({ removed: [inner!.path, outer!.path], kept: [] });
});

test("each member of a panel is held to its own ceiling", async () => {
  await using world = await openShop({
    ".kxm/agents/a.yaml": writer("sleep 0.2; echo a >a.txt; echo a >services/api/a.txt", { repositories: { api: "write" } }),
    ".kxm/workflows/main.yaml": workflow([
      {
        id: "race",
        kind: "moa",
        assignments: { allowedAgents: ["a"] },
        join: { strategy: "first-success" },
        repositories: { shop: "write", api: "write" },
      },
    ]),
  });
  const runId = await world.start();
  await world.finished(runId);
  expect(outcomes(world, runId)).toMatchObject({ race: [{ repositoryId: "api", added: ["a.txt"] }] });
});

test("a repository that is not there refuses the work with what to do; nothing runs", async () => {
  await using world = await openWorld({
    ".kxm/project.yaml": PROJECT,
    ".kxm/workflows/main.yaml": workflow([{ id: "ask", kind: "approval" }]),
  });
  await expect(world.start()).rejects.toThrow(/the repository api is not there/);
});

test("the folder of a repository may be written with a slash at its end", async () => {
  const repositories = PROJECT.repositories.map((one) => (one.id === "api" ? { ...one, path: "services/api/" } : one));
  await using world = await openShop({
    ".kxm/project.yaml": { ...PROJECT, repositories },
    ".kxm/agents/both.yaml": writer("echo more >>services/api/api.txt"),
    ".kxm/workflows/main.yaml": workflow([{ id: "code", kind: "agent", agent: "both" }]),
  });
  const runId = await world.start();
  expect((await world.finished(runId)).status).toBe("completed");
  expect(outcomes(world, runId)).toEqual({ code: [expect.objectContaining({ repositoryId: "api", modified: ["api.txt"] })] });
});

test("names and folders of repositories are unique, and files name only those that exist", () => {
  const root = join("/dev/shm", `kxm-files-${process.pid}`);
  const put = (path: string, content: object) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), JSON.stringify(content));
  };
  put(".kxm/project.yaml", { ...PROJECT, repositories: [...PROJECT.repositories, { id: "api", path: "." }, { id: "same", path: "services/api/" }] });
  put(".kxm/agents/a.yaml", { schema: "kxm.agent.v1", purpose: "x", repositories: { web: "read" } });
  put(".kxm/gates.yaml", gates({ g: { argv: ["true", "{{commit.web}}", "{{ branch.api }}"], lease: "branch:{{branch.web}}" } }));
  put(".kxm/workflows/main.yaml", workflow([{ id: "work", kind: "agent", agent: "a", repositories: { web: "write" } }]));
  const found = inspectBundle(root).problems.map(({ file, code, message }) => `${file} ${code} ${message}`);
  sh("/", `rm -r ${root}`);
  expect(found.toSorted()).toEqual([
    ".kxm/agents/a.yaml repository_unknown project.yaml has no repository called web",
    ".kxm/gates.yaml repository_unknown project.yaml has no repository called web",
    ".kxm/gates.yaml repository_unknown project.yaml has no repository called web",
    ".kxm/project.yaml repository_duplicate another repository has the id api",
    ".kxm/project.yaml repository_duplicate another repository has the path .",
    ".kxm/project.yaml repository_duplicate another repository has the path services/api",
    ".kxm/workflows/main.yaml repository_unknown project.yaml has no repository called web",
  ]);
});

import { expect, test } from "bun:test";
import { openWorld, script, workflow } from "./world.ts";

const ECHO = { schema: "kxm.agent.v1", purpose: "echoes" };
const files = {
  ".kxm/agents/a.yaml": ECHO,
  ".kxm/workflows/main.yaml": workflow([{ id: "work", kind: "agent", agent: "a" }]),
  ".kxm/workflows/release.yaml": workflow([{ id: "ship", kind: "agent", agent: "a" }]),
};
const code = (work: () => unknown) => {
  try {
    work();
  } catch (error) {
    return `${(error as { code?: string }).code}: ${(error as Error).message}`;
  }
  return "taken";
};

test("the same key is the same work: one run, whoever asks how often; other content under the key is refused", async () => {
  await using world = await openWorld(files);
  const first = await world.start({ prompt: "a", intakeKey: "k" });
  expect(await world.start({ prompt: "a", intakeKey: "k" })).toBe(first);
  expect(code(() => world.apply("start", { prompt: "b", intakeKey: "k" }))).toStartWith("command_conflict");
  expect(world.project.store.read.runs.list()).toHaveLength(1);
});

test("messages become runs in order of arrival, and refused ones say why and do not hold up the rest", async () => {
  await using world = await openWorld(files);
  world.apply("pause", { reason: "freeze" });
  for (const [intakeKey, workflowId] of [["1"], ["2", "nothing"], ["3", "release"]])
    world.apply("start", { displayTitle: `w${intakeKey}`, intakeKey: intakeKey!, ...(workflowId && { workflowId }) });
  expect(world.project.store.read.intake.queued()).toHaveLength(3);
  expect(world.apply("pause", {})).toEqual({ paused: true, changed: false });
  world.apply("resume", {});
  await world.until((await world.start({ intakeKey: "4" })) as string, ({ status }) => status === "completed");
  const all = world.project.store.read.intake.list().toReversed();
  expect(all.map(({ intakeKey, state }) => `${intakeKey} ${state}`)).toEqual(["1 dispatched", "2 refused", "3 dispatched", "4 dispatched"]);
  expect(all[1]!.reason).toBe("no workflow is called nothing; there are main, release");
  expect(
    world.project.store.read.runs
      .list()
      .map(({ displayTitle }) => displayTitle)
      .toReversed(),
  ).toEqual(["w1", "w3", undefined] as string[]);
});

test("a paused project holds work and lets runs that execute end", async () => {
  await using world = await openWorld({
    ...files,
    ".kxm/workflows/main.yaml": workflow([
      { id: "ask", kind: "approval" },
      { id: "work", kind: "agent", agent: "a" },
    ]),
  });
  const runId = await world.start();
  const { asked } = await world.until(runId, (run) => run.asked !== undefined);
  world.apply("pause", {});
  world.apply("approve", { approvalId: asked!.approvalId, contentHash: asked!.contentHash }, runId);
  expect((await world.finished(runId)).status).toBe("completed");
  const { intakeId } = world.apply("start", {});
  world.vanish();
  world.reopen();
  expect(world.project.store.read.intake.find(intakeId)!.state).toBe("queued");
});

test("once somebody is named, only they hand in work, for their workflows", async () => {
  await using world = await openWorld(files);
  const allow = (id: string, body: object) => world.call("POST", "/v1/projects/:projectKey/coordinators/:id", { id }, { body });
  await allow("team", { actors: ["operator:ben"] });
  expect(code(() => world.apply("start", {}))).toBe("command_refused: tester may not hand work to this project; ask team");
  await allow("testers", { actors: ["tester"], workflows: ["release"] });
  expect(code(() => world.apply("start", {}))).toBe("command_refused: tester may hand in work for release, not for the default workflow");
  const runId = await world.start({ workflowId: "release" });
  expect((await world.finished(runId)).status).toBe("completed");
  expect(world.project.store.read.intake.list()[0]!.coordinatorId).toBe("testers");
  for (const id of ["team", "testers"]) await world.call("POST", "/v1/projects/:projectKey/coordinators/:id/revoke", { id });
  expect(code(() => world.apply("start", {}))).toBe("taken");
  await expect(allow("Bad Id", { actors: ["x"] })).rejects.toMatchObject({ code: "runtime_protocol_error" });
  await expect(allow("x", { actors: [] })).rejects.toMatchObject({ code: "runtime_protocol_error" });
});

test("a receipt holds for the events it was made of, and not for others", async () => {
  await using world = await openWorld(files);
  const runId = await world.start();
  await world.finished(runId);
  const receipt = await world.call("GET", "/v1/projects/:projectKey/runs/:runId/receipt", { runId });
  expect(receipt).toMatchObject({
    holds: true,
    receipt: { schema: "kxm.drive-receipt.v1", runId, drive: 1, status: "completed", lastSequence: world.events(runId).length },
  });
  expect(JSON.stringify(receipt.receipt).length).toBeLessThan(8192);
  world.project.store.commit((tx) => tx.append(runId, { type: "step.status_changed", payload: { stepId: "work", status: "passed" } }));
  expect(await world.call("GET", "/v1/projects/:projectKey/runs/:runId/receipt", { runId })).toMatchObject({
    holds: false,
    why: expect.stringContaining("the receipt states"),
  });
});

test("an id that is also a secret's value is refused before a run exists, without saying the value", async () => {
  await using world = await openWorld(
    { ...files, ".kxm/workflows/main.yaml": workflow([{ id: "postgres-main", kind: "agent", agent: "a" }]) },
    { secrets: ["postgres-main"] },
  );
  const refused = await world.start().catch((error) => error.message);
  expect(refused).toContain("is also the value of a secret");
  expect(refused).not.toContain("postgres-main");
  expect(world.project.store.read.runs.list()).toEqual([]);
});

test("a secret in a prompt, an answer, a summary or a file name is in no event, no prompt and no outbox row", async () => {
  const secret = "planted-Secret-Value-42";
  process.env["PLANTED"] = secret;
  const answer = `printf '{"outcome":"passed","summary":"the key is %s","evidence":{"note":"%s"}}' "$PLANTED" "$PLANTED"`;
  const agent = script(`cat >/dev/null; echo x >"$PLANTED.txt"; echo "$PLANTED" >&2; ${answer}`, { tools: "workspace-writer", env: ["PLANTED"] });
  await using world = await openWorld({ ...files, ".kxm/agents/a.yaml": agent }, { secrets: [secret] });
  const runId = await world.start({ prompt: `use ${secret} for this` });
  expect((await world.finished(runId)).status).toBe("completed");
  expect(JSON.stringify(world.events(runId))).not.toContain(secret);
  expect(JSON.stringify(world.outbox())).not.toContain(secret);
  expect(JSON.stringify(await world.call("GET", "/v1/projects/:projectKey/runs/:runId/logs", { runId }))).not.toContain(secret);
  const { stdout } = Bun.spawnSync(["grep", "-rlaF", secret, `${world.base}/state`, "--exclude-dir=worktrees"]);
  expect(stdout.toString()).toBe("");
});

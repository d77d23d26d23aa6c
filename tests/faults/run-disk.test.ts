// A disk that is full in the middle of a run: nothing recorded is lost, nothing is done twice, and the run goes on once there is room.
import { expect, test } from "bun:test";
import { readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gates, openWorld, script, workflow } from "../runtime/engine/world.ts";

const mounts = process.platform === "linux" && process.getuid?.() === 0 && Bun.which("mount") !== null;

/** A disk of 6 MiB under a folder. */
function smallDisk(folder: string): () => void {
  const { exitCode, stderr } = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=6m,mode=700", "tmpfs", folder]);
  if (exitCode !== 0) throw new Error(`mount: ${stderr}`);
  return () => void Bun.spawnSync(["umount", "-l", folder]);
}

/** Leaves no page free. What runs beside it takes and gives back pages of its own meanwhile, so one look is not enough. */
function fill(folder: string): string[] {
  const paths: string[] = [];
  const free = () => statfsSync(folder).bavail * statfsSync(folder).bsize;
  while (free() >= 4096) {
    paths.push(join(folder, `ballast-${paths.length}`));
    try {
      writeFileSync(paths.at(-1)!, new Uint8Array(free()));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  }
  return paths;
}

test.skipIf(!mounts)("a run over a full disk ends as if it had not been full, only later", async () => {
  const declared = `echo '{"outcome":"passed","summary":"through"}'`;
  const agent = script(`cat >/dev/null; echo ran >>"$LEDGER"; while [ ! -f "$LEDGER.go" ]; do sleep 0.02; done; ${declared}`, { env: ["LEDGER"] });
  const ship = { argv: ["/bin/sh", "-c", 'echo shipped >>"$LEDGER"'], env: ["LEDGER"], effect: "external-non-idempotent" };
  const steps = [
    { id: "work", kind: "agent", agent: "a", maxAttempts: 9 },
    { id: "ship", kind: "gate", gate: "ship", on: { passed: "$terminal", "implementation-failure": "$terminal" }, maxAttempts: 9 },
  ];
  const files = { ".kxm/agents/a.yaml": agent, ".kxm/gates.yaml": gates({ ship }), ".kxm/workflows/main.yaml": workflow(steps) };
  await using world = await openWorld(files, { stateOn: smallDisk });
  const state = join(world.base, "state");
  process.env["LEDGER"] = join(world.base, "ledger");
  const runId = await world.start({ prompt: "go on" });
  await world.until(runId, (run) => run.current?.attempts[0]?.status === "executing");
  const ballast = fill(state);
  world.put("../ledger.go", "");
  // Its end cannot be recorded: the log says so, and the run looks again.
  await world.loggedEvent("drive_failed");
  expect((await world.view(runId)).status).toBe("running");
  expect(() => world.apply("cancel", {}, runId)).toThrow("the disk is full");
  for (const path of ballast) rmSync(path);
  const run = await world.finished(runId);
  // The program could not leave its end on the full disk: what nobody saw is tried again. The effect, which came later, happened once.
  expect(run).toMatchObject({ status: "completed", steps: [{ summary: "through" }, { outcome: "passed", attempts: 1 }] });
  expect(
    readFileSync(process.env["LEDGER"], "utf8")
      .split("\n")
      .filter((line) => line === "shipped"),
  ).toHaveLength(1);
  expect(world.events(runId).map(({ sequence }) => sequence)).toEqual(world.events(runId).map((_, i) => i + 1));
});

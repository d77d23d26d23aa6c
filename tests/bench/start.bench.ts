// How soon the compiled hub listens on an empty store, how soon again on one that exists, and what it weighs when nothing happens.
// Goals: listening within 150 ms of the start, at most 90 MB when idle. The ceiling beside it is the same binary printing its version.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const KXM = join(import.meta.dir, "../../dist/kxm");
const ROUNDS = 15;
const IDLE_MS = 3_000;

if (!existsSync(KXM)) {
  console.log("dist/kxm is not built: run `npm run build` first");
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), "kxm-bench-"));
const median = (times: number[]) => times.sort((a, b) => a - b)[Math.floor(times.length / 2)]!;
const show = (name: string, times: number[], goal = "") =>
  console.log(
    `${name.padEnd(46)} median ${median(times).toFixed(0).padStart(4)} ms   max ${Math.max(...times)
      .toFixed(0)
      .padStart(4)} ms   ${goal}`,
  );

/** Starts a hub and reads its address: it is printed once the hub listens. */
async function start(place: string) {
  const began = performance.now();
  const child = Bun.spawn([KXM, "hub", "--quiet"], {
    cwd: place,
    env: { HOME: place, PATH: process.env["PATH"]!, KXM_PORT: "0" },
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  const ms = performance.now() - began;
  const url = /http:\S+/.exec(new TextDecoder().decode(value))![0];
  const { status } = await fetch(`${url}/health`);
  if (status !== 200) throw new Error(`the hub answered ${status}`);
  return { child, ms };
}

async function stop(child: Bun.Subprocess) {
  child.kill("SIGTERM");
  await child.exited;
}

const rssOf = (pid: number) => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024;
const ticksOf = (pid: number) => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return Number(fields[11]) + Number(fields[12]);
};

try {
  const [versions, fresh, again]: number[][] = [[], [], []];
  for (let round = 0; round < ROUNDS; round++) {
    const began = performance.now();
    Bun.spawnSync([KXM, "--version"]);
    versions!.push(performance.now() - began);
    const place = join(folder, String(round));
    mkdirSync(place);
    for (const times of [fresh!, again!]) {
      const { child, ms } = await start(place);
      times.push(ms);
      await stop(child);
    }
  }
  show("kxm --version, start to end (the ceiling)", versions!);
  show("start to listening, empty store", fresh!, "goal 150 ms");
  show("start to listening, existing store", again!, "goal 150 ms");

  const { child } = await start(join(folder, "0"));
  const before = ticksOf(child.pid);
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const busy = (ticksOf(child.pid) - before) / 100 / (IDLE_MS / 1000);
  console.log(`${"idle".padEnd(46)} ${rssOf(child.pid).toFixed(0)} MB RSS (goal 90), ${(100 * busy).toFixed(1)} % of a core`);
  await stop(child);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

// `npm start`: arguments go in, signals go in once, and the way the hub ends comes out.
import { expect, test } from "bun:test";
import { NODE, workbench } from "./workbench.ts";

const HUB = `
process.on("SIGINT", () => { console.log("got SIGINT"); if (++count === 2) process.exit(3); });
process.on("SIGTERM", () => { console.log("got SIGTERM"); process.exit(5); });
let count = 0;
setInterval(() => {}, 1000);
console.log("up", JSON.stringify(process.argv.slice(2)), process.env.FROM_DOTENV);`;

/** A hub of the test's own behind `npm start`, with its lines as they come. */
function started(args: string[] = []) {
  const bench = workbench("as here");
  bench.write("src/main.ts", HUB);
  bench.write(".env", "FROM_DOTENV=read");
  const child = Bun.spawn([NODE, bench.path("scripts/start.mjs"), ...args], { stdout: "pipe", stderr: "inherit" });
  const lines = (async function* () {
    let text = "";
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const whole = text.split("\n");
      text = whole.pop()!;
      yield* whole;
    }
  })();
  const next = async () => (await lines.next()).value as string | undefined;
  return { child, next, [Symbol.dispose]: bench[Symbol.dispose] };
}

test("arguments reach the hub, and a .env in the folder does not", async () => {
  using hub = started(["--port", "0"]);
  expect(await hub.next()).toBe('up ["hub","--port","0"] undefined');
  hub.child.kill("SIGTERM");
  await hub.child.exited;
});

test("a signal reaches the hub, and its exit code is ours", async () => {
  using hub = started();
  await hub.next();
  hub.child.kill("SIGTERM");
  expect(await hub.next()).toBe("got SIGTERM");
  expect(await hub.child.exited).toBe(5);
});

test("Ctrl-C that arrives from the terminal and from npm is one signal; a later one is a second", async () => {
  using hub = started();
  await hub.next();
  hub.child.kill("SIGINT");
  hub.child.kill("SIGINT");
  expect(await hub.next()).toBe("got SIGINT");
  const second = setInterval(() => hub.child.kill("SIGINT"), 400); // later than what counts as the same signal
  expect(await hub.next()).toBe("got SIGINT");
  expect(await hub.child.exited).toBe(3);
  clearInterval(second);
});

test("a hub that is killed shows as killed", async () => {
  using bench = workbench("as here");
  bench.write("src/main.ts", 'process.kill(process.pid, "SIGKILL");');
  const child = Bun.spawn([NODE, bench.path("scripts/start.mjs")], { stderr: "inherit" });
  await child.exited;
  expect(child.signalCode).toBe("SIGKILL");
});

// `npm test`: what it runs, what it counts, how it ends, and that nothing it started outlives it.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { NODE, ROOT, workbench } from "./workbench.ts";

const PASSES = 'import { test } from "bun:test"; test("passes", () => {});';
const FAILS =
  'import { expect, test } from "bun:test"; test("passes", () => {}); test("fails", () => expect(1).toBe(2)); test.skip("waits", () => {});';
const BROKEN = 'import { test } from "bun:test"; throw new Error("does not load");';
const QUITS = 'import { test } from "bun:test"; test("quits", () => process.exit(0));';
const last = (text: string) => text.trimEnd().split("\n").at(-1);

test("passed, failed and skipped are counted over all files, and a failure fails", async () => {
  using bench = workbench("as here");
  bench.write("tests/a/one.test.ts", PASSES);
  bench.write("tests/b/two.test.ts", FAILS);
  const { code, out, err } = await bench.run("test.mjs");
  expect(last(out)).toBe("2 passed, 1 failed, 1 skipped");
  expect(code).toBe(1);
  expect(err).not.toContain("(pass)"); // what passes is only counted
  expect(err).toContain("tests/b/two.test.ts:\n");
  expect(err).toContain("(fail) fails");
  expect(err).toContain("(skip) waits");
});

test("a file that does not load counts as failed", async () => {
  using bench = workbench("as here");
  bench.write("tests/a.test.ts", PASSES);
  bench.write("tests/b.test.ts", BROKEN);
  const { code, out } = await bench.run("test.mjs");
  expect([last(out), code]).toEqual(["1 passed, 1 failed, 0 skipped", 1]);
});

test("a test that ends the process with code 0 does not make the run green", async () => {
  using bench = workbench("as here");
  bench.write("tests/a.test.ts", PASSES);
  bench.write("tests/b.test.ts", QUITS);
  const { code, out } = await bench.run("test.mjs");
  expect(last(out)).toMatch(/^1 passed, [1-9]\d* failed, 0 skipped$/);
  expect(code).not.toBe(0);
  bench.write("tests/b.test.ts", QUITS); // alone, without a worker around it
  const alone = await bench.run("test.mjs", ["tests/b.test.ts"]);
  expect(last(alone.out)).toBe("0 passed, 1 failed, 0 skipped");
  expect(alone.code).not.toBe(0);
});

test("folders that are apart run only by their own command or when named", async () => {
  using bench = workbench("as here");
  for (const folder of ["hub", "faults", "clients", "bench"]) bench.write(`tests/${folder}/a.test.ts`, PASSES);
  const filesOf = async (...args: string[]) => /(\d+) test files?/.exec((await bench.run("test.mjs", args)).err)![1];
  expect(await filesOf()).toBe("2");
  expect(await filesOf("faults")).toBe("1");
  expect(await filesOf("clients")).toBe("1");
  expect(await filesOf("tests/bench", "hub/")).toBe("2");
});

test("each command tells the tests how much is wanted, and nothing of the person's own hub reaches them", async () => {
  using bench = workbench("as here");
  const shows =
    'import { test } from "bun:test"; test("shows", () => console.log("KXM", process.env.KXM_FAULTS, process.env.KXM_PORT, process.env.KXM_TEST_MORE));';
  bench.write("tests/faults/a.test.ts", shows);
  const env = { KXM_PORT: "1234", KXM_FAULTS: "full", KXM_TEST_MORE: "yes" };
  expect((await bench.run("test.mjs", [], env)).out).toContain("KXM undefined undefined yes");
  expect((await bench.run("test.mjs", ["faults"], env)).out).toContain("KXM full undefined yes");
});

test("a name that no file has is an error, not a green run of nothing", async () => {
  using bench = workbench("as here");
  bench.write("tests/a.test.ts", PASSES);
  const { code, err } = await bench.run("test.mjs", ["nothing-like-this"]);
  expect(code).toBe(1);
  expect(err).toBe("kxm: no test file matches nothing-like-this. Test files are tests/**/*.test.ts.\n");
});

test("temporary files of the tests are gone after the run", async () => {
  using bench = workbench("as here");
  bench.write(
    "tests/a.test.ts",
    'import { test } from "bun:test"; import { mkdtempSync } from "node:fs"; import { tmpdir } from "node:os"; test("leaves a folder", () => console.log("LEFT", mkdtempSync(tmpdir() + "/x-")));',
  );
  const { out } = await bench.run("test.mjs");
  const left = /LEFT (\S+)/.exec(out)![1]!;
  expect(await Bun.file(left).exists()).toBe(false);
  expect(Bun.spawnSync(["ls", left]).exitCode).not.toBe(0);
});

const { findPostgres } = (await import(join(ROOT, "scripts/lib/machine.mjs"))) as { findPostgres: () => string | undefined };
const bin = findPostgres();

test.skipIf(!bin)("the tests' PostgreSQL is gone after kill -9 of the process that asked for it", async () => {
  const ask = `import { startPostgres } from ${JSON.stringify(join(ROOT, "scripts/lib/postgres.mjs"))};
    console.log((await startPostgres(${JSON.stringify(bin)})).url); setInterval(() => {}, 1000);`;
  const child = Bun.spawn([NODE, "--input-type=module", "-e", ask], { stdout: "pipe", stderr: "inherit" });
  const { value } = await child.stdout.pipeThrough(new TextDecoderStream()).getReader().read();
  const url = value!.trim();
  const sql = new Bun.SQL(url, { max: 1 });
  expect(await sql`select 1 as one`).toEqual([{ one: 1 }] as never);
  await sql.close();
  child.kill("SIGKILL");
  await child.exited;
  const { hostname, port } = new URL(url);
  const answers = () =>
    Bun.connect({ hostname, port: Number(port), socket: { data() {} } }).then(
      (socket) => Boolean(socket.end()) || true,
      () => false,
    );
  while (await answers()) await new Promise((next) => setImmediate(next)); // the test's time limit is the bound
});

// The package `kxm/client` as its users get it: built, packed, installed into an empty folder, and used there by Node, Bun, a compiler, a bundler and
// a browser's page, each against a hub that listens.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildClient } from "../../scripts/build-client.ts";
import { CHROMIUM, launch, open } from "../browser/browser.ts";
import { example } from "../support/examples.ts";
import { until } from "../support/fleet.ts";
import { serveHub } from "../support/served.ts";

const ROOT = join(import.meta.dir, "../..");
const NODE = Bun.which("node")!;
const LIMIT_MS = 60_000;
let folder: string;
let tarball: string;
const installed = () => join(folder, "node_modules/kxm");

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "kxm-package-"));
  const built = join(folder, "built");
  await buildClient(built);
  run(["npm", "pack", built, "--silent", "--ignore-scripts"]);
  tarball = join(folder, readdirSync(folder).find((name) => name.endsWith(".tgz"))!);
  rmSync(built, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  run(["npm", "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", tarball]);
}, LIMIT_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(command: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: folder, env: { ...process.env, HOME: folder } });
  if (exitCode !== 0) throw new Error(`${command.join(" ")} ended with ${exitCode}: ${stdout}${stderr}`);
  return stdout.toString();
}

/** Starts a program of the documentation in the folder where the package is installed. */
function start(engine: string, name: string, url: string, ...args: string[]) {
  writeFileSync(join(folder, name), example("clients.md", name));
  const child = Bun.spawn([engine, name, ...args], {
    cwd: folder,
    env: { PATH: process.env["PATH"]!, KXM_URL: url },
    stdout: "pipe",
    stderr: "pipe",
  });
  const said = Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return said.then(([out, error, code]) => ({ out, error, code }));
}
const online = async (url: string): Promise<number> => ((await (await fetch(`${url}/health`)).json()) as { agents: number }).agents;

test("it is small, has no dependency, and shows one entry", () => {
  const manifest = JSON.parse(readFileSync(join(installed(), "package.json"), "utf8"));
  expect(manifest).toMatchObject({ name: "kxm", version: JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).version, sideEffects: false });
  expect([manifest.dependencies, manifest.peerDependencies, manifest.scripts, manifest.private]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  expect(Object.keys(manifest.exports)).toEqual(["./client", "./package.json"]);
  expect(readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith("."))).toEqual(["kxm"]);
  expect(statSync(tarball).size).toBeLessThan(40_000);
  expect(existsSync(join(installed(), "LICENSE")) && existsSync(join(installed(), "README.md"))).toBe(true);
});

test("nothing in it speaks of the schema library, of Node's modules or of Bun", () => {
  const files = (readdirSync(installed(), { recursive: true }) as string[]).filter((name) => /\.(js|ts)$/.test(name));
  expect(files.length).toBeGreaterThan(20);
  for (const name of files) {
    const text = readFileSync(join(installed(), name), "utf8");
    expect([name, /@sinclair|"node:|\bBun\.|\.ts"/.exec(text)?.[0]]).toEqual([name, undefined]);
  }
});

for (const [engine, path] of [
  ["Node", NODE],
  ["Bun", process.execPath],
] as const)
  test(
    `the documented programs run in ${engine}: one answers, one asks, one holds a lease`,
    async () => {
      await using hub = await serveHub();
      const lonely = await start(path, "ask.mjs", hub.url);
      expect([lonely.error, lonely.out]).toEqual(["", expect.stringContaining("target_not_found")]);
      const agent = start(path, "agent.mjs", hub.url);
      await until(async () => (await online(hub.url)) === 1, "the agent", LIMIT_MS);
      expect((await start(path, "ask.mjs", hub.url)).out).toBe("replied You said: hello\n");
      expect((await start(path, "ask.mjs", hub.url, "goodbye")).out).toBe("replied You said: goodbye\n");
      expect(await agent).toEqual({ out: "answered asker\nanswered asker\n", error: "", code: 0 });
      const deployed = await start(path, "deploy.mjs", hub.url);
      expect(deployed).toEqual({ out: "build with token 1\nupload with token 1\nswitch with token 1\n", error: "", code: 0 });
      expect(await online(hub.url)).toBe(0);
    },
    LIMIT_MS,
  );

test(
  "in Node an agent outlives its hub: another with an empty store at the same address is served as well",
  async () => {
    let agent: ReturnType<typeof start>;
    let port: string;
    {
      await using hub = await serveHub();
      ({ port } = new URL(hub.url));
      agent = start(NODE, "agent.mjs", hub.url);
      await until(async () => (await online(hub.url)) === 1, "the agent", LIMIT_MS);
      expect((await start(NODE, "ask.mjs", hub.url)).out).toBe("replied You said: hello\n");
    }
    await using hub = await serveHub({ KXM_PORT: port });
    await until(async () => (await online(hub.url)) === 1, "the agent again", LIMIT_MS);
    expect((await start(NODE, "ask.mjs", hub.url, "goodbye")).out).toBe("replied You said: goodbye\n");
    expect(await agent).toMatchObject({ error: "", code: 0 });
  },
  LIMIT_MS,
);

test(
  "a program compiles against its types without any other, and a wrong one does not",
  () => {
    const program = (lines: string[]) =>
      ['import { connectHub, type Lease, LeaseLost, type Message, type Packet, runtimeClient } from "kxm/client";', ...lines].join("\n");
    const options = {
      compilerOptions: {
        target: "ES2022",
        module: "NodeNext",
        lib: ["ES2022", "DOM"],
        types: [],
        strict: true,
        skipLibCheck: false,
        noEmit: true,
        exactOptionalPropertyTypes: true,
      },
      files: ["right.mts", "wrong.mts"],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(options));
    const good = [
      'const hub = await connectHub({ url: "http://127.0.0.1:7331", name: "a", project: "p" });',
      'const message: Message = await hub.ask({ target: "b", content: "?" });',
      'const status: "queued" | "delivered" | "replied" | "cancelled" | "expired" = message.status;',
      'const lease: Lease = await hub.leases.during("x", async ({ lease }) => lease);',
      'const packet: Packet = (await hub.context.get({ role: "planner", task: "t" })).packet;',
      'for (const hit of (await hub.search("x")).hits) console.log(hit.kind === "message", hit.snippet?.text);',
      "for (const { reports } of [await hub.workflows.improvements()]) console.log(reports.length, status, lease.fencingToken + 1, packet.evidence, LeaseLost);",
      'const runtime = runtimeClient({ url: "http://127.0.0.1:7331" }, { project: "p", runtimeId: "rtm_1" });',
      'for (const one of (await runtime.commands(0, 1_000)).known) console.log(one.kind === "start", one.payload);',
    ];
    const wrong = ['hub.send({ target: 7, content: "x" });', "message.contents;", 'hub.leases.hold("x", { ttl: 1 });'];
    writeFileSync(join(folder, "right.mts"), program(good));
    writeFileSync(join(folder, "wrong.mts"), program([...good, ...wrong]));
    const { stdout } = Bun.spawnSync([join(ROOT, "node_modules/.bin/tsc"), "-p", join(folder, "tsconfig.json")], { cwd: folder });
    const complaints = stdout
      .toString()
      .match(/^\S.*error TS/gm)!
      .map((line) => line.replace(/,.*/, ""));
    expect(complaints).toEqual(wrong.map((_, index) => `wrong.mts(${good.length + 2 + index}`));
  },
  LIMIT_MS,
);

test("a bundler takes what is used and leaves the rest", async () => {
  const bundle = async (names: string) => {
    const entry = join(folder, `use-${names.replaceAll(/\W/g, "")}.mjs`);
    writeFileSync(entry, `import { ${names} } from "kxm/client";\nconsole.log(${names});\n`);
    const { outputs } = await Bun.build({ entrypoints: [entry], target: "browser", minify: true });
    return await outputs[0]!.text();
  };
  const everything = await bundle("connectHub, runtimeClient, readFrames, LeaseLost");
  const marks = { messages: "/v1/messages", leases: "/v1/leases", runtime: "/v1/sync/events", frames: "frame without end" };
  const holds = (text: string) => Object.entries(marks).flatMap(([name, mark]) => (text.includes(mark) ? name : []));
  expect(holds(everything)).toEqual(["messages", "leases", "runtime", "frames"]);
  expect(everything.length).toBeLessThan(20_000);
  expect(holds(await bundle("readFrames"))).toEqual(["frames"]);
  expect((await bundle("readFrames")).length).toBeLessThan(1_500);
  expect(holds(await bundle("runtimeClient"))).toEqual(["runtime"]);
  expect(holds(await bundle("registerAgent"))).toEqual([]);
  expect(holds(await bundle("hubClient"))).toEqual(["messages", "leases", "frames"]);
  expect((await bundle("LeaseLost")).length).toBeLessThan(500);
});

test.skipIf(!CHROMIUM)(
  "a page in a browser connects, asks, hears what comes in, and holds a lease",
  async () => {
    await using hub = await serveHub();
    const browser = await launch();
    try {
      const { page, complaints } = await open(browser, `${hub.url}/signin`);
      // The page and the package come from the hub's own address, as behind a proxy that serves both; everything else is the hub.
      const types: Record<string, string> = { html: "text/html", js: "text/javascript" };
      mkdirSync(join(folder, "page"), { recursive: true });
      await page.route(`${hub.url}/app/**`, (route) => {
        const path = new URL(route.request().url()).pathname.slice("/app/".length);
        const body =
          path === "page.html"
            ? '<link rel="icon" href="data:,"><script type="importmap">{"imports":{"kxm/client":"/app/client/published.js"}}</script>'
            : readFileSync(join(installed(), path), "utf8");
        return route.fulfill({ body, contentType: types[path.split(".").at(-1)!]! });
      });
      await page.goto(`${hub.url}/app/page.html`);
      const seen = await page.evaluate(async (url) => {
        const { connectHub, HubRefusal } = (await import("kxm/client" as string)) as typeof import("../../src/client/published.ts");
        const [ada, bob] = [await connectHub({ url, name: "ada", project: "shop" }), await connectHub({ url, name: "bob", project: "shop" })];
        const asked = ada.ask({ target: "bob", content: "from a page" }, { forMs: 20_000 });
        for await (const event of bob.events())
          if (event.event === "message") {
            await bob.reply(event.message.id, `heard ${event.message.content}`);
            break;
          }
        const reply = (await asked).reply?.content;
        const token = await ada.leases.during("deploy", async ({ fencingToken }) => {
          const code = await bob.leases.acquire("deploy").catch((error: Error) => (error instanceof HubRefusal ? error.code : error.name));
          return `${fencingToken} ${code}`;
        });
        await ada.close();
        const agents = (await bob.agents({ includeOffline: true })).map(({ name, presence }) => `${name} ${presence}`);
        await bob.close();
        return { reply, token, agents };
      }, hub.url);
      expect(seen).toEqual({ reply: "heard from a page", token: "1 lease_held", agents: ["ada offline", "bob online"] });
      expect(complaints.filter((one) => !one.includes("409"))).toEqual([]); // the browser itself notes the refusal
    } finally {
      await browser.close();
    }
  },
  LIMIT_MS,
);

// A request to this machine does not pass a proxy of the environment, whichever way the proxy is named; one to another machine does.
import { expect, test } from "bun:test";
import { join } from "node:path";

const CLIENT = join(import.meta.dir, "../../src/client/http.ts");

/** What a program of its own gets from `url` through the client, with these proxy settings. */
async function askIn(env: Record<string, string>, url: string, direct = false): Promise<string> {
  const code = direct
    ? `console.log(await (await fetch("${url}/x")).text())`
    : `import { ask } from ${JSON.stringify(CLIENT)}; console.log(JSON.stringify((await ask({ url: "${url}", token: "t" }, "GET", "/x")).body))`;
  const child = Bun.spawn([process.execPath, "-e", code], { env: { PATH: process.env["PATH"]!, ...env }, stdout: "pipe", stderr: "pipe" });
  return (await new Response(child.stdout).text()).trim();
}

test.each([["HTTP_PROXY"], ["http_proxy"], ["ALL_PROXY"]])("%s does not see what is said on this machine", async (name) => {
  const seen: string[] = [];
  using proxy = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => {
      seen.push(request.url);
      return Response.json("proxy");
    },
  });
  using hub = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => Response.json("hub") });
  const env = { [name]: `http://127.0.0.1:${proxy.port}` };
  expect(await askIn(env, `http://127.0.0.1:${hub.port}`)).toBe('"hub"');
  expect(await askIn(env, `http://localhost:${hub.port}`)).toBe('"hub"');
  expect(await askIn({ ...env, NO_PROXY: "other.example" }, `http://127.0.0.1:${hub.port}`)).toBe('"hub"');
  expect(seen).toEqual([]);
  expect(await askIn(env, "http://hub.example")).toBe('"proxy"');
  expect(seen).toEqual(["http://hub.example/x"]);
});

test("without the client's care the proxy would see it", async () => {
  using proxy = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => Response.json("proxy") });
  using hub = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => Response.json("hub") });
  expect(await askIn({ HTTP_PROXY: `http://127.0.0.1:${proxy.port}` }, `http://127.0.0.1:${hub.port}`, true)).toBe('"proxy"');
});

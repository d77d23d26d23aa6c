// A real hub as a child process, with its data in a folder of the test.
import { join } from "node:path";

const MAIN = join(import.meta.dir, "../../src/main.ts");
/** The operator's token of every hub that a test starts. */
export const TOKEN = "operator-token-of-this-test";

/** A hub of a folder; started again it goes on with the same data and port. */
export async function startHub(folder: string, port = 0) {
  const child = Bun.spawn([process.execPath, MAIN, "hub", "start", "--json", "--port", String(port)], {
    env: { PATH: process.env["PATH"]!, HOME: folder, KXM_WORKSPACE_DIR: join(folder, "hub"), KXM_AUTH_TOKEN: TOKEN, KXM_RATE_LIMIT_MAX: "100000" },
    stdout: "pipe",
    stderr: "pipe",
    cwd: folder,
  });
  const { value } = await child.stdout.getReader().read();
  if (!value) throw new Error(`the hub did not start: ${await new Response(child.stderr).text()}`);
  const { url } = JSON.parse(new TextDecoder().decode(value)) as { url: string };
  const call = async (method: string, path: string, body?: unknown): Promise<any> => {
    const headers = { authorization: `Bearer ${TOKEN}`, ...(body !== undefined && { "content-type": "application/json" }) };
    const response = await fetch(url + path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  };
  return {
    url,
    token: TOKEN,
    port: Number(new URL(url).port),
    call,
    kill: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

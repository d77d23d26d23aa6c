// An agent in a process of its own that holds a lease and can be stopped like any process. Takes requests as JSON lines and tells the answers.
import { writeSync } from "node:fs";
import { ask, HubRefusal } from "../../src/client/http.ts";

export type HolderCall = { verb: "acquire" | "renew" | "release" | "check"; body: Record<string, unknown> };
export type HolderAnswer = { status: number; body: any };

const [url, id, name] = process.argv.slice(2) as [string, string, string];
const headers = { "x-kxm-agent-id": id, "x-kxm-agent-key": id };
const say = (line: unknown) => writeSync(1, `${JSON.stringify(line)}\n`);
say({ ready: true });
for await (const line of console) {
  if (line === "") continue;
  const { verb, body } = JSON.parse(line) as HolderCall;
  say(await send(verb, body));
}

async function send(verb: string, body: unknown): Promise<HolderAnswer> {
  try {
    const answer = await ask({ url }, "POST", `/v1/leases/${encodeURIComponent(name)}/${verb}`, { body, headers });
    return { status: answer.status, body: answer.body };
  } catch (error) {
    if (error instanceof HubRefusal) return { status: error.status, body: { code: error.code, ...error.extras } };
    throw error;
  }
}

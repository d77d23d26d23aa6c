// The programs that the documentation shows are run as they stand there: senders against a hub that listens, receivers against real deliveries.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { signedHeaders } from "../../src/protocol/webhook-endpoints.ts";
import { example } from "../support/examples.ts";
import { serveHub } from "../support/served.ts";

const SECRET = "0123456789abcdef-documented";

/** Runs a program that lies in a file of its own, and answers what it wrote. */
async function runFile(command: string[], file: string, code: string, env: Record<string, string>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "kxm-example-"));
  try {
    writeFileSync(join(folder, file), code);
    const child = Bun.spawn([...command, file], { cwd: folder, env: { ...process.env, ...env }, stdout: "pipe", stderr: "pipe" });
    const [out, error] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
    if (child.exitCode !== 0) throw new Error(`${file} ended with ${child.exitCode}: ${error}${out}`);
    return out;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const SENDERS = [
  { file: "start.sh", command: ["sh"], needs: ["openssl", "curl"] },
  { file: "start.ts", command: [process.execPath], needs: [] },
  { file: "start.py", command: ["python3"], needs: ["python3"] },
];

for (const { file, command, needs } of SENDERS)
  test.skipIf(needs.some((program) => !Bun.which(program)))(`${file} starts a run, and the same delivery again is a duplicate`, async () => {
    await using hub = await serveHub({
      KXM_WEBHOOK_WORKFLOWS: example("workflows-webhook.md", "workflows.json"),
      RELEASE_SECRET: SECRET,
      RELEASE_SIGNAL_SECRET: `${SECRET}-signal`,
    });
    const agent = { name: "lead", purpose: "test", project: "shop" };
    const registered = await fetch(`${hub.url}/v1/agents/register`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(agent),
    });
    expect(registered.status).toBe(201);
    const env = { KXM_URL: hub.url, RELEASE_SECRET: SECRET };
    const code = example("workflows-webhook.md", file);
    const first = JSON.parse(await runFile(command, file, code, env));
    expect(first).toMatchObject({ duplicate: false, run: { status: "running", currentStage: "build" } });
    const again = JSON.parse(await runFile(command, file, code, env));
    expect(again).toMatchObject({ duplicate: true, runId: first.runId });
    await expect(runFile(command, file, code, { ...env, RELEASE_SECRET: `${SECRET}!` })).rejects.toThrow();
  });

test.skipIf(!Bun.which("python3"))("agent.py registers and answers what waits for it", async () => {
  await using hub = await serveHub();
  const project = { KXM_PROJECT: "shop" };
  const code = example("agents.md", "agent.py");
  await runFile(["python3"], "agent.py", code, { KXM_URL: hub.url, ...project });
  const sent = await hub.kxm(["peer", "--as", "me", "send", "parrot", "hello", "--offline", "--json"], { env: project });
  expect([sent.code, sent.stderr]).toEqual([0, ""]);
  const said = await runFile(["python3"], "agent.py", code, { KXM_URL: hub.url, ...project });
  expect(said).toContain(`answered ${sent.json.message.id}`);
  const got = await hub.kxm(["peer", "--as", "me", "get", sent.json.message.id, "--json"], { env: project });
  expect(got.json.message).toMatchObject({ status: "replied", reply: { content: "You said: hello" } });
});

const WHSEC = `whsec_${Buffer.from("a secret of twenty-four b").toString("base64")}`;
const NOW_S = () => Math.floor(Date.now() / 1000);
const BODY = '{"type":"messages.queued","data":{"text":"ä"}}';
const VERIFIERS = [
  {
    file: "verify.ts",
    command: [process.execPath],
    call: "console.log(verify(process.env.SECRET!, new Headers(JSON.parse(process.env.HEADERS!)), process.env.BODY!))",
  },
  {
    file: "verify.py",
    command: ["python3"],
    call: 'import json, os\nprint(str(verify(os.environ["SECRET"], json.loads(os.environ["HEADERS"]), os.environ["BODY"].encode())).lower())',
  },
];

for (const { file, command, call } of VERIFIERS)
  test.skipIf(command[0] === "python3" && !Bun.which("python3"))(
    `${file} accepts what the hub signs, also while a secret changes, and nothing else`,
    async () => {
      const verdict = (headers: Record<string, string>, body = BODY) =>
        runFile(command, file, `${example("webhooks.md", file)}\n${call}\n`, { SECRET: WHSEC, HEADERS: JSON.stringify(headers), BODY: body });
      const headers = signedHeaders([WHSEC], "dlv_1", NOW_S(), BODY);
      const other = `whsec_${Buffer.from("another one of twenty-four").toString("base64")}`;
      expect((await verdict(headers)).trim()).toBe("true");
      expect((await verdict(signedHeaders([other, WHSEC], "dlv_1", NOW_S(), BODY))).trim()).toBe("true");
      expect((await verdict(headers, `${BODY} `)).trim()).toBe("false");
      expect((await verdict(signedHeaders([other], "dlv_1", NOW_S(), BODY))).trim()).toBe("false");
      expect((await verdict(signedHeaders([WHSEC], "dlv_1", NOW_S() - 600, BODY))).trim()).toBe("false");
    },
  );

// R28. Bodies at, over and far over the limit, endless ones, ones that lie about their length, compressed ones: the hub says so, stays small and lives.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { ask } from "../../src/client/http.ts";
import { BODY_BYTES_MAX } from "../../src/protocol/limits.ts";
import { type HubProcess, openPlace } from "../support/program.ts";

const rssOf = ({ pid }: HubProcess) => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024;

async function agentOf(hub: HubProcess, name: string) {
  const { agent, agentKey } = (await ask({ url: hub.url }, "POST", "/v1/agents/register", { body: { name, project: "p" } })).body;
  return { "x-kxm-agent-id": agent.id as string, "x-kxm-agent-key": agentKey as string };
}

/** A message whose body has exactly so many bytes: unknown members are ignored, but count. */
function bodyOf(bytes: number): string {
  const start = '{"target":"b","content":"hello","padding":"';
  return `${start}${"x".repeat(bytes - start.length - 2)}"}`;
}

const post = (hub: HubProcess, headers: Record<string, string>, body: BodyInit, type = "application/json") =>
  fetch(`${hub.url}/v1/messages`, { method: "POST", headers: { "content-type": type, ...headers }, body });

/** Writes raw bytes and reads until the hub closes, `enough` says so, or five seconds pass. */
function raw(
  hub: HubProcess,
  write: (send: (text: string) => boolean) => void,
  enough: (text: string) => boolean,
): Promise<{ text: string; sent: number }> {
  const { promise, resolve } = Promise.withResolvers<{ text: string; sent: number }>();
  let [text, sent] = ["", 0];
  const socket = connect(hub.port, "127.0.0.1");
  const done = () => {
    socket.destroy();
    resolve({ text, sent });
  };
  socket.setTimeout(5_000, done);
  socket.on("connect", () =>
    write((chunk) => {
      if (socket.destroyed) return false;
      sent += chunk.length;
      return socket.write(chunk);
    }),
  );
  socket.on("data", (data) => {
    text += data.toString();
    if (enough(text)) done();
  });
  for (const event of ["close", "error"]) socket.on(event, done);
  return promise;
}

test("a body of the limit is taken, one byte more is refused with our own answer", async () => {
  await using place = await openPlace();
  const hub = await place.startHub();
  const headers = await agentOf(hub, "a");
  await agentOf(hub, "b");
  const taken = await post(hub, headers, bodyOf(BODY_BYTES_MAX));
  expect([taken.status, ((await taken.json()) as any).message.content]).toEqual([202, "hello"]);
  for (const bytes of [BODY_BYTES_MAX + 1, BODY_BYTES_MAX + 50_000]) {
    const refused = await post(hub, headers, bodyOf(bytes));
    expect([refused.status, ((await refused.json()) as any).code]).toEqual([413, "payload_too_large"]);
  }
  expect((await post(hub, headers, bodyOf(8 * 1024 * 1024))).status).toBe(413);
  const inbox = await ask({ url: hub.url }, "GET", "/v1/messages?box=sent", { headers });
  expect(inbox.body.messages).toHaveLength(1); // what was refused left nothing
});

test("compressed bodies and other types are refused before they are read", async () => {
  await using place = await openPlace();
  const hub = await place.startHub();
  const headers = await agentOf(hub, "a");
  const bomb = Bun.gzipSync(Buffer.alloc(50 * 1024 * 1024));
  expect(bomb.length).toBeLessThan(BODY_BYTES_MAX);
  const packed = await post(hub, { ...headers, "content-encoding": "gzip" }, bomb);
  expect([packed.status, ((await packed.json()) as any).code]).toEqual([415, "unsupported_media_type"]);
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16"])
    expect((await post(hub, headers, bodyOf(100), type)).status).toBe(415);
});

test("an endless body ends at the limit, and a length that lies harms nobody", async () => {
  await using place = await openPlace();
  const hub = await place.startHub();
  const headers = await agentOf(hub, "a");
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1:${hub.port}\r\ncontent-type: application/json\r\n${lines.join("")}`;
  const chunk = `10000\r\n${"x".repeat(0x10000)}\r\n`;
  const endless = await raw(
    hub,
    (send) => {
      send(`${head}transfer-encoding: chunked\r\n\r\n`);
      const more = () => {
        if (send(chunk)) setImmediate(more);
      };
      more();
    },
    (text) => text.includes("HTTP/1.1 413"),
  );
  expect(endless.text).toStartWith("HTTP/1.1 413");
  expect(endless.sent).toBeLessThan(16 * 1024 * 1024);
  const huge = await raw(
    hub,
    (send) => send(`${head}content-length: 99999999999\r\n\r\n{`),
    (text) => text.includes("\r\n\r\n"),
  );
  expect(huge.text).toStartWith("HTTP/1.1 413");
  const short = await raw(
    hub,
    (send) => send(`${head}content-length: 2\r\n\r\n{}GARBAGE / HTTP/9.9\r\n\r\n`),
    (text) => text.split("HTTP/1.1").length > 2,
  );
  expect(short.text).toContain('"code":"protocol_error"'); // the body that was announced; what follows is another, broken, request
  for (const length of ["-1", "1e3", "0x10", "5, 6"]) {
    const { text } = await raw(
      hub,
      (send) => send(`${head}content-length: ${length}\r\n\r\n{}`),
      (seen) => seen.includes("\r\n\r\n"),
    );
    expect(text === "" || /^HTTP\/1\.1 4\d\d/.test(text)).toBe(true);
  }
  expect((await fetch(`${hub.url}/health`)).status).toBe(200);
});

test("hundreds of oversized bodies at once leave the hub as small as it was", async () => {
  await using place = await openPlace();
  const hub = await place.startHub();
  const headers = await agentOf(hub, "a");
  const [over, far] = [bodyOf(BODY_BYTES_MAX + 1), bodyOf(2 * 1024 * 1024)];
  const storm = async (rounds: number) => {
    for (let round = 0; round < rounds; round++) {
      const answers = await Promise.all(
        Array.from({ length: 32 }, (_, n) =>
          post(hub, headers, n % 2 === 0 ? over : far).then(
            ({ status }) => status,
            () => 413,
          ),
        ),
      );
      expect(new Set(answers)).toEqual(new Set([413]));
    }
  };
  await storm(4); // buffers that are kept anyway
  const before = rssOf(hub);
  await storm(12);
  expect(rssOf(hub) - before).toBeLessThan(32);
}, 60_000);

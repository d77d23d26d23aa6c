// Addresses that people give us: what is refused when it is given, and again when it is used.
import { describe, expect, test } from "bun:test";
import { checkAddress, isPublicAddress, post } from "../../src/http/outbound.ts";
import type { HubError } from "../../src/protocol/errors.ts";

const code = (work: () => unknown) => {
  try {
    work();
  } catch (error) {
    return (error as { code: string }).code;
  }
};

describe("refused when given:", () => {
  test.each([
    "http://2130706433/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://017700000001/",
    "https://127.1/",
    "https://①②⑦.⓪.⓪.①/",
    "https:\\\\127.0.0.1/",
    "https://user:pw@example.com/",
    "https://0/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::1]/",
    "https://[::]/",
    "https://[fe80::1]/",
    "https://[fc00::1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[2001:db8::1]/",
    "https://[3fff::1]/",
    "https://192.31.196.1/",
    "https://192.52.193.1/",
    "https://192.175.48.1/",
    "https://localhost/",
    "https://localhost./",
    "https://foo.localhost/",
    "https://db.internal/",
    "https://metadata.google.internal/",
    "https://printer.local/",
    "https://intranet/",
    "https://169.254.169.254/",
    "https://169.254.170.2/",
    "https://100.100.100.200/",
    "https://10.0.0.1/",
    "https://172.16.0.1/",
    "https://172.31.255.255/",
    "https://192.168.0.1/",
    "https://198.18.0.1/",
    "https://224.0.0.1/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://example.com:22/",
    "https://example.com:25/",
    "https://example.com:6379/",
    "http://example.com/",
    "file:///etc/passwd",
    "data:text/plain,x",
    "unix:/tmp/s",
    "ftp://example.com/",
    "gopher://example.com/",
    "blob:https://example.com/x",
    "javascript:alert(1)",
    "",
    "https://",
    "//example.com/",
    "https://example.com/#x",
  ])("%s", (url) => expect(code(() => checkAddress(url, false))).toBe("invalid_webhook_url"));
});

test("a public https address is taken as it is", () => {
  expect(checkAddress("https://example.com:8443/hook?x=1", false).href).toBe("https://example.com:8443/hook?x=1");
  expect(checkAddress("https://93.184.216.34/", false).hostname).toBe("93.184.216.34");
});

test("allowing a private receiver allows http to it, and still no other scheme or credentials", () => {
  expect(checkAddress("http://127.0.0.1:9000/hook", true).port).toBe("9000");
  for (const url of ["file:///etc/passwd", "http://u:p@127.0.0.1/", "unix:/tmp/s"])
    expect(code(() => checkAddress(url, true))).toBe("invalid_webhook_url");
});

test("addresses at the edges of the private ranges", () => {
  const verdicts = ["9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "2606:4700::1111"].map(
    isPublicAddress,
  );
  expect(verdicts.every(Boolean)).toBe(true);
  expect(["0.0.0.0", "::ffff:10.0.0.1", "ff02::1", "not an address", "2001::1"].some(isPublicAddress)).toBe(false);
});

const send = (url: string, resolve: (host: string) => Promise<string[]>, more = {}) =>
  post({ url, allowPrivate: false, headers: {}, body: "{}", timeoutMs: 2_000, resolve, ...more });

test("a name that leads to a private address, or to one among others, is refused at each use", async () => {
  for (const addresses of [["127.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["::1"]]) {
    expect(await send("https://rebind.example.com/", async () => addresses).catch((error) => error.code)).toBe("invalid_webhook_url");
  }
  expect(await send("https://gone.example.com/", async () => []).catch((error) => error.message)).toContain("no address");
});

test("it connects to the address that was checked, says the name in Host, follows no redirect and returns no body", async () => {
  const seen: { path: string; host: string | null; body: string }[] = [];
  using receiver = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      seen.push({ path: new URL(request.url).pathname, host: request.headers.get("host"), body: await request.text() });
      return new Response("secret of the receiver".repeat(1000), { status: 302, headers: { location: "/elsewhere" } });
    },
  });
  let lookups = 0;
  const lookUp = async () => {
    lookups++;
    return ["127.0.0.1"];
  };
  const answer = await send(`http://receiver.example.com:${receiver.port}/hook`, lookUp, {
    allowPrivate: true,
    body: '{"a":1}',
  });
  expect(answer).toEqual({ status: 302, retryAfter: null });
  expect(seen).toEqual([{ path: "/hook", host: `receiver.example.com:${receiver.port}`, body: '{"a":1}' }]);
  expect(lookups).toBe(1);
});

test("a receiver that does not answer is given up in time", async () => {
  using receiver = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Promise<Response>(() => {}) });
  const failure = await send(`http://127.0.0.1:${receiver.port}/`, async () => [], { allowPrivate: true, timeoutMs: 100 }).catch((error) => error);
  expect(failure).toBeInstanceOf(Error);
});

test("an address inside the network is refused for that, with the way to allow it; a public one for its scheme", () => {
  const refusal = (url: string) => {
    try {
      checkAddress(url, false);
    } catch (error) {
      return error as HubError;
    }
    throw new Error(`${url} passes`);
  };
  for (const url of ["http://127.0.0.1:9000/hook", "https://127.0.0.1/", "http://localhost:9000/"]) {
    expect(refusal(url).message).toContain("its host is not public");
    expect(refusal(url).extras["hint"]).toContain("--allow-private");
  }
  expect(refusal("http://example.com/").message).toContain("it must be https");
});

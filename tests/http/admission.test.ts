// Which Host and Origin a request may carry.
import { expect, test } from "bun:test";
import { type AdmissionRules, admit, checkOrigin, hostsOf } from "../../src/http/admission.ts";

const rules: AdmissionRules = {
  newRequestId: () => "req_new",
  hosts: new Set([...hostsOf(7331, ["hub.lan"]), "kxm.example.com"]),
  publicOrigin: "https://kxm.example.com",
};
const request = (host: string, headers: Record<string, string> = {}) =>
  new Request(`http://${host}/v1/x`, { method: "POST", headers: { host, ...headers } });
const verdict = (one: Request, guarded = true) => {
  try {
    checkOrigin(one, rules, guarded);
    return "admitted";
  } catch (error) {
    return (error as { code: string }).code;
  }
};

test("the hub's own names are admitted in any case; everything near them is refused", () => {
  for (const host of ["localhost:7331", "LOCALHOST:7331", "127.0.0.1:7331", "[::1]:7331", "hub.lan:7331", "kxm.example.com"])
    expect(verdict(request(host))).toBe("admitted");
  for (const host of [
    "localhost.:7331",
    "127.0.0.1.nip.io:7331",
    "localhost:7332",
    "0.0.0.0:7331",
    "hub.lan",
    "evil.example:7331",
    "kxm.example.com:7331",
  ])
    expect(verdict(request(host))).toBe("host_forbidden");
  expect(verdict(new Request("http://localhost:7331/", { headers: { host: "localhost:7331, evil.example" } }))).toBe("host_forbidden");
  expect(verdict(new Request("http://evil.example/", { headers: { host: "localhost:7331" } }))).toBe("host_forbidden");
});

test("a change may come from the hub's own origin only, or from no page at all", () => {
  expect(verdict(request("127.0.0.1:7331", { origin: "http://127.0.0.1:7331" }))).toBe("admitted");
  expect(verdict(request("127.0.0.1:7331"))).toBe("admitted");
  for (const origin of [
    "null",
    "http://evil.example",
    "http://localhost:7331",
    "http://127.0.0.1:7332",
    "https://127.0.0.1:7331",
    "http://127.0.0.1:7331.evil.example",
  ])
    expect(verdict(request("127.0.0.1:7331", { origin }))).toBe("origin_forbidden");
  expect(verdict(request("127.0.0.1:7331", { origin: "http://evil.example" }), false)).toBe("admitted"); // a read: the answer stays unreadable to that page
});

test("what the browser says of where a change comes from counts, too: a form of ours has no origin, because our pages send no referrer", () => {
  const from = (site: string, origin?: string) =>
    verdict(request("127.0.0.1:7331", { "sec-fetch-site": site, ...(origin !== undefined && { origin }) }));
  expect(from("same-origin", "null")).toBe("admitted");
  expect(from("none")).toBe("admitted");
  for (const site of ["cross-site", "same-site"])
    for (const origin of ["null", "http://127.0.0.1:7331", undefined]) expect(from(site, origin)).toBe("origin_forbidden");
  expect(from("none", "null")).toBe("origin_forbidden");
  expect(from("same-origin", "http://evil.example")).toBe("origin_forbidden");
});

test("behind a proxy with TLS the public origin counts, for the public name alone", () => {
  expect(verdict(request("kxm.example.com", { origin: "https://kxm.example.com" }))).toBe("admitted");
  expect(verdict(request("127.0.0.1:7331", { origin: "https://kxm.example.com" }))).toBe("origin_forbidden");
  expect(verdict(request("kxm.example.com", { origin: "https://evil.example" }))).toBe("origin_forbidden");
});

test("a request keeps a well-formed id of its own and gets a new one otherwise", () => {
  const idOf = (id: string) => admit(new Request("http://x/", { headers: { "x-request-id": id } }), rules).requestId;
  expect(idOf("my-id.1_A")).toBe("my-id.1_A");
  for (const bad of ["", "a b", "x".repeat(81), "é", "a/b"]) expect(idOf(bad)).toBe("req_new");
});

test("an address that cannot be read, or holds what no store keeps, is refused", () => {
  const at = (path: string) => verdict(new Request(`http://localhost:7331${path}`, { headers: { host: "localhost:7331" } }));
  for (const path of ["/v1/runs/%00/x", "/v1/log?project=a%00b", "/v1/%E0%A4%A", "/v1/log?project=%"])
    expect([path, at(path)]).toEqual([path, "protocol_error"]);
  for (const path of ["/v1/runs/%2500/x", "/v1/log?project=%F0%9F%98%80", "/v1/leases/a%2Fb"]) expect([path, at(path)]).toEqual([path, "admitted"]);
});

// The steps every request passes, whatever its route.
import { expect, test } from "bun:test";
import { openHubWorld } from "../support/hub.ts";

test("health says that the hub lives, with a request id and the rate limit left out", async () => {
  await using it = await openHubWorld();
  const answer = await it.call("GET", "/health", { headers: { "x-request-id": "my-id.1" } });
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({ ok: true, agents: 0 });
  expect(answer.headers.get("x-request-id")).toBe("my-id.1");
  expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
  expect(answer.headers.get("x-ratelimit-limit")).toBeNull();
});

test("an unknown route, a wrong method and a trailing slash are the same 404, counted by the rate limit", async () => {
  await using it = await openHubWorld();
  for (const [method, path] of [
    ["GET", "/nowhere"],
    ["POST", "/health"],
    ["GET", "/health/"],
    ["GET", "/../etc/passwd"],
  ] as const) {
    const answer = await it.call(method, path);
    expect(answer.status).toBe(404);
    expect(answer.body.code).toBe("route_not_found");
    expect(answer.body.requestId).toBe(answer.headers.get("x-request-id"));
    expect(answer.body.hint).toBeString();
  }
  expect((await it.call("GET", "/nowhere")).headers.get("x-ratelimit-remaining")).toBe("595");
});

test("a malformed percent escape is a protocol error", async () => {
  await using it = await openHubWorld();
  expect((await it.call("GET", "/v1/%zz")).body.code).toBe("protocol_error");
});

test("a request for another host is refused on every route before anything else", async () => {
  await using it = await openHubWorld();
  for (const path of ["/health", "/nowhere"]) {
    const answer = await it.fetch(new Request(`http://evil.example:7331${path}`));
    expect(answer.status).toBe(403);
    expect(((await answer.json()) as { code: string }).code).toBe("host_forbidden");
  }
});

test("the rate limit answers 429 with retry-after, per claimed agent", async () => {
  await using it = await openHubWorld({ rateLimit: { max: 2, windowMs: 60_000 } });
  const ask = (agent: string) => it.call("GET", "/nowhere", { headers: { "x-kxm-agent-id": agent } });
  expect([(await ask("a")).status, (await ask("a")).status, (await ask("a")).status, (await ask("b")).status]).toEqual([404, 404, 429, 404]);
  expect((await ask("a")).headers.get("retry-after")).toBe("60");
  it.clock.now += 60_000;
  expect((await ask("a")).status).toBe(404);
});

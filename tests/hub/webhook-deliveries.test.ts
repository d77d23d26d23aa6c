// Outgoing webhooks end to end in process: events become deliveries, receivers flap, secrets rotate, the log tells.
import { describe, expect, test } from "bun:test";
import { deliverDue, enqueue, type Post } from "../../src/hub/webhook-deliveries.ts";
import { ATTEMPT_WAITS_MS, signedHeaders } from "../../src/protocol/webhook-endpoints.ts";
import { type HubWorld, openHubWorld } from "../support/hub.ts";

const boss = { authorization: "Bearer boss" };
type Sent = Parameters<Post>[0];

async function open() {
  const it = await openHubWorld({ localAdminTokenHash: new Bun.CryptoHasher("sha256").update("boss").digest("hex") });
  const sent: Sent[] = [];
  const answers: (number | Error | { status: number; retryAfter: string })[] = [];
  const post: Post = async (request) => {
    sent.push(request);
    const answer = answers.shift() ?? 200;
    if (answer instanceof Error) throw answer;
    return typeof answer === "number" ? { status: answer, retryAfter: null } : answer;
  };
  const call = (method: string, path: string, body?: unknown) => it.call(method, path, { headers: boss, ...(body !== undefined && { body }) });
  return Object.assign(it as HubWorld, {
    sent,
    answers,
    admin: call,
    add: async (change: object = {}) =>
      (await call("POST", "/v1/webhook-endpoints", { project: "shop", url: "https://example.com/hook", eventTypes: ["agents.*"], ...change }))
        .body as { endpoint: any; secret: string },
    register: (name: string) => it.call("POST", "/v1/agents/register", { body: { name, project: "shop" } }),
    round: async () => {
      await enqueue(it.hub);
      return deliverDue(it.hub, { post, random: () => 0.5 });
    },
    log: async (id: string) => (await call("GET", `/v1/webhook-endpoints/${id}/deliveries`)).body.deliveries as any[],
  });
}

test("an event after the endpoint was made is sent once, signed, without what nobody asked for", async () => {
  await using it = await open();
  await it.register("before");
  const { endpoint, secret } = await it.add();
  await it.register("after");
  expect(await it.round()).toBe(1);
  expect(await it.round()).toBe(0);
  const [request] = it.sent;
  expect(JSON.parse(request!.body)).toMatchObject({ type: "agents.registered", data: { project: "shop", name: "after" } });
  const { "webhook-id": id, "webhook-timestamp": seconds, "webhook-signature": signature } = request!.headers as Record<string, string>;
  expect(signedHeaders([secret], id!, Number(seconds), request!.body)["webhook-signature"]).toBe(signature!);
  expect(await it.log(endpoint.id)).toMatchObject([{ id, state: "delivered", attempts: [{ status: 200 }], eventType: "agents.registered" }]);
});

test("the signature is the Standard Webhooks scheme's", () => {
  const secret = `whsec_${Buffer.from("0123456789abcdef0123456789abcdef").toString("base64")}`;
  const expected = new Bun.CryptoHasher("sha256", "0123456789abcdef0123456789abcdef").update("msg_1.1700000000.{}").digest("base64");
  expect(signedHeaders([secret], "msg_1", 1_700_000_000, "{}")).toEqual({
    "webhook-id": "msg_1",
    "webhook-timestamp": "1700000000",
    "webhook-signature": `v1,${expected}`,
  });
});

test("message texts go only to endpoints that may have them", async () => {
  await using it = await open();
  await it.add({ eventTypes: ["messages.queued"] });
  await it.add({ eventTypes: ["messages.queued"], allowBodies: true, url: "https://example.org/bodies" });
  const [ann, bob] = [(await it.register("ann")).body, (await it.register("bob")).body];
  const headers = { "x-kxm-agent-id": ann.agent.id, "x-kxm-agent-key": ann.agentKey };
  await it.call("POST", "/v1/messages", { body: { target: bob.agent.id, content: "the secret plan" }, headers });
  await it.round();
  const [plain, full] = ["https://example.com/hook", "https://example.org/bodies"].map((url) => it.sent.find((request) => request.url === url)!.body);
  expect(plain).not.toContain("secret plan");
  expect(JSON.parse(full!).data.content).toBe("the secret plan");
});

test("a flapping receiver is tried on the schedule, with the same id and body and a new signature, until it takes it", async () => {
  await using it = await open();
  const { endpoint } = await it.add();
  await it.register("a");
  it.answers.push({ status: 429, retryAfter: "4000" }, new Error("connection reset"), 301, 500, 200);
  const waits = [4_000_000, ...ATTEMPT_WAITS_MS.slice(2, 5)]; // it asked for more time than the schedule gives at first
  await it.round();
  for (const wait of waits) {
    it.clock.now += wait - 1;
    expect(await it.round()).toBe(0);
    it.clock.now += 1;
    expect(await it.round()).toBe(1);
  }
  expect(new Set(it.sent.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
  expect(new Set(it.sent.map(({ body }) => body)).size).toBe(1);
  expect(new Set(it.sent.map(({ headers }) => headers["webhook-signature"])).size).toBe(5);
  expect((await it.log(endpoint.id))[0]).toMatchObject({
    state: "delivered",
    attempts: [{ status: 429 }, { error: expect.stringContaining("connection reset") }, { status: 301 }, { status: 500 }, { status: 200 }],
  });
});

test("410 disables the endpoint and raises an alert; enabling starts from now", async () => {
  await using it = await open();
  const { endpoint } = await it.add();
  await it.register("a");
  it.answers.push(410);
  await it.round();
  expect((await it.admin("GET", "/v1/webhook-endpoints?project=shop")).body.endpoints[0].disabledReason).toContain("410");
  expect((await it.log(endpoint.id))[0].state).toBe("failed");
  await it.register("meanwhile");
  expect(await it.round()).toBe(0);
  await it.admin("POST", `/v1/webhook-endpoints/${endpoint.id}/enable`);
  await it.register("later");
  expect(await it.round()).toBe(1);
  expect(it.sent.at(-1)!.body).toContain("later");
});

test("after the last attempt it is given up, and replay sends it again under the same id", async () => {
  await using it = await open();
  const { endpoint } = await it.add();
  await it.register("a");
  for (const [index] of ATTEMPT_WAITS_MS.entries()) {
    it.answers.push(503);
    expect(await it.round()).toBe(1);
    it.clock.now += (ATTEMPT_WAITS_MS[index + 1] ?? 0) + 1;
  }
  const [failed] = await it.log(endpoint.id);
  expect(failed.state).toBe("failed");
  expect((await it.admin("POST", `/v1/webhook-deliveries/${failed.id}/replay`)).status).toBe(202);
  await it.round();
  expect(it.sent.at(-1)!.headers["webhook-id"]).toBe(failed.id);
  expect((await it.log(endpoint.id))[0].state).toBe("delivered");
  expect((await it.admin("POST", "/v1/webhook-deliveries/dlv_none/replay")).body.code).toBe("delivery_not_found");
});

test("one bad receiver does not hold up another", async () => {
  await using it = await open();
  await it.add();
  await it.add({ url: "https://example.org/good" });
  await it.register("a");
  const stuck = Promise.withResolvers<{ status: number; retryAfter: null }>();
  const reached: string[] = [];
  await enqueue(it.hub);
  const round = deliverDue(it.hub, {
    random: () => 0.5,
    post: ({ url }) => {
      reached.push(url);
      return url.includes("example.org") ? Promise.resolve({ status: 200, retryAfter: null }) : stuck.promise;
    },
  });
  while (reached.length < 2) await new Promise((resolve) => setImmediate(resolve));
  stuck.resolve({ status: 500, retryAfter: null });
  expect(await round).toBe(2);
});

test("two hubs that look at once send it once", async () => {
  await using it = await open();
  await it.add();
  await it.register("a");
  await enqueue(it.hub);
  expect((await Promise.all([it.round(), it.round()])).toSorted()).toEqual([0, 1]);
  expect(it.sent).toHaveLength(1);
});

test("a receiver is sent four at a time", async () => {
  await using it = await open();
  await it.add();
  for (const name of ["a", "b", "c", "d", "e", "f"]) await it.register(name);
  expect([await it.round(), await it.round(), await it.round()]).toEqual([4, 2, 0]);
});

test("what waits for another attempt is given up when its endpoint is disabled", async () => {
  await using it = await open();
  const { endpoint } = await it.add();
  await it.register("a");
  it.answers.push(503);
  await it.round();
  await it.admin("POST", `/v1/webhook-endpoints/${endpoint.id}/disable`, { reason: "it is moving" });
  it.clock.now += ATTEMPT_WAITS_MS[1]!;
  expect(await it.round()).toBe(0);
  expect(it.sent).toHaveLength(1);
  expect(await it.log(endpoint.id)).toMatchObject([{ state: "failed", attempts: [{ status: 503 }, { error: "the endpoint is disabled" }] }]);
});

test("a hub that died with a delivery under way sends it again, once the claim has run out", async () => {
  await using it = await open();
  await it.add();
  await it.register("a");
  await enqueue(it.hub);
  void deliverDue(it.hub, { random: () => 0.5, post: () => new Promise(() => {}) });
  const isClaimed = async () => (await it.hub.engine.read.webhookEndpoints.due(it.clock.now, 10)).length === 0;
  while (!(await isClaimed())) await new Promise((resolve) => setImmediate(resolve));
  expect(await it.round()).toBe(0);
  it.clock.now += 60_000;
  expect(await it.round()).toBe(1);
});

test("a rotated secret signs beside the new one for a day", async () => {
  await using it = await open();
  const { endpoint, secret } = await it.add();
  const rotated = (await it.admin("POST", `/v1/webhook-endpoints/${endpoint.id}/rotate`)).body.secret;
  const signatures = async () => {
    await it.register(`a${it.clock.now}`);
    await it.round();
    const { headers, body } = it.sent.at(-1)!;
    const by = (one: string) => signedHeaders([one], headers["webhook-id"]!, Number(headers["webhook-timestamp"]), body)["webhook-signature"]!;
    return { given: headers["webhook-signature"]!.split(" "), both: [by(rotated), by(secret)] };
  };
  const during = await signatures();
  expect(during.given).toEqual(during.both);
  it.clock.now += 86_400_001;
  const after = await signatures();
  expect(after.given).toEqual([after.both[0]!]);
});

describe("what admins may not do:", () => {
  test("add a private address, a bad pattern, or act on another project's endpoint", async () => {
    await using it = await open();
    expect((await it.admin("POST", "/v1/webhook-endpoints", { project: "shop", url: "https://169.254.169.254/" })).body.code).toBe(
      "invalid_webhook_url",
    );
    expect(
      (await it.admin("POST", "/v1/webhook-endpoints", { project: "shop", url: "https://example.com/", eventTypes: ["Robert'); --"] })).body.code,
    ).toBe("protocol_error");
    expect((await it.admin("DELETE", "/v1/webhook-endpoints/whk_none")).body.code).toBe("endpoint_not_found");
    expect((await it.call("GET", "/v1/webhook-endpoints?project=shop")).status).toBe(401);
    const { endpoint } = await it.add();
    expect(JSON.stringify((await it.admin("GET", "/v1/webhook-endpoints?project=shop")).body)).not.toContain("whsec_");
    expect((await it.admin("DELETE", `/v1/webhook-endpoints/${endpoint.id}`)).status).toBe(204);
  });
});

// R15: a holder that slept through its lease changes nothing afterwards, whether it held the lease or waited for it when it was stopped.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createApi } from "../../src/api/server.ts";
import type { AgentRow } from "../../src/db/schema.ts";
import type { Tx } from "../../src/db/tx.ts";
import { hostsOf } from "../../src/http/admission.ts";
import * as leases from "../../src/hub/leases.ts";
import { newId } from "../../src/protocol/ids.ts";
import { range, sqliteWorld } from "../support/engines.ts";
import { type Fleet, openFleet, until } from "../support/fleet.ts";
import type { HolderAnswer, HolderCall } from "./holder-process.ts";
import { readLines } from "./store-client.ts";

const ROUNDS = 100;
const TTL_MS = 5_000;

/** What the lease guards: takes a write only with a token that the hub calls valid. */
type Guarded = { content: string; write(token: number, content: string): Promise<boolean> };

describe("R15: a holder is paused past its time", () => {
  let it: Fleet;
  let server: { url: string; stop(): void };
  let bob: AgentRow;
  beforeAll(async () => {
    it = await openFleet(sqliteWorld);
    bob = await it.agent("Bob");
    server = listen(it);
  });
  afterAll(async () => {
    server.stop();
    await it[Symbol.asyncDispose]();
  });

  const resource = (name: string): Guarded => ({
    content: "",
    async write(token, content) {
      const valid = await leases.check(it.hub, "p", name, token).then(
        () => true,
        () => false,
      );
      if (valid) this.content = content;
      return valid;
    },
  });
  const bobs = async (name: string, verb: string, body: object) => (await it.call(bob, "POST", `/v1/leases/${name}/${verb}`, body)).body;
  const lineOf = async (name: string) => (await it.call(bob, "GET", `/v1/leases/${name}`)).body.waiting?.length ?? 0;

  /** Everything that somebody who believes to hold the lease may try. All of it must be refused, with who holds it now. */
  async function tryAll(ada: Holder, fencingToken: number, current: { fencingToken: number }) {
    for (const [verb, body] of [
      ["check", { fencingToken }],
      ["renew", { fencingToken, ttlMs: TTL_MS }],
      ["release", { fencingToken }],
      ["acquire", { ttlMs: TTL_MS }],
    ] as const) {
      const { status, body: told } = await ada.ask({ verb, body });
      expect([verb, status, told.code, told.lease.fencingToken]).toEqual([
        verb,
        409,
        verb === "acquire" ? "lease_held" : "lease_superseded",
        current.fencingToken,
      ]);
    }
  }

  test(`${ROUNDS} times: what it holds is another's by then, and nothing it tries is taken`, async () => {
    const name = "paused";
    await using ada = await startHolder(server.url, (await it.agent("Ada")).id, name);
    const guarded = resource(name);
    for (const round of range(ROUNDS)) {
      const { lease: hers } = (await ada.ask({ verb: "acquire", body: { ttlMs: TTL_MS } })).body;
      expect(await guarded.write(hers.fencingToken, `Ada ${round}`)).toBe(true);
      ada.pause();
      it.clock.now += TTL_MS;
      if (round % 2) await leases.expireLapsed(it.hub);
      const { lease: his } = await bobs(name, "acquire", { ttlMs: 60_000 });
      expect(his.fencingToken).toBe(hers.fencingToken + 1);
      expect(await guarded.write(his.fencingToken, `Bob ${round}`)).toBe(true);
      const before = await it.hub.engine.read.leases.find(`p/${name}`);
      ada.resume();
      expect(await guarded.write(hers.fencingToken, `Ada, late ${round}`)).toBe(false);
      await tryAll(ada, hers.fencingToken, his);
      expect(guarded.content).toBe(`Bob ${round}`);
      expect(await it.hub.engine.read.leases.find(`p/${name}`)).toEqual(before!);
      await bobs(name, "release", { fencingToken: his.fencingToken });
    }
  }, 120_000);

  test(`${ROUNDS} times: it waited when it was stopped, its wait ended meanwhile, and the lease goes to the next in line`, async () => {
    const name = "waited";
    await using ada = await startHolder(server.url, (await it.agent("Eve")).id, name);
    const [cy, guarded] = [await it.agent("Cy"), resource(name)];
    for (const round of range(ROUNDS)) {
      const { lease: his } = await bobs(name, "acquire", { ttlMs: 60_000 });
      const answer = ada.ask({ verb: "acquire", body: { ttlMs: TTL_MS, waitMs: 30_000 } });
      await until(async () => (await lineOf(name)) === 1, "the first in line");
      const cys = it.call(cy, "POST", `/v1/leases/${name}/acquire`, { ttlMs: 60_000, waitMs: 30_000 });
      await until(async () => (await lineOf(name)) === 2, "the second in line");
      await it.hub.engine.write("p", (tx) => endWaitOf(tx, `p/${name}`)); // her wait ends while she is stopped
      ada.pause();
      it.clock.now += 10;
      await bobs(name, "release", { fencingToken: his.fencingToken });
      const { lease: theirs } = (await cys).body;
      expect([theirs.holderAgentName, theirs.fencingToken]).toEqual(["Cy", his.fencingToken + 1]);
      await leases.expireLapsed(it.hub);
      ada.resume();
      expect(await answer).toMatchObject({ status: 409, body: { code: "lease_held", lease: { holderAgentName: "Cy" } } });
      expect(await guarded.write(theirs.fencingToken, `Cy ${round}`)).toBe(true);
      await it.call(cy, "POST", `/v1/leases/${name}/release`, { fencingToken: theirs.fencingToken });
    }
  }, 120_000);

  test(`${ROUNDS} times: it was granted while stopped, slept through the grant, and its answer is worth nothing`, async () => {
    const name = "granted";
    await using ada = await startHolder(server.url, (await it.agent("Fay")).id, name);
    const guarded = resource(name);
    for (const round of range(ROUNDS)) {
      const { lease: first } = await bobs(name, "acquire", { ttlMs: 60_000 });
      const answer = ada.ask({ verb: "acquire", body: { ttlMs: TTL_MS, waitMs: 30_000 } });
      await until(async () => (await lineOf(name)) === 1, "the waiter");
      ada.pause();
      await bobs(name, "release", { fencingToken: first.fencingToken });
      await until(async () => (await it.hub.engine.read.leases.find(`p/${name}`))?.fence === first.fencingToken + 1, "her grant");
      it.clock.now += TTL_MS;
      const { lease: his } = await bobs(name, "acquire", { ttlMs: 60_000 });
      expect(await guarded.write(his.fencingToken, `Bob ${round}`)).toBe(true);
      ada.resume();
      const { status, body } = await answer;
      expect([status, body.lease.fencingToken]).toEqual([200, first.fencingToken + 1]); // true when it was given
      expect(await guarded.write(body.lease.fencingToken, `Fay ${round}`)).toBe(false);
      await tryAll(ada, body.lease.fencingToken, his);
      expect(guarded.content).toBe(`Bob ${round}`);
      await bobs(name, "release", { fencingToken: his.fencingToken });
    }
  }, 120_000);

  test("without comparing tokens, the sleeper's write would have been taken", async () => {
    const name = "mutant";
    const ada = await it.agent("Gus");
    const { lease: hers } = (await it.call(ada, "POST", `/v1/leases/${name}/acquire`, { ttlMs: TTL_MS })).body;
    it.clock.now += TTL_MS;
    await bobs(name, "acquire", { ttlMs: 60_000 });
    // A guard that asks only whether the lease is held lets her in; the one above does not.
    expect((await leases.find(it.hub, "p", name)).lease.state).toBe("held");
    expect(await resource(name).write(hers.fencingToken, "late")).toBe(false);
  });
});

/** Moves the deadline of the first in line to now, as time does. */
async function endWaitOf(tx: Tx, resource: string) {
  const [first] = await tx.leases.waiters(resource, tx.now, 1);
  await tx.leases.removeWaiter(resource, first!.ticket);
  await tx.leases.insertWaiter({ ...first!, deadlineAt: tx.now + 10 });
}

/** The hub's API on a port of this machine. */
function listen({ hub }: Fleet) {
  const hosts = new Set<string>();
  const app = createApi(hub, { newRequestId: () => newId("req"), hosts }).listen({ port: 0, hostname: "127.0.0.1" });
  const port = app.server!.port!;
  for (const host of hostsOf(port, [])) hosts.add(host);
  return { url: `http://127.0.0.1:${port}`, stop: () => void app.stop(true) };
}

type Holder = { ask(call: HolderCall): Promise<HolderAnswer>; pause(): void; resume(): void } & AsyncDisposable;

async function startHolder(url: string, id: string, name: string): Promise<Holder> {
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/holder-process.ts`, url, id, name], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const answers: ((answer: HolderAnswer) => void)[] = [];
  const ready = Promise.withResolvers<void>();
  void readLines(child, (line) => (line.ready ? ready.resolve() : answers.shift()!(line)));
  await ready.promise;
  return {
    ask(call) {
      const { promise, resolve } = Promise.withResolvers<HolderAnswer>();
      answers.push(resolve);
      child.stdin.write(`${JSON.stringify(call)}\n`);
      child.stdin.flush();
      return promise;
    },
    pause: () => child.kill("SIGSTOP"),
    resume: () => child.kill("SIGCONT"),
    async [Symbol.asyncDispose]() {
      child.kill("SIGCONT");
      child.kill();
      await child.exited;
    },
  };
}

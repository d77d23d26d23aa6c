// The hub of a simulation: the real one over a real store, which may be killed and started again, behind a network in which every request meets a fate.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type Credentials, createCredentials } from "../../src/api/credentials.ts";
import { ROUTES } from "../../src/api/routes.ts";
import { createApi } from "../../src/api/server.ts";
import { openEngine } from "../../src/db/open.ts";
import { type Hub, openHub } from "../../src/hub/hub.ts";
import { expireLapsed } from "../../src/hub/leases.ts";
import { silent } from "../../src/hub/log.ts";
import { defaultSettings } from "../../src/hub/settings.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { leaseLedger } from "./ledger.ts";
import type { Faults, Reach } from "./programs.ts";
import type { Schedule } from "./schedule.ts";

export const HUB_URL = "http://127.0.0.1:7331";
/** What an operator shows the hub; a Runtime's project is open. */
const OPERATOR = "an-operator-of-the-simulation";
export const STARTED = Date.UTC(2026, 0, 2, 3, 4, 5);
/** A request without an answer is given up after this. */
const PATIENCE_MS = 30_000;
const LEASES_MS = 4_000;
/** How often something that waits at the hub is looked at again. */
const WAIT_MS = 6_000;
const COMMANDS = "/v1/runtime/commands";
const EVENTS = "/v1/sync/events";

/** Deliberate bugs, to see that the checks see them. */
export type HubBugs = {
  acksBeforeStoring?: boolean;
  forgetsFences?: boolean;
  grantsTwice?: boolean;
  forgetsResults?: boolean;
  shortensLeases?: boolean;
};
export type SimulatedHub = Awaited<ReturnType<typeof simulatedHub>>;
type Answer = { status: number; headers: Record<string, string>; text: string };

/** An empty store, as a file; made once, since migrations are the most of opening one. */
let fresh: Promise<Uint8Array> | undefined;
async function makeFresh(): Promise<Uint8Array> {
  const folder = mkdtempSync("/dev/shm/kxm-sim-fresh-");
  const path = `${folder}/kxm.db`;
  await (await openEngine({ path, clock: () => STARTED, newId: (prefix) => `${prefix}_fresh` })).close();
  const bytes = readFileSync(path);
  rmSync(folder, { recursive: true, force: true });
  return bytes;
}
async function copyFresh(path: string): Promise<void> {
  fresh ??= makeFresh();
  writeFileSync(path, await fresh, { mode: 0o600 });
}

type Life = { hub: Hub; credentials: Credentials; newRequestId: () => string };

/**
 * The API of every hub of this process, made with the first: putting its routes together is most of starting a hub, and they are the same for all. Each
 * request meets the hub whose `life` it is handed, and its credentials; one hub runs at a time.
 */
let shared: ((life: Life, request: Request) => Promise<Response>) | undefined;
function apiFor(first: Life) {
  let life = first;
  const hub = new Proxy(first.hub, { get: (_, name) => Reflect.get(life.hub, name) });
  const credentials: Credentials = {
    agent: (...of) => life.credentials.agent(...of),
    project: (...of) => life.credentials.project(...of),
    role: (...of) => life.credentials.role(...of),
  };
  const api = createApi(hub, { newRequestId: () => life.newRequestId(), hosts: new Set(["127.0.0.1:7331"]) }, ROUTES, credentials);
  return async (of: Life, request: Request) => {
    life = of;
    return api.handle(request);
  };
}

export async function simulatedHub(schedule: Schedule, faults: Faults, bugs: HubBugs = {}) {
  const folder = mkdtempSync("/dev/shm/kxm-sim-hub-");
  await copyFresh(`${folder}/kxm.db`);
  const clock = () => Math.floor(STARTED + schedule.now);
  const leases = leaseLedger(clock, (what) => schedule.troubles.push(what));
  let ids = 0;
  /** Rises with everything that a wait for commands must hear of: one that was sent, or the hub's end. */
  let news = 0;
  const newId = (prefix: string) => `${prefix}_${"0".repeat(24)}${String(++ids).padStart(8, "0")}`;
  let running: Awaited<ReturnType<typeof begin>> | undefined = await begin();

  async function begin() {
    const stop = new AbortController();
    const engine = await openEngine({ path: `${folder}/kxm.db`, clock, newId });
    const settings = { ...defaultSettings(), rateLimit: undefined, localAdminTokenHash: sha256(OPERATOR) } as never;
    const hub: Hub = openHub({ engine, clock, settings, log: silent, stopping: stop.signal });
    return { hub, engine, stop, credentials: createCredentials(hub), newRequestId: () => newId("req") };
  }
  async function end() {
    const ending = running;
    running = undefined;
    news++;
    ending?.stop.abort();
    await ending?.engine.close();
  }

  /** @returns undefined when nothing listens there */
  const answerTo = (request: Request): Promise<Answer | undefined> =>
    schedule.busy(async () => {
      if (!running) return undefined;
      const path = new URL(request.url).pathname;
      if (bugs.acksBeforeStoring && path === EVENTS && schedule.oneIn(10)) return yes(await request.json());
      if (bugs.forgetsResults && request.method === "POST" && path.startsWith(`${COMMANDS}/`)) return { status: 200, headers: {}, text: "{}" };
      shared ??= apiFor(running);
      const response = await shared(running, bugs.shortensLeases ? await shortened(request) : request);
      const answer = { status: response.status, headers: Object.fromEntries(response.headers), text: await response.text() };
      if (bugs.grantsTwice && answer.text.includes('"lease_held"')) grantAgain(answer);
      if (answer.status === 200 && path.startsWith("/v1/leases/")) watchLease(path, answer);
      if (request.method === "POST" && path.startsWith(COMMANDS)) news++;
      return answer;
    });

  /** Deliberate bug: somebody else gets it, too. */
  function grantAgain(answer: Answer) {
    const { lease } = JSON.parse(answer.text);
    const granted = { ...lease, holderAgentId: "agt_other", fencingToken: lease.fencingToken + 1 };
    Object.assign(answer, { status: 200, text: JSON.stringify({ lease: granted, renewed: false }) });
  }

  function watchLease(path: string, answer: Answer) {
    const body = JSON.parse(answer.text);
    if (path.endsWith("/release")) return leases.released(body.lease);
    const newest = leases.newest(body.lease.name);
    if (bugs.forgetsFences && newest > 0) {
      body.lease.fencingToken = newest - 1;
      answer.text = JSON.stringify(body);
    }
    leases.granted(body.lease);
  }

  const lapse = () => {
    const { hub } = running ?? {};
    if (hub) void schedule.busy(() => expireLapsed(hub));
    schedule.after(LEASES_MS, "leases", lapse);
  };
  schedule.after(LEASES_MS, "leases", lapse);

  return {
    get hub(): Hub | undefined {
      return running?.hub;
    },
    /** The newest fence of a resource that anybody has. */
    newestFence: leases.newest,
    /** The network of one process on a machine. */
    fetchFor: (reach: Reach) => networkOf(schedule, faults, reach, { answerTo, news: () => news }),
    /** One request of an operator, who sits beside the hub. */
    call: async (method: string, path: string, body?: unknown): Promise<{ status: number; body: any } | undefined> => {
      const headers: Record<string, string> = {
        authorization: `Bearer ${OPERATOR}`,
        ...(body !== undefined && { "content-type": "application/json" }),
      };
      const request = new Request(HUB_URL + path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
      const answer = await answerTo(request);
      return answer && { status: answer.status, body: answer.text === "" ? undefined : JSON.parse(answer.text) };
    },
    /** It is killed, and starts again later over the same file. */
    restart: (downMs: number) => {
      if (!running) return;
      void schedule.busy(end);
      schedule.after(downMs, "the hub starts", () =>
        schedule.busy(async () => {
          running = await begin();
        }),
      );
    },
    close: async () => {
      await end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Deliberate bug: a lease ends long before its holder thinks. */
async function shortened(request: Request): Promise<Request> {
  const { url, method, headers } = request;
  if (!url.includes("/v1/leases/")) return request;
  return new Request(url, { method, headers, body: JSON.stringify({ ...((await request.json()) as object), ttlMs: 5_000 }) });
}

/** Deliberate bug: an answer before anything is stored. */
function yes({ events }: any): Answer {
  const results = events.map(({ projectId, runId, sequence }: any) => ({ projectId, runId, sequence, outcome: "accepted" }));
  return { status: 200, headers: { "content-type": "application/json" }, text: JSON.stringify({ results, cursors: [] }) };
}

const broken = () => Object.assign(new Error("the connection failed"), { code: "ConnectionReset" });
const late = () => Object.assign(new Error("no answer"), { name: "TimeoutError" });
const BUSY: Answer = {
  status: 503,
  headers: { "retry-after": "1", "content-type": "application/json" },
  text: JSON.stringify({ error: "busy", code: "storage_unavailable", requestId: "req_x" }),
};
const HALF: Answer = { status: 200, headers: { "content-type": "application/json" }, text: '{"results":[{"outcome":"acce' };

type Asked = { answerTo: (request: Request) => Promise<Answer | undefined>; news: () => number };

function networkOf(schedule: Schedule, faults: Faults, reach: Reach, { answerTo, news }: Asked) {
  /** How long something is on its way: mostly short, sometimes so long that it is overtaken by everything. */
  const way = () => (faults.on && schedule.oneIn(10) ? schedule.between(500, 20_000) : schedule.between(1, 30));

  const wait = (ms: number) => new Promise<void>((resolve) => schedule.after(ms, "waits", resolve));

  /**
   * Asks the hub, and again while the request may wait and nothing has come; the hub itself never waits in a simulation. A lease may end by itself, so who
   * waits for one asks each time; commands come only with news.
   */
  async function patiently({ method, url, headers, text }: Sent): Promise<Answer | undefined> {
    const { address, body, waitMs } = withoutWait(url, text);
    const deadline = schedule.now + waitMs;
    const make = () => new Request(address, { method, headers, ...(body !== undefined && { body }) });
    for (;;) {
      const heard = news();
      const answer = await answerTo(make());
      if (!answer) return undefined;
      const noCommands = answer.text.includes('"commands":[]');
      const nothing = noCommands || (answer.status === 409 && answer.text.includes("lease_held"));
      if (!nothing || schedule.now >= deadline) return answer;
      do await wait(Math.min(WAIT_MS, deadline - schedule.now));
      while (noCommands && heard === news() && schedule.now < deadline);
    }
  }

  return async (request: Request): Promise<Response> => {
    reach.point("request");
    const sent: Sent = { method: request.method, url: request.url, headers: Object.fromEntries(request.headers), text: await request.text() };
    return new Promise<Response>((resolve, reject) => {
      const fail = (ms: number, error: () => Error) => schedule.after(ms, "no answer", () => reach.deliver(() => reject(error())));
      const back = (ms: number, answer: Answer) =>
        schedule.after(ms, "answer", () => {
          if (reach.isCutOff()) return fail(PATIENCE_MS, late);
          reach.deliver(() => {
            if (request.signal.aborted) return reject(request.signal.reason); // whoever asked has given up meanwhile
            resolve(new Response(answer.text, { status: answer.status, headers: answer.headers }));
          });
        });
      if (reach.isCutOff()) return fail(way(), broken);
      const fate = faults.on ? schedule.random() : 1;
      if (fate < 0.07) return fail(way(), broken); // lost on the way there
      if (fate < 0.1) return fail(PATIENCE_MS, late);
      if (fate < 0.14) return back(way(), BUSY);
      const isPush = sent.method === "POST" && sent.url.endsWith(EVENTS);
      schedule.after(way(), `to the hub ${sent.method} ${new URL(sent.url).pathname}`, async () => {
        const half = isPush && fate >= 0.23 && fate < 0.25;
        const answer = await patiently(half ? withHalf(sent) : sent);
        if (!answer || fate < 0.2) return fail(way(), broken); // nothing listens; or taken, and the answer lost
        if (fate < 0.23) return back(way(), HALF);
        back(way(), half ? forAll(sent, answer) : isPush && fate < 0.27 ? muddled(answer) : answer);
      });
      if (fate >= 0.27 && fate < 0.34) schedule.after(way() + 1, "to the hub once more", () => void patiently(sent)); // arrives twice
    });
  };
}

/** A push of which only the beginning arrives at the hub, behind somebody who answers for all of it. */
const withHalf = (sent: Sent): Sent => {
  const { events, ...rest } = JSON.parse(sent.text);
  return { ...sent, text: JSON.stringify({ ...rest, events: events.slice(0, Math.ceil(events.length / 2)) }) };
};
const forAll = ({ text }: Sent, answer: Answer): Answer => {
  const body = JSON.parse(answer.text);
  if (answer.status !== 200) return answer;
  const results = JSON.parse(text).events.map((_: unknown, index: number) => body.results[index] ?? body.results[0]);
  return { ...answer, text: JSON.stringify({ ...body, results }) };
};
/** An answer that says of each event what is true of another one. */
const muddled = (answer: Answer): Answer => {
  const body = JSON.parse(answer.text);
  return answer.status === 200 ? { ...answer, text: JSON.stringify({ ...body, results: body.results.toReversed() }) } : answer;
};

type Sent = { method: string; url: string; headers: Record<string, string>; text: string };

function withoutWait(url: string, text: string): { address: string; body?: string; waitMs: number } {
  const address = new URL(url);
  const asked = Number(address.searchParams.get("waitMs") ?? 0);
  if (asked > 0) address.searchParams.set("waitMs", "0");
  if (text === "") return { address: address.href, waitMs: asked };
  const body = address.pathname.endsWith("/acquire") ? JSON.parse(text) : undefined;
  if (!body?.waitMs) return { address: address.href, body: text, waitMs: asked };
  return { address: address.href, body: JSON.stringify({ ...body, waitMs: 0 }), waitMs: body.waitMs };
}

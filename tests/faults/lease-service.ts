// The lease of a history, served by hubs in this process or by a process that can be killed.
import type { Hub } from "../../src/hub/hub.ts";
import * as leases from "../../src/hub/leases.ts";
import { HubError } from "../../src/protocol/errors.ts";
import type { Lease, LeaseGranted } from "../../src/protocol/leases.ts";
import type { Ask, LeaseService, Told } from "./lease-history.ts";
import type { LeaseCall } from "./lease-process.ts";
import { readLines } from "./store-client.ts";

const never = new AbortController().signal; // a wait ends by the hub's clock alone
const grantedOf = ({ lease, renewed }: LeaseGranted) => ({
  token: lease.fencingToken,
  until: Date.parse(lease.expiresAt),
  at: Date.parse(lease.acquiredAt),
  renewed,
});

/** One call, as an agent of project p would make it. An expected refusal is an answer. */
export async function askHub(hub: Hub, name: string, { f, who, token, ttlMs, waitMs }: Ask): Promise<Told> {
  const agent = { id: who, project: "p", name: who };
  try {
    if (f === "acquire") {
      return { ok: true, granted: grantedOf(await leases.acquire(hub, agent, { name, ttlMs, waitMs }, { until: never, gone: never })) };
    }
    if (f === "renew") return { ok: true, granted: grantedOf(await leases.renew(hub, agent, name, token, ttlMs)) };
    if (f === "release") await leases.release(hub, agent, name, token);
    else await leases.check(hub, "p", name, token);
    return { ok: true };
  } catch (error) {
    if (!(error instanceof HubError) || !error.code.startsWith("lease_")) throw error;
    const lease = error.extras["lease"] as Lease | undefined;
    return { ok: false, ...(lease && { saw: { holder: lease.holderAgentId, token: lease.fencingToken } }) };
  }
}

/** The newest token of a lease of project p. */
export const fenceOf = async (hub: Hub, name: string): Promise<number> => (await hub.engine.read.leases.find(`p/${name}`))?.fence ?? 0;

/** Hubs in this process; each call goes to one of them in turn. */
export function servedBy(hubs: () => readonly Hub[], name: string): LeaseService {
  let turn = 0;
  const next = () => hubs()[turn++ % hubs().length]!;
  return { ask: (ask) => askHub(next(), name, ask), sweep: () => leases.expireLapsed(next()), fence: () => fenceOf(next(), name) };
}

/** A process of its own that can be killed, paused and started again on the same store. */
export async function startLeases(path: string) {
  const waiting = new Map<number, (told: any) => void>();
  let calls = 0;
  let child = await launch();
  let up = Promise.resolve();

  async function launch() {
    const started = Bun.spawn([process.execPath, `${import.meta.dir}/lease-process.ts`, path], { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
    const ready = Promise.withResolvers<void>();
    void readLines(started, (line) => {
      if (line.ready) return ready.resolve();
      waiting.get(line.n)?.(line.told);
      waiting.delete(line.n);
    }).then(() => ready.reject(new Error("the process ended before it served")));
    await ready.promise;
    return started;
  }
  async function send(call: DistributiveOmit<LeaseCall, "n">): Promise<any> {
    await up;
    const n = ++calls;
    const { promise, resolve } = Promise.withResolvers<any>();
    waiting.set(n, resolve);
    try {
      child.stdin.write(`${JSON.stringify({ ...call, n })}\n`);
      child.stdin.flush();
    } catch {
      resolve(undefined); // it is dead already
    }
    return promise;
  }
  return {
    service: (name: string): LeaseService => ({
      ask: (ask) => send({ name, ask }) as Promise<Told>,
      sweep: (now) => send({ name, sweep: now }),
      fence: () => send({ name, fence: true }) as Promise<number>,
    }),
    /** kill -9, and a new process on the same store. Calls in flight have no answer. */
    async kill() {
      up = (async () => {
        child.kill("SIGKILL");
        await child.exited;
        const lost = [...waiting.values()];
        waiting.clear();
        for (const resolve of lost) resolve(undefined);
        child = await launch();
      })();
      await up;
    },
    /** Stopped in the middle of whatever it does, and let go on. */
    async pause() {
      child.kill("SIGSTOP");
      await new Promise<void>((turn) => setImmediate(turn));
      child.kill("SIGCONT");
    },
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

// Messages over HTTP beside a ceiling, and many streams at once. Each side runs in a process of its own, the load in another.
// Goals: durable sends at least 0.35 times the rate of the ceiling (a bare route that stores the same row by one prepared insert through the same lane,
// without any secondary index); 2,000 streams at most 25 KiB of memory each, a broadcast to all of them within 250 ms (p99).
// What is retained, and round trips, are in store.bench.ts.
import { join } from "node:path";
import { best, print, type Rate } from "./measure.ts";

const ROUNDS = Number(process.env["KXM_BENCH_ROUNDS"] ?? 5);
const SECONDS = 3;
const CONNECTIONS = 64;
const CONTENT = "x".repeat(600);
const STREAMS = 2_000;
const STREAMS_OF_AN_AGENT = 20;
const BROADCASTS = 40;

type Agent = { id: string; name: string; key: string };
type Load = { rate: number; p50: number; p99: number; errors: number; statuses: Record<string, number> };
type Request = { path: string; headers: Record<string, string>; body: string };

await sends(8);
await sends(64);
await streams();

/** Rates of hub and ceiling in turns, so that both see the same machine. */
async function sends(agents: number) {
  const [hub, ceiling] = [await start("hub", agents), await start("ceiling", 0)];
  const names = hub.agents.map(({ name }) => name);
  const ours = hub.agents.map(({ id, key }, n): Request => {
    const body = JSON.stringify({ target: names[(n + 1) % agents], content: CONTENT, idempotencyKey: "#N#" });
    return { path: "/v1/messages", headers: { "x-kxm-agent-id": id, "x-kxm-agent-key": key }, body };
  });
  const bare: Request[] = [{ path: "/insert", headers: {}, body: JSON.stringify({ target: names[0], content: CONTENT, idempotencyKey: "#N#" }) }];
  const rates: { hub: Rate[]; ceiling: Rate[]; shares: number[]; p99: number[] } = { hub: [], ceiling: [], shares: [], p99: [] };
  for (let round = 0; round < ROUNDS; round++) {
    const [top, own] = [await measure(ceiling, bare, "200"), await measure(hub, ours, "202")];
    rates.ceiling.push(top.rate);
    rates.hub.push(own.rate);
    rates.shares.push(own.rate.perSecond / top.rate.perSecond);
    rates.p99.push(own.p99);
  }
  await Promise.all([hub.stop(), ceiling.stop()]);
  print("ceiling: bare route, one insert of the row", best(rates.ceiling));
  print(`hub: POST /v1/messages, ${agents} agents`, best(rates.hub), `p99 ${Math.min(...rates.p99).toFixed(0)} ms`);
  const share = best(rates.hub).perSecond / best(rates.ceiling).perSecond;
  const cpu = best(rates.ceiling).cpuUs / best(rates.hub).cpuUs;
  console.log(
    `  of the ceiling: ${share.toFixed(2)} (rounds ${rates.shares.map((one) => one.toFixed(2)).join(" ")}), by processor time ${cpu.toFixed(2)}`,
  );
}

async function measure(server: Server, requests: Request[], expected: string): Promise<{ rate: Rate; p99: number }> {
  const before = (await server.ask("cpu")).cpu;
  const plan = { port: server.port, seconds: SECONDS, warmupSeconds: 0, connections: CONNECTIONS, requests };
  const child = Bun.spawn([process.execPath, "--no-env-file", join(import.meta.dir, "http-load.ts"), JSON.stringify(plan)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { rate, p99, errors, statuses } = JSON.parse(await new Response(child.stdout).text()) as Load;
  await child.exited;
  if (errors > 0 || Object.keys(statuses).join() !== expected) throw new Error(`${errors} errors, answers ${JSON.stringify(statuses)}`);
  return { rate: { perSecond: rate, cpuUs: ((await server.ask("cpu")).cpu - before) / statuses[expected]! }, p99 };
}

async function streams() {
  const hub = await start("hub", STREAMS / STREAMS_OF_AN_AGENT + 1);
  const before = (await hub.ask("memory")).rss;
  const plan = { port: hub.port, streams: STREAMS, broadcasts: BROADCASTS, listeners: hub.agents.slice(1), changer: hub.agents[0] };
  let told = Promise.withResolvers<any>();
  const child = Bun.spawn([process.execPath, "--no-env-file", join(import.meta.dir, "stream-load.ts"), JSON.stringify(plan)], {
    ipc: (message) => told.resolve(message),
    stdio: ["ignore", "inherit", "inherit"],
  });
  await told.promise;
  const open = await hub.ask("memory");
  if (open.streams !== STREAMS) throw new Error(`${open.streams} streams are open`);
  told = Promise.withResolvers();
  child.send("go");
  const { p50, p99, max, error } = await told.promise;
  if (error) throw new Error(error);
  const after = (await hub.ask("memory")).rss;
  const each = (rss: number) => ((rss - before) / STREAMS / 1024).toFixed(1);
  console.log(`${STREAMS} streams: ${each(open.rss)} KiB of memory each, ${each(after)} after ${BROADCASTS} broadcasts`);
  console.log(`broadcast to all of them: p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, longest ${max.toFixed(0)} ms`);
  child.kill();
  await hub.stop();
}

type Server = {
  port: number;
  agents: Agent[];
  ask(about: "cpu" | "memory"): Promise<{ cpu: number; rss: number; streams: number }>;
  stop(): Promise<unknown>;
};

async function start(kind: "hub" | "ceiling", agents: number): Promise<Server> {
  let told = Promise.withResolvers<any>();
  const child = Bun.spawn([process.execPath, "--no-env-file", join(import.meta.dir, "messages-server.ts"), kind, String(agents)], {
    ipc: (message) => told.resolve(message),
    stdio: ["ignore", "inherit", "inherit"],
  });
  const started = await told.promise;
  return {
    ...started,
    ask(about) {
      told = Promise.withResolvers();
      child.send(about);
      return told.promise;
    },
    stop() {
      child.disconnect();
      return child.exited;
    },
  };
}

// Streams for messages.bench.ts, as a process of its own: opens many, then has one agent after another sign off and come back, and measures how long it
// takes until every stream has heard of it. Reads its plan from the first argument; says { open: true } once all streams are live, waits for a word, and
// answers with the times in milliseconds.
type Agent = { id: string; key: string };
type Plan = { port: number; streams: number; broadcasts: number; listeners: Agent[]; changer: Agent };

const { port, streams, broadcasts, listeners, changer } = JSON.parse(process.argv[2]!) as Plan;
let live = 0;
let heard: (at: number) => void = () => {};
for (let n = 0; n < streams; n++) {
  const { id, key } = listeners[n % listeners.length]!;
  await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open: (socket) => void socket.write(`GET /v1/events?agentId=${id} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nx-kxm-agent-key: ${key}\r\n\r\n`),
      data(_, chunk) {
        const text = chunk.toString("latin1");
        if (text.includes("event: ready")) live++;
        if (text.includes("event: presence")) heard(performance.now());
      },
      close: () => void process.send!({ error: "a stream was closed" }),
    },
  });
}
while (live < streams) await Bun.sleep(10);
process.once("message", measure);
process.send!({ open: true });

/** One change of presence, until every stream has heard of it. */
async function broadcast(method: "DELETE" | "GET"): Promise<number[]> {
  const times: number[] = [];
  const all = Promise.withResolvers<void>();
  const started = performance.now();
  heard = (at) => {
    times.push(at - started);
    if (times.length === streams) all.resolve();
  };
  const path = method === "DELETE" ? `/v1/agents/${changer.id}` : "/v1/agents";
  const headers = { "x-kxm-agent-id": changer.id, "x-kxm-agent-key": changer.key };
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status}`);
  await all.promise;
  return times;
}

async function measure() {
  const times: number[] = [];
  for (let n = 0; n < broadcasts; n++) times.push(...(await broadcast(n % 2 ? "GET" : "DELETE")));
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(times.length * share)]!;
  process.send!({ p50: at(0.5), p99: at(0.99), max: times.at(-1) });
}

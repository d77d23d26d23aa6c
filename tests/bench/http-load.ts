// A load generator for benchmarks, as a process of its own: keeps a number of connections to 127.0.0.1 busy with POSTs, one after another on each,
// and prints one line of JSON. Raw sockets, because a whole HTTP client costs more than the server that is measured.
// Reads its plan from the first argument: { port, seconds, warmupSeconds, connections, requests: [{ path, headers, body }] }. "#N#" in a body becomes a number.

type Plan = {
  port: number;
  seconds: number;
  warmupSeconds: number;
  connections: number;
  requests: { path: string; headers: Record<string, string>; body: string }[];
};

const plan = JSON.parse(process.argv[2]!) as Plan;
const tag = process.pid.toString(36);
let made = 0;
let measuring = false;
let errors = 0;
const latencies: number[] = [];
const statuses = new Map<string, number>();

/** The bytes of the next request of a connection. */
function nextRequest(connection: number): string {
  const { path, headers, body } = plan.requests[(connection + made * plan.connections) % plan.requests.length]!;
  const text = body.replace("#N#", `${tag}-${made++}`);
  const lines = Object.entries({ ...headers, "content-type": "application/json", "content-length": String(Buffer.byteLength(text)) });
  return `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${plan.port}\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${text}`;
}

for (let n = 0; n < plan.connections; n++) {
  let received = "";
  let sentAt = 0;
  const next = (socket: { write(data: string): number }) => {
    sentAt = performance.now();
    socket.write(nextRequest(n));
  };
  await Bun.connect({
    hostname: "127.0.0.1",
    port: plan.port,
    socket: {
      open: next,
      data(socket, chunk) {
        received += chunk.toString("latin1");
        const head = received.indexOf("\r\n\r\n");
        if (head === -1) return;
        const length = Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0);
        if (received.length < head + 4 + length) return;
        const status = received.slice(9, 12);
        received = "";
        if (measuring) {
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
          latencies.push(performance.now() - sentAt);
        }
        next(socket);
      },
      error: () => void errors++,
      close: () => void (measuring && errors++),
    },
  });
}

await Bun.sleep(plan.warmupSeconds * 1000);
measuring = true;
const started = performance.now();
await Bun.sleep(plan.seconds * 1000);
measuring = false;
const elapsed = (performance.now() - started) / 1000;
latencies.sort((a, b) => a - b);
const at = (share: number) => Number((latencies[Math.floor(latencies.length * share)] ?? 0).toFixed(1));
process.stdout.write(
  `${JSON.stringify({ rate: Math.round(latencies.length / elapsed), p50: at(0.5), p99: at(0.99), errors, statuses: Object.fromEntries(statuses) })}\n`,
);
process.exit(0);

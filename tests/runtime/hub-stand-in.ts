// A hub as a Runtime sees it: presence, sync answers by the contract, commands by long poll. Small, in process, and able to fail on request.
import { canonical } from "../../src/protocol/canonical.ts";
import { isSyncEvent, type SyncEvent } from "../../src/protocol/sync-event.ts";

export type StoredEvent = { text: string; at: number };
export type StandIn = ReturnType<typeof hubStandIn>;
type Failure = (request: { path: string; count: number; body: any }) => Response | undefined | Promise<Response | undefined>;

export function hubStandIn(options: { port?: number } = {}) {
  const events = new Map<string, StoredEvent>(); // project/run/sequence
  const homes = new Map<string, string>();
  const prefixes = new Map<string, number>(); // project/run → length of its gapless prefix
  const requests: { path: string; at: number; status: number; rows?: number; bytes?: number; body?: any; agent: string | null }[] = [];
  const commands: any[] = [];
  const projects = new Map<string, string>(); // projectId → project of the hub
  let generation: string | undefined;
  const results: { id: string; state: string; reason?: string; detail?: unknown }[] = [];
  const waiters = new Set<() => void>();
  let failure: Failure | undefined;
  let count = 0;

  function ingest(body: any) {
    const touched = new Map<string, { projectId: string; runId: string }>();
    const answers = body.events.map((event: SyncEvent) => {
      const { projectId, runId, sequence } = event;
      const echo = { projectId, runId, sequence };
      if (!isSyncEvent(event)) return { ...echo, outcome: "rejected", code: "sync_event_invalid" };
      if (event.homeRuntimeId !== body.runtimeId) return { ...echo, outcome: "rejected", code: "sync_runtime_mismatch" };
      const key = `${projectId}/${runId}/${sequence}`;
      const text = canonical(event);
      const stored = events.get(key);
      if (stored && stored.text !== text) return { ...echo, outcome: "conflict", code: "sync_sequence_reused" };
      const home = `${projectId}/${runId}`;
      if ((homes.get(home) ?? body.runtimeId) !== body.runtimeId) return { ...echo, outcome: "conflict", code: "sync_home_runtime_mismatch" };
      homes.set(home, body.runtimeId);
      projects.set(projectId, body.project);
      touched.set(home, { projectId, runId });
      if (stored) return { ...echo, outcome: "duplicate" };
      events.set(key, { text, at: performance.now() });
      return { ...echo, outcome: "accepted" };
    });
    const cursors = [...touched.values()].map(({ projectId, runId }) => {
      const known = prefixes.get(`${projectId}/${runId}`) ?? 0;
      let cursor = events.has(`${projectId}/${runId}/${known}`) ? known : 0; // a test may take events away
      while (events.has(`${projectId}/${runId}/${cursor + 1}`)) cursor++;
      prefixes.set(`${projectId}/${runId}`, cursor);
      return { projectId, runId, cursor };
    });
    return { results: answers, cursors };
  }

  async function poll(url: URL): Promise<Response> {
    const [after, waitMs] = [Number(url.searchParams.get("after")), Number(url.searchParams.get("waitMs"))];
    const project = url.searchParams.get("project");
    const open = () =>
      commands
        .filter(({ seq, done, hubProject }) => seq > after && !done && (hubProject ?? project) === project)
        .map(({ done, hubProject, ...command }) => command);
    if (open().length === 0 && waitMs > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, waitMs);
      waiters.add(resolve);
      await promise;
      clearTimeout(timer);
      waiters.delete(resolve);
    }
    return Response.json({ commands: open() });
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: options.port ?? 0,
    idleTimeout: 60,
    async fetch(request) {
      const url = new URL(request.url);
      const text = request.method === "POST" ? await request.text() : "";
      const body = text ? JSON.parse(text) : undefined;
      const entry: (typeof requests)[number] = { path: url.pathname, at: performance.now(), status: 0, agent: request.headers.get("x-kxm-agent-id") };
      if (body?.events) Object.assign(entry, { rows: body.events.length, bytes: text.length });
      else entry.body = body;
      requests.push(entry);
      const failed = await failure?.({ path: url.pathname, count: ++count, body });
      const response = failed ?? (await answer(url, body));
      entry.status = response.status;
      return response;
    },
  });

  async function answer(url: URL, body: any): Promise<Response> {
    if (url.pathname === "/v1/runtime/presence") {
      const at = new Date().toISOString();
      return Response.json({
        presence: { runtimeId: body.runtimeId, registeredAt: at, heartbeatAt: at, leaseExpiresAt: at, presence: "online" },
        generation,
      });
    }
    if (url.pathname === "/v1/sync/events") return Response.json(ingest(body));
    if (url.pathname === "/v1/runtime/commands") return poll(url);
    const result = /^\/v1\/runtime\/commands\/([^/]+)\/result$/.exec(url.pathname);
    if (!result) return refusal(404, "route_not_found");
    const { state, reason, detail } = body;
    results.push({ id: result[1]!, state, ...(reason && { reason }), ...(detail !== undefined && { detail }) });
    const command = commands.find(({ id }) => id === result[1]);
    if (command && state !== "received") command.done = true;
    return Response.json({ command: { id: result[1], state } });
  }

  return {
    url: `http://127.0.0.1:${server.port}`,
    port: server.port!,
    events,
    ingest,
    requests,
    results,
    projects,
    /** What the hub calls its store; none, as an older hub, until it is set. */
    set generation(next: string | undefined) {
      generation = next;
    },
    pushes: () => requests.filter(({ path }) => path === "/v1/sync/events"),
    /** Sequences stored for a run, in order. */
    sequences: (runId: string) =>
      [...events.keys()]
        .filter((key) => key.split("/")[1] === runId)
        .map((key) => Number(key.split("/")[2]))
        .sort((a, b) => a - b),
    /** Answers instead of the hub until it is cleared. */
    failWith: (next: Failure | undefined) => {
      failure = next;
      count = 0;
    },
    /** Gives a command to whoever polls. */
    command: (command: Record<string, unknown>) => {
      commands.push({ seq: commands.length + 1, payload: {}, actor: "operator:test", createdAt: new Date().toISOString(), ...command });
      for (const wake of waiters) wake();
    },
    stop: () => server.stop(true),
    [Symbol.dispose]: () => void server.stop(true),
  };
}

/** An answer of the hub's own kind. */
export const refusal = (status: number, code: string, headers: Record<string, string> = {}) =>
  Response.json({ error: code.replaceAll("_", " "), code, requestId: "req_test", hint: "test" }, { status, headers });

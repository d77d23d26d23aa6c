// Listening: the hub's addresses on this machine, and an end that lets running requests finish.
import type { Elysia } from "elysia";
import { askReady } from "../client/http.ts";
import { BODY_BYTES_MAX } from "../protocol/limits.ts";
import { CommandFailed } from "./output.ts";
import { listenerOf } from "./port.ts";

/** Above the API's own limit, so that it can answer in its own words; what is beyond it gets an empty 413 from the socket layer. */
const SOCKET_BODY_BYTES_MAX = BODY_BYTES_MAX + 65_536;
/** A connection that says nothing for so long is cut; streams and long polls lift this for themselves. */
const IDLE_SECONDS = 10;
const PORT_TRIES = 20;
/** How long whoever holds a port may take to say whether it is a hub. */
const WHO_MS = 1_000;

type App = Pick<Elysia<any, any, any, any, any, any, any>, "fetch"> & { server: unknown };
type Server = ReturnType<typeof Bun.serve>;

/** What listens. */
export interface Listening {
  /** Such as `http://127.0.0.1:7331`. */
  url: string;
  port: number;
  /** Stops accepting, waits for running requests, cuts what is left after `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Listens on a host and port. 127.0.0.1 and localhost listen on ::1 as well where the machine has it.
 * @param port 0 = any that is free on all addresses
 * @throws CommandFailed when the address cannot be taken; it names the hub that answers there, else the program where the system tells
 */
export async function listen(app: App, host: string, port: number): Promise<Listening> {
  const both = host === "127.0.0.1" || host.toLowerCase() === "localhost";
  for (let tries = 1; ; tries++) {
    const first = await take(app, both ? "127.0.0.1" : host, port, host);
    let second: Server | undefined;
    try {
      second = both ? takeIpv6(app, first.port!) : undefined;
    } catch (error) {
      void first.stop(true);
      if (port === 0 && tries < PORT_TRIES) continue; // somebody has this free port on ::1: take another
      throw await inUse("localhost", first.port!, error);
    }
    app.server = first; // Elysia hands it to routes; lifting a timeout and reading an address go by the request, whichever server took it
    const servers = second ? [first, second] : [first];
    const everywhere = host === "0.0.0.0" || host === "::";
    const name = both || everywhere ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
    return { url: `http://${name}:${first.port}`, port: first.port!, stop: (graceMs) => stop(servers, graceMs) };
  }
}

const open = (app: App, hostname: string, port: number): Server =>
  Bun.serve({ hostname, port, fetch: (request) => app.fetch(request), idleTimeout: IDLE_SECONDS, maxRequestBodySize: SOCKET_BODY_BYTES_MAX });

async function take(app: App, hostname: string, port: number, host: string): Promise<Server> {
  try {
    return open(app, hostname, port);
  } catch (error) {
    throw await inUse(host, port, error);
  }
}

function takeIpv6(app: App, port: number): Server | undefined {
  try {
    return open(app, "::1", port);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE" && listenerOf(port, "::1")) throw error;
    return undefined; // this machine has no IPv6
  }
}

async function inUse(host: string, port: number, error: unknown): Promise<CommandFailed> {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "EACCES") return new CommandFailed(`this user may not listen on port ${port}`, "Choose a port above 1023 with --port or KXM_PORT.");
  if (code !== "EADDRINUSE")
    return new CommandFailed(`the hub cannot listen on ${host}: ${message}`, "Check KXM_HOST: it must be a name or address of this machine.");
  const holder = listenerOf(port);
  const url = `http://${host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host}:${port}`;
  const isHub = await askReady(url, WHO_MS).then(
    () => true,
    () => false,
  );
  if (isHub)
    return new CommandFailed(
      `another KXM hub listens on port ${port}: ${[url, holder?.folder && `started in ${holder.folder}`, holder && `pid ${holder.pid}`].filter(Boolean).join(", ")}`,
      `Use that one with --hub ${url} or KXM_URL, stop it with \`kxm hub stop\` in its folder, or choose another port with --port or KXM_PORT (0 takes any free one).`,
    );
  return new CommandFailed(
    `port ${port} of ${host} is in use by ${holder ? `${holder.name} (pid ${holder.pid})` : "another program"}`,
    "Stop that program, or choose another port with --port or KXM_PORT (0 takes any free one).",
  );
}

async function stop(servers: Server[], graceMs: number): Promise<void> {
  const ended = Promise.all(servers.map((server) => server.stop(false)));
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, graceMs);
  await Promise.race([ended, late]);
  clearTimeout(timer);
  await Promise.all(servers.map((server) => server.stop(true)));
}

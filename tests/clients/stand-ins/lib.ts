// Shared by the stand-ins: a tiny HTTP shell and a JSON-lines log.
// Erasable TypeScript only, node: modules only: runs under bun, node >= 22.18, or tsx.
import { appendFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Json = any;

/** One JSON line per event to $LOG (default stderr). */
export function log(event: Json): void {
  const line = `${JSON.stringify({ at: new Date().toISOString(), ...event })}\n`;
  if (process.env.LOG) appendFileSync(process.env.LOG, line);
  else process.stderr.write(line);
}

export async function readBody(req: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of req) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

export function parse(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function sendJson(res: ServerResponse, body: Json, status = 200): void {
  res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** Server-sent events. `name` is written only when given (Anthropic and Responses name theirs). */
export function eventStream(res: ServerResponse): (data: Json, name?: string) => void {
  res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  return (data, name) => {
    const text = typeof data === "string" ? data : JSON.stringify(data);
    res.write(`${name ? `event: ${name}\n` : ""}data: ${text}\n\n`);
  };
}

type Handler = (req: IncomingMessage, res: ServerResponse, url: URL) => Promise<void> | void;

/** Listens on 127.0.0.1:$PORT (0 = any free port) and prints {"url": ...} once ready. */
export function serve(handler: Handler, close?: () => void): void {
  const server = createServer(async (req, res) => {
    const url = new URL(req.url ?? "/", "http://127.0.0.1");
    try {
      await handler(req, res, url);
    } catch (error) {
      log({ kind: "error", path: url.pathname, message: String(error) });
      if (!res.headersSent) sendJson(res, { error: { message: String(error) } }, 500);
      else res.end();
    }
  });
  server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo;
    console.log(JSON.stringify({ url: `http://127.0.0.1:${port}`, pid: process.pid }));
  });
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    process.on(signal, () => {
      close?.();
      server.closeAllConnections();
      server.close(() => process.exit(0));
    });
}

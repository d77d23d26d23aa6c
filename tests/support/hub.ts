// A hub with its API in process, over a real store in memory-backed files. Each test opens its own and disposes of it.
import { mkdtempSync, rmSync } from "node:fs";
import { createApi } from "../../src/api/server.ts";
import { openEngine } from "../../src/db/open.ts";
import { type Hub, openHub } from "../../src/hub/hub.ts";
import { silent } from "../../src/hub/log.ts";
import { defaultSettings, type HubSettings } from "../../src/hub/settings.ts";
import { newId } from "../../src/protocol/ids.ts";

/** What a test holds. `clock.now` is the hub's time in milliseconds and moves only when the test moves it. */
export interface HubWorld extends AsyncDisposable {
  hub: Hub;
  clock: { now: number };
  /** The store's file. */
  location: string;
  /** One request through every step of the API. `body` objects are sent as JSON. */
  call(
    method: string,
    path: string,
    options?: { body?: unknown; headers?: Record<string, string> },
  ): Promise<{ status: number; body: any; headers: Headers }>;
  /** The raw answer, for streams and odd requests. */
  fetch(request: Request): Promise<Response>;
}

/** @param settings replaces single settings of a loopback hub without tokens */
export async function openHubWorld(settings: Partial<HubSettings> = {}): Promise<HubWorld> {
  const folder = mkdtempSync("/dev/shm/kxm-");
  const clock = { now: Date.UTC(2026, 0, 2, 3, 4, 5, 678) };
  const stop = new AbortController();
  const engine = await openEngine({ path: `${folder}/kxm.db`, clock: () => clock.now, newId });
  const hub = openHub({ engine, clock: () => clock.now, settings: { ...defaultSettings(), ...settings }, log: silent, stopping: stop.signal });
  const api = createApi(hub, { newRequestId: () => newId("req"), hosts: new Set(["127.0.0.1:7331"]) });
  const fetch = async (request: Request) => api.handle(request);
  return {
    hub,
    clock,
    location: `${folder}/kxm.db`,
    fetch,
    async call(method, path, { body, headers = {} } = {}) {
      const sent = body === undefined ? {} : { body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body) };
      const typed = method === "POST" ? { "content-type": "application/json" } : {};
      const response = await fetch(
        new Request(`http://127.0.0.1:7331${path}`, { method, headers: { ...typed, ...headers }, ...sent } as RequestInit),
      );
      const text = await response.text();
      const isJson = response.headers.get("content-type")?.startsWith("application/json");
      return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers };
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await engine.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

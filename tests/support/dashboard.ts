// A hub with its dashboard in process, and somebody signed in. Pages are asked for as a browser would ask.
import { Elysia } from "elysia";
import { createApi } from "../../src/api/server.ts";
import * as sessions from "../../src/hub/sessions.ts";
import { newId, newSecret } from "../../src/protocol/ids.ts";
import { csrfOf } from "../../src/views/cookies.ts";
import type { Screen } from "../../src/views/screen.ts";
import { createViews } from "../../src/views/server.tsx";
import { type HubWorld, openHubWorld } from "./hub.ts";

export const HOST = "127.0.0.1:7331";

export interface DashboardWorld extends HubWorld {
  /** API and dashboard as one app, to listen with. */
  app: { handle(request: Request): Promise<Response>; fetch: (request: Request) => Response | Promise<Response> };
  /** Cookie header and form secret of a session. */
  signIn(role?: sessions.Role, project?: string | null): Promise<{ id: string; cookie: string; csrf: string }>;
  get(path: string, options?: { cookie?: string; headers?: Record<string, string> }): Promise<{ status: number; html: string; headers: Headers }>;
  post(
    path: string,
    form: Record<string, string>,
    options?: { cookie?: string; headers?: Record<string, string> },
  ): Promise<{ status: number; html: string; headers: Headers }>;
}

/** @param screens replaces the list of screens */
export async function openDashboard(
  options: { settings?: Parameters<typeof openHubWorld>[0]; screens?: readonly Screen[]; hosts?: Set<string> } = {},
): Promise<DashboardWorld> {
  const world = await openHubWorld(options.settings);
  const rules = { newRequestId: () => newId("req"), hosts: options.hosts ?? new Set([HOST]) };
  const app = new Elysia().use(createApi(world.hub, rules)).use(createViews(world.hub, rules, options.screens));
  const ask = async (request: Request) => {
    const response = await app.handle(request);
    return { status: response.status, html: await response.text(), headers: response.headers };
  };
  return Object.assign(world, {
    app: app as never,
    async signIn(role: sessions.Role = "operator", project: string | null = null) {
      const secret = newSecret("kxs");
      const session = await world.hub.engine.write("", (tx) =>
        sessions.begin(tx, { role, project, tokenId: null }, { session: secret, csrf: csrfOf(secret) }),
      );
      return { id: session.id, cookie: `kxm_session_7331=${secret}`, csrf: csrfOf(secret) };
    },
    get: (path: string, { cookie = "", headers = {} }: { cookie?: string; headers?: Record<string, string> } = {}) =>
      ask(new Request(`http://${HOST}${path}`, { headers: { cookie, ...headers } })),
    post: (path: string, form: Record<string, string>, { cookie = "", headers = {} }: { cookie?: string; headers?: Record<string, string> } = {}) =>
      ask(
        new Request(`http://${HOST}${path}`, {
          method: "POST",
          headers: { cookie, "content-type": "application/x-www-form-urlencoded", ...headers },
          body: new URLSearchParams(form).toString(),
        }),
      ),
  });
}

// A hub with its MCP endpoint in process, and clients of the official SDK that speak to it.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { createCredentials } from "../../src/api/credentials.ts";
import { createMcp } from "../../src/mcp/server.ts";
import { newId } from "../../src/protocol/ids.ts";
import { type HubWorld, openHubWorld } from "./hub.ts";

export interface McpWorld extends HubWorld {
  /** A connected client of the SDK, named by header. */
  connect(name: string, headers?: Record<string, string>): Promise<Client>;
  /** Calls a tool and reads its answer. */
  tool(client: Client, name: string, input?: Record<string, unknown>): Promise<any>;
  /** One raw request. */
  mcp(request: { method?: string; body?: unknown; headers?: Record<string, string> }): Promise<{ status: number; body: any; headers: Headers }>;
}

export async function openMcpWorld(settings: Parameters<typeof openHubWorld>[0] = {}): Promise<McpWorld> {
  const world = await openHubWorld(settings);
  const rules = { newRequestId: () => newId("req"), hosts: new Set(["127.0.0.1:7331"]) };
  const app = createMcp(world.hub, rules, createCredentials(world.hub));
  const named = (name: string) => ({ "x-kxm-agent-name": name, "x-kxm-project": "shop" });
  return Object.assign(world, {
    async connect(name: string, headers: Record<string, string> = {}) {
      const client = new Client({ name: "test", version: "1" });
      const transport = new StreamableHTTPClientTransport(new URL("http://127.0.0.1:7331/mcp"), {
        fetch: async (url, init) => app.handle(new Request(url, init)),
        requestInit: { headers: { ...named(name), ...headers } },
      });
      await client.connect(transport);
      return client;
    },
    async tool(client: Client, name: string, input: Record<string, unknown> = {}) {
      const { content, isError } = (await client.callTool({ name, arguments: input })) as { content: { text: string }[]; isError?: boolean };
      return { ...JSON.parse(content[0]!.text), ...(isError && { isError }) };
    },
    async mcp({ method = "POST", body, headers = {} }: { method?: string; body?: unknown; headers?: Record<string, string> }) {
      const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
      const all = { "content-type": "application/json", accept: "application/json, text/event-stream", ...named("raw"), ...headers };
      const response = await app.handle(
        new Request("http://127.0.0.1:7331/mcp", { method, headers: all, ...(text !== undefined && { body: text }) }),
      );
      const answer = await response.text();
      return { status: response.status, body: answer?.startsWith("{") ? JSON.parse(answer) : answer, headers: response.headers };
    },
  });
}

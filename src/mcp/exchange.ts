// One MCP exchange: a server object that speaks for one agent, and the SDK underneath. Loaded with the first request, because the SDK takes as long as
// the rest of the hub to start.
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import type { AgentRow } from "../db/schema.ts";
import type { Hub } from "../hub/hub.ts";
import { describeError } from "../hub/log.ts";
import { ERRORS, HubError } from "../protocol/errors.ts";
import { readFields } from "../protocol/fields.ts";
import { once } from "../protocol/once.ts";
import { VERSION } from "../protocol/version.ts";
import { INSTRUCTIONS, toolsOf } from "./catalogue.ts";
import { annotationsOf, type Tool } from "./tool.ts";

/** What a client may leave out is not required: some check a call against this schema before they send it, and never fill in a default. */
function schemaOf({ input }: Tool) {
  const schema = JSON.parse(JSON.stringify(input, (key, value) => (key === "x-kxm-code" ? undefined : value)));
  const required = (schema.required as string[] | undefined)?.filter((name) => !("default" in schema.properties[name]));
  return { ...schema, ...(required && required.length > 0 ? { required } : { required: undefined }) };
}

function offerOf(agentMailNames: boolean) {
  const tools = toolsOf({ agentMailNames });
  const listed = tools.map((tool) => ({
    name: tool.name,
    title: tool.title,
    description: tool.description,
    inputSchema: schemaOf(tool),
    annotations: annotationsOf(tool),
  }));
  return { byName: new Map(tools.map((tool) => [tool.name, tool])), listed };
}
const plain = once(() => offerOf(false));
const withAliases = once(() => offerOf(true));
/** What a hub offers: its tools by name, and what tools/list answers, the same for everybody. Each made once. */
export const offered = ({ agentMailNames }: { agentMailNames: boolean }) => (agentMailNames ? withAliases() : plain());

/** Answers one JSON-RPC message (or batch) of an agent. */
export async function exchange(hub: Hub, agent: AgentRow, request: Request, message: unknown): Promise<Response> {
  const server = serverFor(hub, agent, request.signal);
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  try {
    return await transport.handleRequest(request, { parsedBody: message });
  } finally {
    void server.close();
  }
}

/** A server that speaks for one agent. */
function serverFor(hub: Hub, agent: AgentRow, signal: AbortSignal): Server {
  const server = new Server({ name: "kxm", title: "KXM hub", version: VERSION }, { capabilities: { tools: {} }, instructions: INSTRUCTIONS });
  const { byName, listed } = offered(hub.settings);
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: listed }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    try {
      const tool = byName.get(params.name);
      if (!tool) throw new HubError("protocol_error", `there is no tool ${params.name.slice(0, 80)}`, { hint: "tools/list names them." });
      const input = readFields(tool.input, (params.arguments ?? {}) as Record<string, unknown>);
      const { result, next } = await tool.run({ hub, agent, input, signal: AbortSignal.any([signal, extra.signal]) });
      return { content: [{ type: "text", text: JSON.stringify({ ...(result as object), next }) }] };
    } catch (error) {
      return refusal(hub, params.name, error);
    }
  });
  return server;
}

/** A refusal as a tool's result, so that the model can read it and act: sentence, code, what to do next. */
function refusal(hub: Hub, name: string, error: unknown) {
  const known = error instanceof HubError ? error : new HubError("internal_error", "internal server error");
  if (known.status >= 500) hub.log({ event: "tool_failed", level: "error", tool: name, code: known.code, error: describeError(error) });
  const { hint = ERRORS[known.code].hint, ...extras } = known.extras;
  const { operation: _, nextAction: __, ...shown } = extras;
  return {
    isError: true,
    content: [
      {
        type: "text" as const,
        text: JSON.stringify({ error: known.status >= 500 ? "internal server error" : known.message, code: known.code, ...shown, next: hint }),
      },
    ],
  };
}

// Finding what was said, done and learned.
import { Type } from "@sinclair/typebox";
import * as search from "../../hub/search.ts";
import { SearchRequest } from "../../protocol/search.ts";
import { tool } from "../tool.ts";

const { q, after, limit } = SearchRequest.properties;

export const find = tool({
  name: "kxm_search",
  title: "Search",
  description: "Finds messages of yours, agents, leases, runs, journal entries and context of the project by words and qualifiers, newest first.",
  input: Type.Object({ q, after, limit }),
  effect: "read",
  idempotent: true,
  run: async ({ hub, agent, input }) => {
    const answer = await search.find(hub, { project: agent.project, agentName: agent.name, mayRead: true }, input);
    return {
      result: answer,
      next: answer.hits.length === 0 ? "Try fewer or other words." : answer.next ? "More with after set to next." : "That is all.",
    };
  },
});

// What a search finds, as its page, its file and its saved counts ask for it.
import * as search from "../hub/search.ts";
import { HubError } from "../protocol/errors.ts";
import type { SearchAnswer } from "../protocol/search.ts";
import { refusal } from "./acts.tsx";
import { type Asked, askedOf, type Tallies } from "./listing.ts";
import type { FlashText, Visit } from "./screen.ts";

const HITS_SHOWN = 25;
const QUERY_MAX = 500;
/** Qualifiers that become chips; the project is chosen in the frame. */
const CHIPS = ["from", "to", "status", "kind", "since"];

/** What is asked, and what came of it: an answer, or a refusal in words. */
export type Found = { query: string; asked: Asked; answer: SearchAnswer | undefined; refused: FlashText | undefined };

/** For saved views: no more hits than a page shows. */
export const tally: Tallies = async (visit) => {
  const { answer } = await resultsOf(visit);
  return answer && { count: answer.hits.length, more: answer.next !== undefined };
};

/** Who searches: a viewer reads no texts. */
export const searcherOf = ({ project, session }: Visit): search.Searcher => ({ project, agentName: undefined, mayRead: session.role !== "viewer" });
/** What is typed into the one box. */
export const queryOf = (url: URL): string => url.searchParams.getAll("q").join(" ").trim().slice(0, QUERY_MAX);

/** Searches as an address asks. What cannot be read is answered in words. */
export async function resultsOf(visit: Visit): Promise<Found> {
  const { hub, url } = visit;
  const query = queryOf(url);
  const asked = query.includes('"') ? { qualifiers: [], words: query } : askedOf(url, CHIPS); // a quoted value is one word to the search, not to chips
  if (query === "") return { query, asked, answer: undefined, refused: undefined };
  try {
    const after = url.searchParams.get("after") ?? undefined;
    const answer = await search.find(hub, searcherOf(visit), { q: query, limit: HITS_SHOWN, ...(after !== undefined && { after }) });
    return { query, asked, answer, refused: undefined };
  } catch (error) {
    if (!(error instanceof HubError) || error.code !== "invalid_search_query") throw error;
    return { query, asked, answer: undefined, refused: refusal(error) };
  }
}

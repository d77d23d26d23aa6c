// A value of the context: who said it, and which one a form means. One place, so that lists and comparisons say and do the same.
/** @jsxImportSource #jsx */
import type { Stores } from "../db/tx.ts";
import type { ContextItem } from "../protocol/context.ts";
import { HubError } from "../protocol/errors.ts";
import { agentLink, link, stateLink } from "./links.ts";
import type { Visit } from "./screen.ts";
import { Ref, shortId } from "./ui/reference.tsx";
import { Line, Name } from "./ui/untrusted.tsx";

const ID_MAX = 128;
/** Characters of a state key. */
export const KEY_MAX = 200;

/** Names of agents by id. */
export type Names = ReadonlyMap<string, string>;

const speakerOf = ({ provenance }: ContextItem): [verb: string, id: string] | undefined => {
  const [, verb, id] = /^(proposed|promoted)-by:(\w+)$/.exec(provenance.sourceRef ?? "") ?? [];
  return verb === undefined || id === undefined ? undefined : [verb, id];
};

/** The names of the agents that said these values. */
export async function namesOf(read: Stores, items: readonly ContextItem[]): Promise<Names> {
  const ids = items.flatMap((item) => speakerOf(item)?.[1] ?? []).filter((id) => id.startsWith("agt_"));
  return new Map((await read.agents.among([...new Set(ids)])).map(({ id, name }) => [id, name]));
}

/** Who said it: an agent, linked to its page, a person, or the words of its origin. */
export const Origin = ({ item, names }: { item: ContextItem; names: Names }) => {
  const [verb, id] = speakerOf(item) ?? [];
  if (verb === undefined || id === undefined) return <Line text={item.provenance.sourceRef ?? item.provenance.sourceType} max={80} />;
  const name = names.get(id);
  return (
    <>
      {verb} by {id.startsWith("agt_") ? <Ref href={agentLink(id)}>{name === undefined ? shortId(id) : <Name text={name} />}</Ref> : shortId(id)}
    </>
  );
};

/** The value a form is about, for those who may see its project, and where to go afterwards. @throws HubError state_proposal_not_found */
export function valueOfForm(visit: Visit): { project: string; itemId: string; back: string } {
  const project = visit.form.get("project") ?? "";
  visit.requireProject(project);
  const itemId = visit.form.get("proposal") ?? "";
  if (itemId === "" || itemId.length > ID_MAX) throw new HubError("state_proposal_not_found", "the form names no value");
  const key = visit.form.get("key") ?? "";
  return { project, itemId, back: key === "" || key.length > KEY_MAX ? link("/context", { project }) : stateLink(project, key) };
}

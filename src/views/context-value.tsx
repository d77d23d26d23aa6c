// Who said a value of the context: one place, so that lists and comparisons say the same.
/** @jsxImportSource #jsx */
import type { Stores } from "../db/tx.ts";
import type { ContextItem } from "../protocol/context.ts";
import { agentLink } from "./links.ts";
import { Ref, shortId } from "./ui/reference.tsx";
import { Line, Name } from "./ui/untrusted.tsx";

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

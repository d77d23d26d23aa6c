// Values of one key that contradict each other: which keys have them, two of them side by side, and the decision in place.
/** @jsxImportSource #jsx */
import type { Stores } from "../db/tx.ts";
import * as state from "../hub/context/state.ts";
import type { ContextItem } from "../protocol/context.ts";
import { here } from "./address.ts";
import { Hidden, promoteQuestion, ReasonField, rejectQuestion } from "./context-decision.tsx";
import { KEY_MAX, type Names, Origin } from "./context-value.tsx";
import { domId } from "./dom-id.ts";
import { stateLink } from "./links.ts";
import { Ask, type Question } from "./question.tsx";
import type { Visit } from "./screen.ts";
import { Button } from "./ui/button.tsx";
import { PayloadDiff } from "./ui/diff.tsx";
import { TextField } from "./ui/form.tsx";
import { changesIn, diffLines } from "./ui/line-diff.ts";
import { Row, Section, SectionNote } from "./ui/page.tsx";
import { Ref, Sub, shortId } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";
import { Table } from "./ui/table.tsx";
import { Ago } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

/** Keys of a project that are looked at, and shown. */
const KEYS_LOOKED_AT = 50;

/** A key that says two things: its current values, and what is proposed against them. */
export type Contradiction = { project: string; key: string; current: ContextItem[]; proposals: ContextItem[] };

const said = ({ current, proposals }: Contradiction): number => new Set([...current, ...proposals].map(({ summary }) => summary.trim())).size;
const isOpen = (one: Contradiction): boolean => one.current.length > 1 || (one.proposals.length > 0 && said(one) > 1);

/** What a key says now and what is proposed, if these disagree. @param proposals of this key, newest first */
export async function contradictionOf(
  read: Stores,
  { project, key, proposals, now }: { project: string; key: string; proposals: ContextItem[]; now: number },
): Promise<Contradiction | undefined> {
  const current = (await read.context.stateAt(project, key, now)).filter(({ status }) => status === "current").map(state.itemOf);
  const one = { project, key, current, proposals };
  return isOpen(one) ? one : undefined;
}

/** The keys of projects that need a decision, those with several current values first. @param proposals open ones of these projects */
export async function contradictionsOf(
  { hub, now }: Visit,
  projects: readonly string[],
  proposals: readonly ContextItem[],
): Promise<Contradiction[]> {
  const { read } = hub.engine;
  const several = await Promise.all(
    projects.map(async (project) => (await read.context.contradicted(project, KEYS_LOOKED_AT)).map((key) => ({ project, key }))),
  );
  const asked = proposals.map(({ project, stateKey = "" }) => ({ project, key: stateKey }));
  const keys = new Map([...several.flat(), ...asked].map((one) => [JSON.stringify([one.project, one.key]), one] as const));
  const found = await Promise.all(
    [...keys.values()].slice(0, KEYS_LOOKED_AT).map(({ project, key }) => {
      const own = proposals.filter((item) => item.project === project && item.stateKey === key);
      return contradictionOf(read, { project, key, proposals: own, now });
    }),
  );
  return found.filter((one) => one !== undefined);
}

const some = (count: number, one: string, more: string): string => `${count} ${count === 1 ? one : more}`;

/** The list of keys that need a decision. */
export const Contradictions = ({ of, several }: { of: readonly Contradiction[]; several: boolean }) => (
  <Section title="Contradictions" count={of.length} note="two values for one key; agents get a refusal or the older one">
    <Table
      caption="Keys that say two things"
      rows={of}
      id={({ project, key }) => domId("contradiction", project, key)}
      columns={[
        {
          head: "Key",
          kind: "main",
          slim: true,
          cell: ({ project, key }) => (
            <>
              <Ref href={stateLink(project, key)}>
                <code>
                  <Line text={key} />
                </code>
              </Ref>
              {several && (
                <Sub>
                  <Line text={project} max={40} />
                </Sub>
              )}
            </>
          ),
        },
        {
          head: "Disagree",
          phone: "line",
          cell: ({ current, proposals }) => (
            <Status
              state={current.length > 1 ? "conflict" : "proposed"}
              word={
                current.length > 1
                  ? some(current.length, "current value", "current values")
                  : current.length === 1
                    ? "current and proposed"
                    : "proposed"
              }
              why={proposals.length > 0 ? some(proposals.length, "proposal", "proposals") : undefined}
            />
          ),
        },
        {
          head: "",
          kind: "acts",
          cell: ({ project, key }) => (
            <Button small href={`${stateLink(project, key)}#compare`}>
              Compare
            </Button>
          ),
        },
      ]}
    />
  </Section>
);

/** The two values that the address asks to compare: what is current against the newest proposal, unless it says otherwise. */
function pairOf({ current, proposals }: Contradiction, url: URL): [left: ContextItem, right: ContextItem] {
  const all = [...current, ...proposals];
  const named = (name: string) => all.find(({ id }) => id === url.searchParams.get(name));
  const left = named("left") ?? current[0] ?? proposals[1]!;
  const right = named("right") ?? [...proposals, ...current].find(({ id }) => id !== left.id)!;
  return [left, right.id === left.id ? all.find(({ id }) => id !== left.id)! : right];
}

const Head = ({ item, names, now }: { item: ContextItem; names: Names; now: number }) => (
  <>
    <Status state={item.status === "current" ? "active" : "proposed"} word={item.status === "current" ? "current" : "proposed"} />
    <Sub>
      <Origin item={item} names={names} /> · {item.authority}, {item.confidence}
      {item.validFrom !== undefined && (
        <>
          {" · since "}
          <Ago at={Date.parse(item.validFrom)} now={now} plain />
        </>
      )}
      <br />
      evidence: <Line text={item.evidenceRefs?.join(", ") || "none"} max={200} />
    </Sub>
  </>
);

/** Two values side by side, and what an admin decides about them, in place. */
export const Compare = ({ of, names, visit }: { of: Contradiction; names: Names; visit: Visit }) => {
  const { url, now, session } = visit;
  const [left, right] = pairOf(of, url);
  const rows = diffLines(left.summary, right.summary);
  const others = [...of.current, ...of.proposals].filter(({ id }) => id !== left.id && id !== right.id);
  return (
    <Section
      title="Which holds?"
      id="compare"
      note={changesIn(rows) === 0 ? "the words are the same" : some(changesIn(rows), "line differs", "lines differ")}
      more={
        others.length > 0 &&
        others.map(({ id }) => (
          <Button small href={`${here(url, { right: id, act: undefined })}#compare`}>
            Compare with {shortId(id)}
          </Button>
        ))
      }
    >
      <PayloadDiff heads={[<Head item={left} names={names} now={now} />, <Head item={right} names={names} now={now} />]} rows={rows} />
      {session.role === "admin" ? (
        <div class="section__body">
          <Row>
            {questionsOf(of, url).map((question) => (
              <Ask question={question} visit={visit} />
            ))}
          </Row>
        </div>
      ) : (
        <SectionNote>An admin decides.</SectionNote>
      )}
    </Section>
  );
};

/** What can be decided about the two values that are compared. */
export function questionsOf(of: Contradiction, url: URL): Question[] {
  const [left, right] = pairOf(of, url);
  const promotable = [left, right].filter(({ status }) => status === "proposed");
  const rivals = of.current.length > 1 ? [left, right].filter(({ status }) => status === "current") : [];
  const which = (id: string) => (promotable.length === 1 ? "the proposal" : shortId(id));
  const asks = (word: "promote" | "reject", id: string) => ({
    name: `${word}-${id}`,
    button: `${word === "promote" ? "Promote" : "Reject"} ${which(id)}…`,
  });
  return [
    ...promotable.map(({ id }) => promoteQuestion({ ...of, id }, asks("promote", id))),
    ...promotable.map(({ id }) => rejectQuestion({ ...of, id }, asks("reject", id))),
    ...rivals.map(({ id }) => keepQuestion(of, id)),
    bothQuestion(of, right),
  ];
}

const common = { cancel: "Leave it", confirmKind: "primary" } as const;

const keepQuestion = (of: Contradiction, id: string): Question => ({
  ...common,
  name: `keep-${id}`,
  button: `Keep only ${shortId(id)}…`,
  title: `Keep only ${shortId(id)}?`,
  action: "/context/keep",
  confirm: "Keep this one",
  fields: (field) => (
    <>
      <Hidden of={{ ...of, id }} />
      <p>Every other current value of the key ends; the history keeps them.</p>
      <ReasonField field={field} label="Reason" />
    </>
  ),
});

const bothQuestion = (of: Contradiction, { id }: ContextItem): Question => ({
  ...common,
  name: "both",
  button: "Both hold…",
  title: `Give ${shortId(id)} a key of its own?`,
  action: "/context/both",
  confirm: "Keep both",
  fields: (field) => (
    <>
      <Hidden of={{ ...of, id }} />
      <p>No key says two things: {shortId(id)}, the value on the right, becomes current under another key; the other stays where it is.</p>
      <TextField id={`${field}-key`} name="newKey" label="Its key" value={of.key} required maxlength={KEY_MAX} />
      <ReasonField field={field} label="Why both hold" />
    </>
  ),
});

// The pool of a project: how much it holds, what words recall, and the packet that a role would get for a task.
/** @jsxImportSource #jsx */
import { packetOf } from "../hub/context/packets.ts";
import type { Pool } from "../hub/context/pool.ts";
import { recall } from "../hub/context/recall.ts";
import { type ContextItem, KINDS, type Packet, type PacketAudit, type Recalled } from "../protocol/context.ts";
import { HubError } from "../protocol/errors.ts";
import { link } from "./links.ts";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Button } from "./ui/button.tsx";
import { Bar } from "./ui/charts.tsx";
import { Empty } from "./ui/feedback.tsx";
import { Fields, SelectField, TextField } from "./ui/form.tsx";
import { Columns, Facts, PageHead, Row, Section } from "./ui/page.tsx";
import { Id, Sub } from "./ui/reference.tsx";
import { Table } from "./ui/table.tsx";
import { Line } from "./ui/untrusted.tsx";

const ROLES = ["planner", "implementer", "verifier", "critic", "repro", "other"];
const TASK_MAX = 2_000;
const RECALL_MAX = 500;
const RECALLED = 25;

const Items = ({ caption, items }: { caption: string; items: readonly ContextItem[] }) => (
  <Table
    caption={caption}
    rows={items}
    id={({ id }) => `item-${id}`}
    columns={[
      {
        head: "Item",
        kind: "main",
        cell: ({ id, summary }) => (
          <>
            <Line text={summary} max={300} />
            <Sub>
              <Id value={id} />
            </Sub>
          </>
        ),
      },
      { head: "Kind", cell: ({ kind }) => kind },
      { head: "Authority", cell: ({ authority, confidence }) => `${authority}, ${confidence}` },
      { head: "From", cell: ({ provenance }) => provenance.sourceType },
    ]}
  />
);

const Preview = ({ pool, made: { packet, audit } }: { pool: Pool; made: { packet: Packet; audit: PacketAudit } }) => {
  const percent = (100 * packet.estimatedTokens) / audit.budgetTokens;
  return (
    <Section title="Packet" count={audit.selectedIds.length} note={`of ${audit.candidateCount} candidates`}>
      <Bar percent={percent} label={`${Math.round(percent)} percent of the budget`} />
      <Facts
        rows={[
          ["Tokens", `${packet.estimatedTokens.toLocaleString("en")} of ${audit.budgetTokens.toLocaleString("en")}`],
          ["Match the task", audit.relevance.matchedCandidates],
          ["Gaps", packet.unresolvedGaps.length === 0 ? "none" : packet.unresolvedGaps.join("; ")],
        ]}
      />
      {audit.selectedIds.length > 0 && <Items caption="Items of the packet" items={audit.selectedIds.map((id) => pool.items.get(id)!.item)} />}
    </Section>
  );
};

const Found = ({ pool, found }: { pool: Pool; found: readonly Recalled[] }) => (
  <Section title="Recalled" count={found.length}>
    {found.length === 0 ? (
      <Empty title="No item fits these words.">Try fewer words, or others.</Empty>
    ) : (
      <Items caption="Items that fit" items={found.map(({ id }) => pool.items.get(id)!.item)} />
    )}
  </Section>
);

const Asking = ({ visit, project }: { visit: Visit; project: string }) => {
  const { searchParams } = visit.url;
  return (
    <>
      <Section title="Preview a packet" padded>
        <form action="/context/pool">
          <input type="hidden" name="project" value={project} />
          <Fields tight>
            <SelectField
              id="pool-role"
              name="role"
              label="Role"
              options={ROLES.map((role) => ({ value: role, text: role }))}
              value={searchParams.get("role") ?? undefined}
            />
            <TextField id="pool-task" name="task" label="Task" value={searchParams.get("task") ?? ""} maxlength={TASK_MAX} required />
            <Row>
              <Button type="submit">Preview</Button>
            </Row>
          </Fields>
        </form>
      </Section>
      <Section title="Recall" padded>
        <form action="/context/pool">
          <input type="hidden" name="project" value={project} />
          <Fields tight>
            <TextField id="pool-words" name="words" label="Words" value={searchParams.get("words") ?? ""} maxlength={RECALL_MAX} required />
            <Row>
              <Button type="submit">Recall</Button>
            </Row>
          </Fields>
        </form>
      </Section>
    </>
  );
};

const page = screen({
  method: "GET",
  path: "/context/pool",
  role: "admin", // as the API: whole packets are for agents and admins
  run: async (visit) => {
    const project = visit.project ?? (visit.projects.length === 1 ? visit.projects[0] : undefined);
    if (project === undefined) throw new HubError("protocol_error", "choose the project whose pool is looked into");
    const pool = await visit.hub.pools.get(visit.hub.engine.read, project);
    const task = (visit.url.searchParams.get("task") ?? "").trim().slice(0, TASK_MAX);
    const words = (visit.url.searchParams.get("words") ?? "").trim().slice(0, RECALL_MAX);
    const role = ROLES.find((one) => one === visit.url.searchParams.get("role")) ?? "other";
    return visit.page({
      title: "Context pool",
      place: "context",
      children: (
        <>
          <PageHead
            title="Context pool"
            crumbs={[{ text: "Context", href: link("/context", { project }) }, { text: <Line text={project} /> }]}
            sub={[`${pool.items.size.toLocaleString("en")} items`, `${pool.superseded.toLocaleString("en")} superseded or rejected`]}
          />
          <Columns
            main={
              <>
                {task !== "" && <Preview pool={pool} made={packetOf(pool, { project, role, task })} />}
                {words !== "" && <Found pool={pool} found={recall(pool, { project, query: words, limit: RECALLED }).items} />}
                <Section title="Held">
                  <Facts rows={KINDS.map((kind) => [kind, pool.ofKind(kind).length.toLocaleString("en")] as const)} />
                </Section>
              </>
            }
            aside={<Asking visit={visit} project={project} />}
          />
        </>
      ),
    });
  },
});

export const screens: readonly Screen[] = [page];

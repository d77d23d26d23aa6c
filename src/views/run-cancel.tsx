// Cancelling several runs: they are named once more, a reason is asked for, and each gets its own command and outcome.
/** @jsxImportSource #jsx */
import * as commands from "../hub/commands.ts";
import { hasEnded } from "../hub/projection.ts";
import * as runs from "../hub/runs.ts";
import { HubError } from "../protocol/errors.ts";
import { BULK_ROWS_MAX, REASON_MAX, VIEW_ROWS_MAX } from "../protocol/limits.ts";
import type { RunSummary } from "../protocol/runs.ts";
import { act, fieldOf, refusal } from "./acts.tsx";
import { commandsLink } from "./commands.tsx";
import { link, runLink } from "./links.ts";
import { runState } from "./run-status.tsx";
import { cancellable } from "./runs.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Button, Csrf } from "./ui/button.tsx";
import { Command } from "./ui/feedback.tsx";
import { Fields, TextField } from "./ui/form.tsx";
import { Columns, PageHead, Row, Section, SectionNote } from "./ui/page.tsx";
import { Id, Ref } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";
import { Table } from "./ui/table.tsx";
import { Line } from "./ui/untrusted.tsx";

/** The picked runs that the session may see, each once. */
async function picked({ hub, session }: Visit, picks: readonly string[]): Promise<RunSummary[]> {
  const found: RunSummary[] = [];
  for (const pick of new Set(picks.slice(0, BULK_ROWS_MAX))) {
    const [projectId = "", runId = ""] = pick.split("/");
    const run = await runs.find(hub, session.project, projectId, runId).catch((error) => {
      if (error instanceof HubError && error.code === "run_not_found") return undefined;
      throw error;
    });
    if (run) found.push(run);
  }
  return found;
}

const isOver = ({ status }: RunSummary): boolean => hasEnded(status ?? null);

const CancelForm = ({ chosen, visit }: { chosen: readonly RunSummary[]; visit: Visit }) => {
  const open = chosen.filter((run) => !isOver(run));
  return (
    <form method="post" action="/runs/cancel">
      <Csrf token={visit.csrf} />
      {open.map(({ projectId, runId }) => (
        <input type="hidden" name="pick" value={`${projectId}/${runId}`} />
      ))}
      <Fields>
        <TextField
          id="cancel-reason"
          name="reason"
          autofocus
          label="Reason"
          hint="goes to the machines and into the audit"
          required
          maxlength={REASON_MAX}
        />
        <Row>
          <Button kind="danger" type="submit" disabled={open.length === 0}>
            Cancel {open.length} {open.length === 1 ? "run" : "runs"}
          </Button>
          <Button href={link("/runs", { project: visit.project })}>Keep them running</Button>
        </Row>
      </Fields>
    </form>
  );
};

const question = screen({
  method: "GET",
  path: "/runs/cancel",
  role: "operator",
  run: async (visit) => {
    const { searchParams } = visit.url;
    const fitting = searchParams.get("matching") === "1" ? await cancellable(visit, BULK_ROWS_MAX) : undefined;
    const chosen = fitting?.runs ?? (await picked(visit, searchParams.getAll("pick")));
    const shown = chosen.slice(0, VIEW_ROWS_MAX);
    return visit.page({
      title: "Cancel runs",
      place: "runs",
      children: (
        <>
          <PageHead
            title={`Cancel ${chosen.length} ${chosen.length === 1 ? "run" : "runs"}?`}
            crumbs={[{ text: "Runs", href: link("/runs", { project: visit.project }) }, { text: "Cancel" }]}
            sub={[
              fitting &&
                (fitting.more ? "the newest of those that fit the list; ask again for the others" : "all that fit the list and have not ended"),
              "what runs is stopped first; what was done stays done",
            ]}
          />
          <Section title="Chosen" count={chosen.length}>
            <Table
              caption="Runs to cancel"
              rows={shown}
              id={({ runId }) => `chosen-${runId}`}
              columns={[
                {
                  head: "Run",
                  kind: "main",
                  cell: ({ projectId, runId }) => (
                    <Ref href={runLink(projectId, runId)}>
                      <Id value={runId} whole />
                    </Ref>
                  ),
                },
                { head: "Title", phone: "line", cell: ({ displayTitle }) => (displayTitle ? <Line text={displayTitle} max={80} /> : null) },
                {
                  head: "Status",
                  phone: "line",
                  cell: (run) => <Status {...runState(run)} why={isOver(run) ? "has ended: is left out" : undefined} />,
                },
              ]}
            />
            {chosen.length > shown.length && <SectionNote>{`and ${chosen.length - shown.length} more that changed before these`}</SectionNote>}
          </Section>
          <Columns
            below
            main={
              <Section title="Why" padded>
                <CancelForm chosen={chosen} visit={visit} />
              </Section>
            }
            aside={
              <Section title="Same from a terminal" padded>
                <Command text={`kxm runs cancel ${chosen[0]?.runId ?? "run_…"} --reason 'why'`} />
              </Section>
            }
          />
        </>
      ),
    });
  },
});

const cancel = screen({
  method: "POST",
  path: "/runs/cancel",
  role: "operator",
  run: async (visit) => {
    const picks = visit.form.getAll("pick").slice(0, BULK_ROWS_MAX);
    const few = picks.slice(0, VIEW_ROWS_MAX); // an address holds no more
    const ask = link(`/runs/cancel?${few.map((pick) => `pick=${encodeURIComponent(pick)}`).join("&")}`, { project: visit.project });
    if (!visit.form.has("reason")) return visit.redirect(ask);
    const sent: string[] = [];
    const refused: string[] = [];
    const answer = await act(visit, ask, async () => {
      const reason = fieldOf(visit.form, "reason", REASON_MAX);
      for (const { project, projectId, runId } of await picked(visit, picks)) {
        try {
          const { command } = await commands.send(visit.hub, visit.by, { project, kind: "cancel", projectId, runId, payload: { reason } });
          sent.push(command.id);
        } catch (error) {
          if (!(error instanceof HubError) || error.status >= 500) throw error;
          refused.push(`${runId}: ${refusal(error).text}`);
        }
      }
      return sent.length === 0
        ? { tone: "bad", text: "Nothing was cancelled.", hint: refused.join(" ") || "None of the runs can be cancelled any more." }
        : { tone: "ok", text: `Cancelling ${sent.length} ${sent.length === 1 ? "run" : "runs"}.` };
    });
    if (sent.length === 0) return answer;
    const left = refused.length > 0 && ({ tone: "attn", text: `${refused.length} left out.`, hint: refused.join(" ").slice(0, 1000) } as const);
    return visit.redirect(sent.length <= VIEW_ROWS_MAX ? commandsLink(sent) : link("/runs", { project: visit.project }), left || undefined);
  },
});

export const screens: readonly Screen[] = [question, cancel];

// The store on the page of settings: how large it is, a backup or a check that runs, and what came of the last ones. Started by admins of all projects.
/** @jsxImportSource #jsx */
import type { UpkeepRow } from "../db/schema.ts";
import type { StoreWork } from "../hub/upkeep.ts";
import * as upkeep from "../hub/upkeep.ts";
import { HubError } from "../protocol/errors.ts";
import { UPKEEP_SILENT_MS } from "../protocol/limits.ts";
import { act } from "./acts.tsx";
import { sizeOf } from "./bytes.ts";
import type { Child } from "./jsx/jsx-runtime.ts";
import { link } from "./links.ts";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Act, Button } from "./ui/button.tsx";
import { Command, Empty, Notice, Progress } from "./ui/feedback.tsx";
import { Fields } from "./ui/form.tsx";
import { Facts, Row, Section, SectionNote } from "./ui/page.tsx";
import { Id, Quiet, Sub, shortId } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";
import { Table } from "./ui/table.tsx";
import { Ago, Lasting, took } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

const JOBS_SHOWN = 10;
const DAMAGE_SHOWN = 5;

export type StoreData = { work: StoreWork; sizes: ReturnType<StoreWork["sizes"]>; jobs: UpkeepRow[] };

export async function storeData({ hub }: Visit): Promise<StoreData> {
  return { work: hub.storeWork, sizes: hub.storeWork.sizes(), jobs: await hub.engine.read.upkeep.newest(JOBS_SHOWN) };
}

const STEPS: Record<string, string> = {
  begins: "beginning",
  copy: "copying",
  hash: "hashing the copy",
  pages: "checking every page",
  counters: "checking counters",
};
const stepOf = ({ step }: UpkeepRow): string => STEPS[step] ?? `comparing ${step.replaceAll("_", " ")} with their hashes`;
const inFigures = ({ step, done, total }: UpkeepRow): string | undefined => {
  if (total === 0) return undefined;
  return step === "copy" || step === "hash"
    ? `${sizeOf(done)} of ${sizeOf(total)}`
    : `${done.toLocaleString("en")} of ${total.toLocaleString("en")} rows`;
};
const NAMES = { backup: "Backup", verify: "Check" } as const;

const Running = ({ job, now }: { job: UpkeepRow; now: number }) => {
  const silent = now - job.updatedAt >= UPKEEP_SILENT_MS;
  return (
    <Progress
      title={`${NAMES[job.kind]}: ${stepOf(job)}`}
      note={silent ? "it has said nothing for a while" : "this page may be closed; the work goes on"}
      percent={job.total === 0 ? 0 : (100 * job.done) / job.total}
      tone={silent ? "attn" : "ok"}
      figures={[
        <>
          for <Lasting since={job.startedAt} now={now} />
        </>,
        inFigures(job),
        <Id value={job.id} />,
      ].filter((one) => one !== undefined)}
    />
  );
};

const rows = (count: number): string => `${count.toLocaleString("en")} ${count === 1 ? "row" : "rows"}`;
const placesOf = (count: number): string => `${count.toLocaleString("en")} ${count === 1 ? "place is" : "places are"} damaged`;

/** What came of one, in words. Files and places are for admins: they say where the store lies. */
function outcomeOf({ outcome }: UpkeepRow, admin: boolean): Child {
  if (outcome === null) return <Quiet>–</Quiet>;
  if ("failure" in outcome)
    return (
      <>
        {admin ? <Line text={outcome.failure} max={300} /> : "it failed"}
        {admin && outcome.hint && <Sub>{outcome.hint}</Sub>}
      </>
    );
  if ("backup" in outcome) {
    const { file, bytes, rows: compared, damaged } = outcome.backup;
    return (
      <>
        {sizeOf(bytes)}, {rows(compared)} compared with their hashes{damaged > 0 && `; ${placesOf(damaged)}, in the store already`}
        {admin && (
          <Sub>
            <Line text={file} max={300} />
          </Sub>
        )}
      </>
    );
  }
  const { rows: compared, damaged, damage, notChecked } = outcome.check;
  return (
    <>
      {rows(compared)} compared with their hashes{damaged > 0 && `; ${placesOf(damaged)}`}
      {admin &&
        damage.slice(0, DAMAGE_SHOWN).map(({ table, id, what }) => (
          <Sub>
            <Line text={`${table} ${id}: ${what}`} max={200} />
          </Sub>
        ))}
      {notChecked.length > 0 && <Sub>not checked: {notChecked.join("; ")}</Sub>}
    </>
  );
}

const isDamaged = ({ outcome }: UpkeepRow): boolean =>
  outcome !== null && (("backup" in outcome && outcome.backup.damaged > 0) || ("check" in outcome && outcome.check.damaged > 0));

const Ended = ({ job }: { job: UpkeepRow }) => {
  if (job.state === "failed") return <Status state="failed" />;
  if (isDamaged(job)) return <Status state="failed" word="damaged" />;
  return job.kind === "backup" ? <Status state="verified" word="verified" /> : <Status state="verified" word="sound" />;
};

const History = ({ jobs, visit }: { jobs: readonly UpkeepRow[]; visit: Visit }) => (
  <Table
    caption="Backups and checks"
    rows={jobs}
    id={({ id }) => `job-${id}`}
    columns={[
      {
        head: "What",
        kind: "main",
        slim: true,
        cell: (job) => (
          <>
            {NAMES[job.kind]}
            <Sub>{shortId(job.id)}</Sub>
          </>
        ),
      },
      { head: "Outcome", cell: (job) => <Ended job={job} /> },
      { head: "What came of it", phone: "line", cell: (job) => outcomeOf(job, visit.session.role === "admin") },
      { head: "Took", kind: "num", tight: true, cell: ({ startedAt, finishedAt }) => took(finishedAt! - startedAt) },
      { head: "Ended", kind: "tight", cell: ({ finishedAt }) => <Ago at={finishedAt!} now={visit.now} /> },
    ]}
  />
);

const Start = ({ work, visit }: { work: StoreWork; visit: Visit }) => (
  <Row>
    {work.backUp && (
      <Act action="/settings/store/backup" csrf={visit.csrf}>
        <Button small icon="down" type="submit">
          Back up now
        </Button>
      </Act>
    )}
    {work.verify && (
      <Act action="/settings/store/verify" csrf={visit.csrf}>
        <Button small icon="check" type="submit">
          Verify now
        </Button>
      </Act>
    )}
  </Row>
);

export const Store = ({ data: { work, sizes, jobs }, visit }: { data: StoreData; visit: Visit }) => {
  const running = jobs.find(({ state }) => state === "running");
  const ended = jobs.filter(({ state }) => state !== "running");
  const lastWhole = ended.find((job) => job.kind === "backup" && job.state === "done");
  const admin = visit.session.role === "admin";
  const { data, wal, free } = sizes;
  return (
    <>
      <Section title="Backup and verify" more={admin && !running && <Start work={work} visit={visit} />}>
        {running && (
          <div class="section__body">
            <Running job={running} now={visit.now} />
          </div>
        )}
        {work.backUp && !running && !lastWhole && <Notice tone="attn" title="No backup was made from here yet." />}
        {ended.length > 0 && <History jobs={ended} visit={visit} />}
        {ended.length === 0 && !running && (
          <Empty title="Nothing was backed up or verified from here.">
            {work.backUp
              ? "A backup is one moment of the store, taken while the hub runs, and verified before it gets its name."
              : "A check reads every row that carries a hash and says what is not as it was written."}
          </Empty>
        )}
        {admin && work.folder !== undefined && (
          <SectionNote>
            Backups go to <code>{work.folder}</code>, readable by the hub’s user only. None is deleted by itself.
          </SectionNote>
        )}
      </Section>
      <Section title={work.backUp ? "From a terminal" : "Backup of this store"} padded>
        <Fields tight>
          <p>{work.instead.says}</p>
          {work.instead.commands.map((text) => (
            <Command text={text} />
          ))}
        </Fields>
      </Section>
      {data !== undefined && (
        <Section title="On the disk">
          <Facts
            rows={[
              ["Data", sizeOf(data)],
              ["Write-ahead log", sizeOf(wal ?? 0)],
              ["Free", free === undefined ? "unknown" : sizeOf(free)],
              ["Last backup", lastWhole ? <Ago at={lastWhole.finishedAt!} now={visit.now} /> : "none from here"],
            ]}
          />
        </Section>
      )}
    </>
  );
};

const starts = (kind: upkeep.UpkeepKind, text: string): Screen =>
  screen({
    method: "POST",
    path: `/settings/store/${kind}`,
    role: "admin",
    run: (visit) =>
      act(visit, link("/settings", { project: visit.project, tab: "store" }), async () => {
        if (visit.session.project !== null) throw new HubError("role_forbidden", "the store holds all projects: an admin of all of them does this");
        await upkeep.start(visit.hub, visit.by, kind);
        return { tone: "run", text, hint: "This page shows how far it is; it may be closed." };
      }),
  });

export const screens: readonly Screen[] = [starts("backup", "The backup has begun."), starts("verify", "The check has begun.")];

// Stories of lists: table, inbox, blockers, search.
/** @jsxImportSource #jsx */
import { Button } from "../ui/button.tsx";
import { Track } from "../ui/charts.tsx";
import { Feed } from "../ui/feed.tsx";
import { Blockers, Inbox, InboxItem, Receipt, Shown, StatLine } from "../ui/inbox.tsx";
import { Facts } from "../ui/page.tsx";
import { Id, Ref, Sub } from "../ui/reference.tsx";
import { Facets, Found, Hits } from "../ui/search.tsx";
import { Status } from "../ui/status.tsx";
import { BulkBar, Card, CardList, Pager, Table } from "../ui/table.tsx";
import { Ago, Lasting, Left, NoTime } from "../ui/time.tsx";
import { Line, Untrusted } from "../ui/untrusted.tsx";
import { HOSTILE, type Story, seconds, Variant } from "./story.tsx";

type RunRow = { id: string; title: string; marks: ("ok" | "run" | "attn" | "bad" | "todo")[]; machine: string; since: number; cost: string };

const RUNS: readonly RunRow[] = [
  { id: "run_5b1ec07d", title: "Settle refunds in the ledger", marks: ["ok", "ok", "attn", "todo"], machine: "build-01", since: 5040, cost: "$2.18" },
  {
    id: "run_77aa02f4",
    title: "Upgrade OpenSSL bindings across services",
    marks: ["ok", "run", "todo"],
    machine: "studio",
    since: 412,
    cost: "$0.94",
  },
  { id: "run_a3f19b0c", title: HOSTILE, marks: ["bad", "todo"], machine: "ci-spot-eu-west-3-a7f2", since: 95, cost: "–" },
];

const table: Story = {
  id: "table",
  title: "Table",
  shows: ".table .bulk .pager: rows become cards on phones",
  wide: true,
  render: (now) => (
    <>
      <BulkBar id="story-bulk" action="#table" csrf="story" note="each gets its own outcome">
        <Button kind="primary" small type="submit">
          Approve
        </Button>
        <Button small kind="warn" type="submit">
          Cancel…
        </Button>
      </BulkBar>
      <Table
        caption="Sample runs"
        rows={RUNS}
        id={({ id }) => id}
        pick={{ bulk: "story-bulk", value: ({ id }) => id, label: ({ id }) => `run ${id}`, picked: ({ id }) => id === "run_77aa02f4" }}
        columns={[
          {
            head: "Run",
            kind: "main",
            sort: { href: "#table", order: "descending" },
            cell: ({ id, title }) => (
              <>
                <Ref href="#table">
                  <Line text={title} />
                </Ref>
                <Sub>
                  implement-and-review · <Id value={id} />
                </Sub>
              </>
            ),
          },
          {
            head: "Progress",
            phone: "line",
            cell: ({ marks }) => (
              <>
                <Track marks={marks} />
                <Sub>step {marks.length} of 6</Sub>
              </>
            ),
          },
          { head: "Machine", kind: "tight", cell: ({ machine }) => machine },
          {
            head: "Age",
            kind: "num",
            tight: true,
            sort: { href: "#table" },
            cell: ({ since }) => <Lasting since={now - seconds(since)} now={now} />,
          },
          { head: "Cost", kind: "num", cell: ({ cost }) => cost },
          {
            head: "",
            kind: "acts",
            cell: () => (
              <Button small icon="retry">
                Retry…
              </Button>
            ),
          },
        ]}
      />
      <Pager shown="3 of 1,000+" older="#table" />
    </>
  ),
};

const inbox: Story = {
  id: "inbox",
  title: "Inbox item",
  shows: ".item .shown .receipt",
  wide: true,
  render: (now) => (
    <Inbox>
      <InboxItem
        id="approval-open"
        tone="attn"
        icon="person"
        open
        title={
          <>
            Push 3 commits to <code>payments-api main</code>
          </>
        }
        why={[
          <>
            approval · <Ref href="#inbox">Settle refunds in the ledger</Ref>, step deliver
          </>,
          "build-01",
          <>
            expires in <Left until={now + seconds(2460)} now={now} />
          </>,
        ]}
        age={<Ago at={now - seconds(724)} now={now} />}
        pick={{ bulk: "story-bulk", value: "apr_1", label: "approval apr_1" }}
        more={
          <Shown
            says="The Runtime on build-01 will run exactly this"
            hash="sha256 9f2c 41ab 77d0 …"
            place="/srv/atlas/payments-api · argv, no shell"
            code={"git push --force-with-lease=refs/heads/main:8b1f04e origin 3d90c7a:refs/heads/main\u200b"}
            foot={
              <>
                <Button kind="primary" hotkey="a">
                  Approve push
                </Button>
                <Button hotkey="r" opens="story-confirm">
                  Reject…
                </Button>
              </>
            }
          >
            <StatLine icon="diff">{["14 files", <span class="plus">+412</span>, <span class="minus">−186</span>]}</StatLine>
            <StatLine>
              <Status state="passed" word="checks passed" why="gates unit, types and secrets scan; 2 of 2 reviewers" />
            </StatLine>
          </Shown>
        }
      />
      <InboxItem
        id="approval-picked"
        tone="attn"
        icon="cost"
        title="Allow $5 more for batch 7 of 9"
        why={["soft limit $4.00 of $5.00", "studio"]}
        age={<Ago at={now - seconds(540)} now={now} />}
        acts={<Button small>Allow $5</Button>}
        pick={{ bulk: "story-bulk", value: "apr_2", label: "approval apr_2", picked: true }}
      />
      <InboxItem
        id="approval-on-its-way"
        tone="run"
        icon="run"
        done
        title="Approved: open pull request 318"
        why={
          <Receipt
            steps={[
              { text: "sent 14:02:06", state: "done" },
              { text: "received by studio", state: "done" },
              { text: "being applied", state: "now" },
            ]}
          />
        }
        age={<Ago at={now - seconds(4)} now={now} />}
      />
      <InboxItem
        id="approval-refused"
        tone="bad"
        icon="bad"
        done
        title="Approved, but refused: deploy canary"
        why={
          <Receipt
            steps={[
              { text: "sent", state: "done" },
              { text: "received", state: "done" },
              { text: "refused: content hash is c3d8 01…, you approved 9e11 7f…", state: "bad" },
            ]}
          />
        }
        age={<Ago at={now - seconds(239)} now={now} />}
        acts={<Button small>See the new content</Button>}
      />
    </Inbox>
  ),
};

const blockers: Story = {
  id: "blockers",
  title: "Blockers and feed",
  shows: ".blockers .feed .kv .card",
  render: (now) => (
    <>
      <Blockers
        items={[
          {
            text: (
              <>
                Lease <Ref href="#blockers">branch:main</Ref> held by reviewer
              </>
            ),
            age: <Ago at={now - seconds(240)} now={now} />,
          },
          { text: "build-01: 3 of 3 slots busy", age: <Ago at={now - seconds(300)} now={now} /> },
          { text: "Gate unit passed", age: <NoTime>cleared</NoTime>, cleared: true },
        ]}
      />
      <Variant name="in a cell">
        <Blockers inline items={[{ text: "build-01: 3 of 3 slots busy" }, { text: "lease branch:docs held by docs-writer" }]} />
      </Variant>
      <Feed
        items={[
          { icon: "ok", tone: "ok", text: "Trim audit export completed", when: <Ago at={now - seconds(6)} now={now} /> },
          { icon: "lost", tone: "bad", text: "laptop-m3 lost contact", when: <Ago at={now - seconds(184)} now={now} /> },
          {
            icon: "cost",
            tone: "attn",
            text: (
              <>
                Soft limit on <code>run_91aa…</code>
              </>
            ),
            when: <Ago at={now - seconds(540)} now={now} />,
          },
        ]}
      />
      <Facts
        rows={[
          ["Run", <Id value="run_5b1ec07d2f9a4b1e8c3377a0e9d4c07d" whole />],
          ["Transitions", "7 of 20"],
          ["Redacted", "9 values"],
        ]}
      />
      <CardList ruled>
        <Card title="Root cause: settle() returned before the second insert" when={<Ago at={now - seconds(21_000)} now={now} />}>
          <Untrusted by="planner" note="learning, area implementation" text="Retry path re-used the idempotency key of the first entry." />
        </Card>
      </CardList>
    </>
  ),
};

const search: Story = {
  id: "search",
  padded: true,
  title: "Search",
  shows: ".hits .facets",
  wide: true,
  render: (now) => (
    <div class="cols">
      <Hits
        of={[
          {
            id: "hit-1",
            icon: "runs",
            title: <Found text="Settle refunds in the ledger" ranges={[[7, 13]]} />,
            href: "#search",
            snippet: "run, waiting for approval",
            kind: "run",
            when: <Ago at={now - seconds(724)} now={now} plain />,
          },
          {
            id: "hit-2",
            icon: "messages",
            title: <Found text={"<b>bold?</b> refund <img src=x onerror=alert(1)>\u200b"} ranges={[[13, 19]]} />,
            href: "#search",
            snippet: <Line text={HOSTILE} />,
            kind: "message",
          },
        ]}
      />
      <Facets
        groups={[
          {
            title: "Kind",
            facets: [
              { text: "Everything", href: "#search", count: 87, current: true },
              { text: "Messages", href: "#search", count: 41 },
            ],
          },
        ]}
      />
    </div>
  ),
};

export const LIST_STORIES: readonly Story[] = [table, inbox, blockers, search];

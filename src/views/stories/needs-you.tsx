// The inbox of the sample overview: what waits on a person, most urgent first.
/** @jsxImportSource #jsx */
import { Button } from "../ui/button.tsx";
import { DiffStat, Inbox, InboxItem, InboxRest, Shown, StatLine } from "../ui/inbox.tsx";
import { Section } from "../ui/page.tsx";
import { Chip, Link, Ref } from "../ui/reference.tsx";
import { Status } from "../ui/status.tsx";
import { BulkBar } from "../ui/table.tsx";
import { Ago, Left } from "../ui/time.tsx";
import { LONG_NAME, seconds } from "./story.tsx";

const ShownPush = () => (
  <Shown
    says="The Runtime on build-01 will run exactly this"
    hash="sha256 9f2c 41ab 77d0 …"
    place="/srv/atlas/payments-api · argv, no shell"
    code="git push --force-with-lease=refs/heads/main:8b1f04e origin 3d90c7a:refs/heads/main"
    foot={
      <>
        <Button kind="primary" hotkey="a">
          Approve push
        </Button>
        <Button hotkey="r" opens="story-confirm">
          Reject…
        </Button>
        <Button kind="quiet" icon="diff" href="#diff">
          See the diff
        </Button>
      </>
    }
  >
    <StatLine icon="diff">
      {[
        "14 files",
        <DiffStat added={412} removed={186} />,
        <>
          3 commits on <Chip icon="branch">kxm/run_5b1e/implement</Chip>
        </>,
        <>
          lease <Ref href="/leases">branch:main</Ref> held, token 41
        </>,
      ]}
    </StatLine>
    <StatLine>
      <Status state="passed" word="checks passed" why="gates unit, types and secrets scan; 2 of 2 reviewers" />
    </StatLine>
  </Shown>
);

const Push = ({ now }: { now: number }) => (
  <InboxItem
    id="needs-push"
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
        approval · <Ref href="/runs/1">Settle refunds in the ledger</Ref>, step deliver
      </>,
      "build-01",
      <>
        expires in <Left until={now + seconds(2460)} now={now} />
      </>,
    ]}
    age={<Ago at={now - seconds(724)} now={now} />}
    pick={{ bulk: "needs-you-bulk", value: "apr_77c0", label: "approval apr_77c0" }}
    more={<ShownPush />}
  />
);

const Money = ({ now }: { now: number }) => (
  <InboxItem
    id="needs-money"
    tone="attn"
    icon="cost"
    title="Soft limit reached: $4.00 of $5.00"
    why={[
      <>
        run <Ref href="/runs/3">Migrate identity tables, batch 7 of 9</Ref> paused itself
      </>,
      "studio",
    ]}
    age={<Ago at={now - seconds(540)} now={now} />}
    pick={{ bulk: "needs-you-bulk", value: "apr_91aa", label: "approval apr_91aa" }}
    acts={
      <>
        <Button small>Allow $5</Button>
        <Button small kind="warn">
          Stop
        </Button>
      </>
    }
  />
);

type Simple = {
  id: string;
  tone: "attn" | "bad";
  icon: "uncertain" | "attn" | "expired";
  title: string;
  why: string[];
  ago: number;
  act: string;
  href: string;
};
const OTHERS: readonly Simple[] = [
  {
    id: "needs-keys",
    tone: "attn",
    icon: "uncertain",
    title: "Outcome unknown: rotate signing keys",
    why: ["run_e04c…8812, step apply", "build-01 lost power after dispatch; 1 of 2 effects has a receipt"],
    ago: 3120,
    act: "Resolve…",
    href: "/runs/2",
  },
  {
    id: "needs-conflict",
    tone: "bad",
    icon: "attn",
    title: "Same event, different bytes: run_5b1e…c07d, 118",
    why: ["laptop-m3 sent another payload for a stored event", "both are kept"],
    ago: 1290,
    act: "Compare",
    href: "/sync",
  },
  {
    id: "needs-resend",
    tone: "bad",
    icon: "expired",
    title: "2 messages expired without a reply",
    why: [`to ${LONG_NAME}`, "recipient lost contact 3 min ago"],
    ago: 200,
    act: "Resend…",
    href: "/messages",
  },
];

const Other = ({ item: { ago, act, href, ...item }, now }: { item: Simple; now: number }) => (
  <InboxItem
    {...item}
    age={<Ago at={now - seconds(ago)} now={now} />}
    acts={
      <Button small href={href}>
        {act}
      </Button>
    }
  />
);

/** Items as an overview shows them: one opened, the rest on a line. */
export const NeedsYou = ({ now }: { now: number }) => (
  <Section title="Needs you" count="6 of 8" more={<Link href="/approvals">Open the inbox</Link>}>
    <BulkBar id="needs-you-bulk" action="/approvals/decisions" csrf="story" note="each gets its own outcome">
      <Button kind="primary" small type="submit">
        Approve
      </Button>
      <Button small opens="story-confirm">
        Reject…
      </Button>
    </BulkBar>
    <Inbox>
      <Push now={now} />
      <Money now={now} />
      {OTHERS.map((item) => (
        <Other item={item} now={now} />
      ))}
      <InboxRest>
        3 more: <Ref href="/leases">lease db:migrations runs out while 3 wait</Ref>, <Ref href="/approvals">run a migration on staging</Ref>,{" "}
        <Ref href="/approvals">plan with 11 steps</Ref>
      </InboxRest>
    </Inbox>
  </Section>
);

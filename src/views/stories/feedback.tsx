// Stories of what KXM says back, and of text that is not ours.
/** @jsxImportSource #jsx */
import { Act, Button } from "../ui/button.tsx";
import { Command, Empty, FirstSteps, Flash, FlashBeside, Notice, Progress, Skeleton } from "../ui/feedback.tsx";
import { Live } from "../ui/live.tsx";
import { SectionNote } from "../ui/page.tsx";
import { Ago } from "../ui/time.tsx";
import { Untrusted } from "../ui/untrusted.tsx";
import { HOSTILE, LONG_NAME, type Story, seconds, Variant } from "./story.tsx";

const untrusted: Story = {
  id: "untrusted",
  padded: true,
  title: "Untrusted text",
  shows: ".untrusted .ctl",
  render: () => (
    <>
      <Untrusted
        by="ci-bot"
        text={HOSTILE}
        note="message body"
        right={
          <Button kind="quiet" small icon="file">
            Open transcript
          </Button>
        }
      />
      <Variant name="long, bounded">
        <Untrusted by={LONG_NAME} text={"All work and no play. ".repeat(80)} max={700} />
      </Variant>
    </>
  ),
};

const notices: Story = {
  id: "notices",
  title: "Notice and flash",
  shows: ".notice .flash",
  render: () => (
    <>
      <Variant name="page states">
        <div>
          <Notice tone="mute" title="You look at data of 14:01:12." acts={<Button small>Resume</Button>}>
            Updates are paused. 14 changes wait.
          </Notice>
          <Notice tone="attn" title="Reconnecting to the hub.">
            Shown data is from 14:01:58. Try 3 in 4 s.
          </Notice>
          <Notice tone="bad" title="The hub does not answer." acts={<Button small>Try now</Button>}>
            It may be stopped. Machines go on working and will report later. Start it again with kxm hub.
          </Notice>
          <Notice tone="run" title="A backup is running.">
            Verify takes about 9 s more.
          </Notice>
          <Notice tone="ok" title="Backup verified by a full restore." />
        </div>
      </Variant>
      <Variant name="results of acts">
        <div class="cards">
          <Flash tone="ok" text="Sent to reviewer and security-review" hint="stored as 98 and 41" />
          <Flash
            tone="bad"
            text="Not released: token 16 is stale"
            hint="db:migrations is held by migration-runner with token 17 since 13:26. Read the lease again."
          />
          <Flash tone="run" text="3 of 12 cancelled, 9 to go" hint="Open the progress page" />
        </div>
      </Variant>
    </>
  ),
};

const empty: Story = {
  id: "empty",
  title: "Empty, loading, progress",
  shows: ".empty .cmd .steps .skeleton .progress",
  render: (now) => (
    <>
      <Variant name="nothing yet">
        <Empty title="No run has used this machine yet" acts={<Command text="kxm init && kxm run hello" />}>
          The built-in echo agent needs no model and finishes at once.
        </Empty>
      </Variant>
      <Variant name="nothing matches">
        <Empty title="Nothing matches status:uncertain since:1h" acts={<Button small>Clear filters</Button>}>
          That is good news. The last uncertain run was resolved <Ago at={now - seconds(90_000)} now={now} plain />.
        </Empty>
      </Variant>
      <Variant name="first steps">
        <FirstSteps
          steps={[
            { title: "Hub", children: <p>Listening on 127.0.0.1:4319. Store written and fsynced.</p>, done: true },
            { title: "Connect the first agent", children: <Command text="kxm connect --project scratch" /> },
          ]}
        />
      </Variant>
      <Variant name="loading">
        <Skeleton label="Loading" />
      </Variant>
      <Variant name="survives a reload">
        <Progress title="Cancelling 12 runs" note="this page may be closed" percent={25} figures={["3 done", "0 failed", "9 to go"]} />
      </Variant>
    </>
  ),
};

const acts: Story = {
  id: "acts",
  title: "Act, live region, result",
  shows: ".act",
  render: (now) => (
    <>
      <Variant name="posts, and is replaced by the answer">
        <Act action="/stories" csrf="story" id="story-act">
          <Button type="submit" small>
            Acknowledge
          </Button>
        </Act>
      </Variant>
      <Variant name="keeps itself true">
        <Live id="story-live" topic="stories" href="/ui/stories">
          as of <Ago at={now} now={now} plain />
        </Live>
      </Variant>
      <Variant name="comes beside a fragment">
        <FlashBeside tone="ok" text="Acknowledged." />
      </Variant>
      <SectionNote>A note under the rows of a section.</SectionNote>
    </>
  ),
};

export const FEEDBACK_STORIES: readonly Story[] = [untrusted, notices, empty, acts];

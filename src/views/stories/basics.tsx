// Stories of the smallest parts: status, names, times, live state, buttons, icons.
/** @jsxImportSource #jsx */
import { Button, ButtonGroup, Keys } from "../ui/button.tsx";
import { ICON_NAMES, Icon, Mark, Wordmark } from "../ui/icon.tsx";
import { LiveIndicator } from "../ui/live.tsx";
import { Row } from "../ui/page.tsx";
import { Chip, Id, Link, Quiet, Ref, Who } from "../ui/reference.tsx";
import { Badge, STATES, type State, Status } from "../ui/status.tsx";
import { Ago, Clock, Day, Lasting, Left } from "../ui/time.tsx";
import { Name } from "../ui/untrusted.tsx";
import { LONG_NAME, type Story, seconds, Variant } from "./story.tsx";

const status: Story = {
  id: "status",
  title: "Status",
  shows: ".status: shape + word + reason + age",
  render: (now) => (
    <>
      <Variant name="plain, stacked, stale">
        <Row>
          <Status
            state="online"
            why={
              <>
                heartbeat <Ago at={now - seconds(4)} now={now} plain />
              </>
            }
            bound={seconds(45)}
          />
        </Row>
        <Row>
          <Status
            state="idle"
            why={
              <>
                heartbeat <Ago at={now - seconds(52)} now={now} plain />, late
              </>
            }
            stale
          />
        </Row>
        <Row>
          <Status
            state="lost contact"
            why={
              <>
                last seen <Ago at={now - seconds(184)} now={now} plain />
              </>
            }
          />
        </Row>
        <Row>
          <Status state="unknown" why="never reported" />
        </Row>
        <Row>
          <Status state="needs you" why="approval pending since 13:50" />
        </Row>
        <Row>
          <Status state="uncertain" why="1 of 2 effects has a receipt" stack />
        </Row>
      </Variant>
      <Variant name="every state, as badges">
        <div class="chips">
          {(Object.keys(STATES) as State[]).map((state) => (
            <Badge state={state} />
          ))}
          <Badge state="running" stale />
        </div>
      </Variant>
    </>
  ),
};

const references: Story = {
  id: "references",
  padded: true,
  title: "Names",
  shows: ".chip .id .who .glyph",
  render: () => (
    <>
      <div class="chips">
        <Chip icon="branch">kxm/run_5b1e/implement</Chip>
        <Chip icon="hash">sha256 9f2c…</Chip>
        <Chip icon="leases" href="#references">
          branch:main
        </Chip>
        <Id value="run_5b1ec07d2f9a4b1e8c3377a0e9d4c07d" />
        <Link href="#references">All runs</Link>
        <Ref href="#references">Settle refunds in the ledger</Ref>
      </div>
      <Variant name="programs">
        {["claude", "codex", "gemini", "opencode", "pi", "command", "operator", "webhook", "something-new"].map((harness) => (
          <Who name={harness} harness={harness} href="#references" />
        ))}
      </Variant>
      <Variant name="a long name, another alphabet, an override">
        <Who name={LONG_NAME} harness="gemini" href="#references" />
        <Who name={"\u0430dmin"} harness="codex" href="#references" />
        <Who name={"reviewer\u202egnp.exe\u200b"} harness="pi" />
        <Name text={"<b>not bold</b>\nsecond line"} />
      </Variant>
    </>
  ),
};

const times: Story = {
  id: "times",
  padded: true,
  title: "Times",
  shows: "time: from the hub's clock",
  render: (now) => (
    <Row>
      <Ago at={now - seconds(4)} now={now} />
      <Lasting since={now - seconds(5040)} now={now} />
      <Left until={now + seconds(186)} now={now} />
      <Left until={now - 1} now={now} />
      <Clock at={now} ms />
      <Day at={now} />
    </Row>
  ),
};

const live: Story = {
  id: "live",
  title: "Live",
  shows: ".live",
  render: () => (
    <Variant name="not live, connecting, on, reconnecting, paused, off, signed out">
      <div hx-ignore>
        {(
          [
            ["still", ""],
            ["wait", ""],
            ["on", "0.3 s behind"],
            ["retry", "try 3, in 4 s"],
            ["paused", "14 waiting"],
            ["off", "since 14:01"],
            ["gone", "sign in again"],
          ] as const
        ).map(([state, detail]) => (
          <LiveIndicator state={state} detail={detail} sample />
        ))}
      </div>
    </Variant>
  ),
};

const buttons: Story = {
  id: "buttons",
  title: "Buttons",
  shows: ".btn .group .kbd",
  render: () => (
    <>
      <Variant name="primary, default, quiet, warn, danger, disabled, busy">
        <Row>
          <Button kind="primary" hotkey="y">
            Approve
          </Button>
          <Button hotkey="n">Reject…</Button>
          <Button kind="quiet" icon="diff">
            See the diff
          </Button>
          <Button kind="warn">Cancel…</Button>
          <Button kind="danger" opens="story-confirm">
            Cancel run
          </Button>
          <Button disabled>Older</Button>
          <Button busy icon="sync">
            Sending
          </Button>
        </Row>
      </Variant>
      <Variant name="small, icon, copy, group, keys">
        <Row>
          <Button small icon="retry">
            Replay
          </Button>
          <Button icon="more" label="More" />
          <Button icon="terminal" copies="kxm runs show run_5b1e">
            Copy as command
          </Button>
          <ButtonGroup label="Range">
            <Button small>24 h</Button>
            <Button small pressed>
              7 d
            </Button>
            <Button small>30 d</Button>
          </ButtonGroup>
          <Keys of={["Ctrl", "K"]} />
        </Row>
      </Variant>
    </>
  ),
};

const icons: Story = {
  id: "icons",
  title: "Icons and logo",
  shows: "16 px grid, 1.5 px stroke",
  wide: true,
  render: () => (
    <div class="specimen">
      <Row>
        {ICON_NAMES.map((name) => (
          <Chip icon={name}>{name}</Chip>
        ))}
      </Row>
      <Row>
        <Wordmark />
        <Mark />
        <Icon name="ok" size="l" label="A labelled icon" />
        <Quiet>in the colour of the text around it</Quiet>
      </Row>
    </div>
  ),
};

export const BASIC_STORIES: readonly Story[] = [status, references, times, live, buttons, icons];

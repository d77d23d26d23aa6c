// Stories of evidence: delivery, conditions, steps, timeline, diff.
/** @jsxImportSource #jsx */
import { Delivery, DeliveryDots } from "../ui/delivery.tsx";
import { CodeDiff, PayloadDiff } from "../ui/diff.tsx";
import { EventList } from "../ui/feed.tsx";
import { Skeleton } from "../ui/feedback.tsx";
import { StepGraph } from "../ui/graph.tsx";
import { diffLines } from "../ui/line-diff.ts";
import { ConditionMatrix, Quorum } from "../ui/matrix.tsx";
import { Row } from "../ui/page.tsx";
import { Who } from "../ui/reference.tsx";
import { Badge } from "../ui/status.tsx";
import { Post, Thread } from "../ui/thread.tsx";
import { Ago, Clock, Lasting, NoTime } from "../ui/time.tsx";
import { RunTimeline } from "../ui/timeline.tsx";
import { Line, Untrusted } from "../ui/untrusted.tsx";
import { HOSTILE, LONG_NAME, type Story, seconds, Variant } from "./story.tsx";

const STORED = `{
  "schema": "kxm.sync-event.v1",
  "projectId": "atlas-payments",
  "runId": "run_5b1e",
  "homeRuntimeId": "rtm_9c41",
  "sequence": 118,
  "configRevision": "sha256:1",
  "toolPolicyRevision": "sha256:2",
  "eventType": "gate.observed",
  "occurredAt": "2026-11-30T13:40:10.004Z",
  "payload": {
    "gate": "unit",
    "exitCode": 1,
    "summary": "2 of 1,204 tests failed: settle.posts_two_entries, fx.rounds_half_even"
  },
  "a": 1,
  "b": 2,
  "c": 3,
  "d": 4,
  "e": 5
}`;

const REFUSED = STORED.replace("10.004Z", "10.881Z")
  .replace('"exitCode": 1', '"exitCode": 0')
  .replace(/"summary": ".*"/, '"summary": "all tests passed\u202e<img src=x>"')
  .replace('  "e": 5\n', "");

const delivery: Story = {
  id: "delivery",
  title: "Delivery",
  shows: ".delivery .minidelivery .thread .post",
  wide: true,
  render: (now) => (
    <>
      <Delivery
        steps={[
          { name: "Stored", state: "done", witness: "hub, fsynced", when: <Clock at={now - seconds(84)} ms />, leg: "0.3 s" },
          { name: "Pushed", state: "done", witness: "SSE to rtm_9c41…77b0", when: <Clock at={now - seconds(83)} ms />, leg: "0.2 s" },
          {
            name: "Delivered",
            state: "done",
            witness: "acked by worker reviewer",
            when: <Clock at={now - seconds(83)} ms />,
            leg: "42 s, slow",
            slow: true,
          },
          {
            name: "Turn started",
            state: "now",
            witness: "claude on build-01, session resumed",
            when: <Clock at={now - seconds(41)} ms />,
            leg: "so far 41 s",
          },
          { name: "Replied", state: "todo", witness: "median of this agent: 48 s", when: <NoTime>not yet</NoTime> },
        ]}
      />
      <Row>
        <DeliveryDots dots={["ok", "now", "", "", ""]} label="stored" />
        <DeliveryDots dots={["ok", "ok", "ok", "ok", "now"]} label="turn started, no reply yet" />
        <DeliveryDots dots={["ok", "ok", "ok", "ok", "ok"]} label="replied" />
        <DeliveryDots dots={["ok", "ok", "ok", "bad", ""]} label="dead letter" />
      </Row>
      <Thread>
        <Post id="post-1" who={<Who name="planner" harness="claude" />} to="to implementer · 212" when={<Ago at={now - seconds(5031)} now={now} />}>
          <Untrusted by="planner" note="message body" text={"Refunds must post two entries. Start from ledger/settle.ts.\nKeep the public API."} />
        </Post>
        <Post who={<Who name="reviewer" harness="claude" />} to="is answering" when={<NoTime>turn of 41 s</NoTime>}>
          <Skeleton label="Waiting for the reply" lines={2} />
        </Post>
      </Thread>
    </>
  ),
};

const matrix: Story = {
  id: "matrix",
  title: "Condition matrix",
  shows: ".matrix .quorum .by",
  wide: true,
  render: (now) => (
    <ConditionMatrix
      conditions={[
        {
          id: "condition-report",
          name: <code>test report</code>,
          kind: "evidence, one value",
          state: "met",
          has: "report-1187.json, 1,204 passed",
          by: [{ state: "ok", icon: "ok", name: "planner", note: "checkpoint, attempt 1" }],
          asOf: <Ago at={now - seconds(5400)} now={now} />,
        },
        {
          id: "condition-review",
          name: <code>independent review</code>,
          kind: "peer reply, 2 of 3, distinct agents",
          state: "missing",
          why: "1 more reply",
          has: <Quorum marks={["met", "asked", "open"]} text="1 of 2" />,
          by: [
            { state: "ok", icon: "ok", name: "reviewer", note: "replied" },
            {
              state: "run",
              icon: "run",
              name: "security-review",
              note: (
                <>
                  turn started <Ago at={now - seconds(41)} now={now} plain />
                </>
              ),
            },
            { state: "wait", icon: "lost", name: LONG_NAME, note: "eligible, lost contact 3 min ago" },
          ],
          asOf: <Ago at={now - seconds(41)} now={now} />,
        },
      ]}
    />
  ),
};

const graph: Story = {
  id: "graph",
  title: "Step graph",
  shows: ".graph: across, and downwards where it is narrow",
  wide: true,
  render: () => (
    <StepGraph
      label="Step graph of implement-and-review"
      nodes={[
        { id: "plan", name: "plan", note: "agent · 2 min", kind: "agent", state: "ok" },
        { id: "implement", name: "implement", note: "attempt 2 of 3", kind: "agent", state: "ok" },
        { id: "unit", name: "unit", note: "gate · attempt 2", kind: "gate", state: "ok" },
        { id: "secrets", name: "secrets scan of everything", note: "gate · failed", kind: "gate", state: "bad" },
        { id: "review", name: "review", note: "panel · 1 of 2", kind: "panel", state: "run" },
        { id: "deliver", name: "deliver", note: "approval · 12 min", kind: "approval", state: "attn" },
        { id: "done", name: "completed", note: "terminal", kind: "end", state: "todo" },
      ]}
      edges={[
        { from: "plan", to: "implement", done: true },
        { from: "implement", to: "unit", done: true },
        { from: "implement", to: "secrets", done: true },
        { from: "unit", to: "review", done: true },
        { from: "secrets", to: "review" },
        { from: "review", to: "deliver" },
        { from: "deliver", to: "done" },
        { from: "deliver", to: "implement", label: "rejected, at most 2" },
      ]}
    />
  ),
};

const timeline: Story = {
  id: "timeline",
  title: "Timeline and events",
  shows: ".gantt .events",
  wide: true,
  render: (now) => {
    const ago = (minutes: number) => now - seconds(60 * minutes);
    return (
      <>
        <RunTimeline
          now={now}
          live
          rows={[
            {
              id: "bar-plan",
              name: "plan",
              state: "passed",
              took: "2 min",
              bars: [{ from: ago(84), to: ago(82), tone: "ok", title: "attempt 1, 2 min 4 s, passed" }],
            },
            {
              id: "bar-implement",
              name: "implement",
              state: "passed",
              took: "14 min",
              bars: [
                { from: ago(82), to: ago(77), tone: "bad", title: "attempt 1, 5 min, outcome_unknown" },
                { from: ago(77), to: ago(68), tone: "ok", title: "attempt 2, 9 min, passed" },
              ],
            },
            {
              id: "bar-unit",
              name: "unit",
              state: "passed",
              took: "71 s",
              bars: [{ from: ago(24), to: ago(22.8), tone: "ok", title: "attempt 2, 71 s, passed" }],
            },
            {
              id: "bar-review",
              name: "review",
              state: "passed",
              took: "4 min",
              bars: [{ from: ago(19), to: ago(15), tone: "ok", title: "reviewer, 4 min" }],
            },
            {
              id: "bar-deliver",
              name: "deliver",
              state: "waiting",
              took: <Lasting since={ago(12)} now={now} />,
              bars: [
                { from: ago(14), to: ago(12), tone: "queue", title: "waits for the lease, 2 min" },
                { from: ago(12), tone: "attn", title: "waits for a person, 12 min" },
              ],
            },
          ]}
        />
        <EventList
          rows={[
            { seq: 127, at: ago(12), type: "approval.requested", text: "hash 9f2c 41ab…, expires 14:43" },
            { gap: "5 events folded · 119–126" },
            {
              seq: 118,
              at: ago(21),
              type: "gate.observed",
              text: (
                <>
                  two payloads differ <Badge state="conflict" />
                </>
              ),
            },
            { gap: "44 min without an event · waiting for lease branch:main" },
            { seq: 116, at: ago(66), type: "assignment.result", text: <Line text={HOSTILE} /> },
          ]}
        />
      </>
    );
  },
};

const diff: Story = {
  id: "diff",
  padded: true,
  title: "Diff",
  shows: ".diff .patch",
  wide: true,
  render: () => (
    <>
      <PayloadDiff
        heads={[
          <>
            <strong>Stored</strong> · rtm_9c41…77b0 build-01
          </>,
          <>
            <strong>Refused</strong> · rtm_d7a0…0c52 laptop-m3
          </>,
        ]}
        rows={diffLines(STORED, REFUSED)}
      />
      <Variant name="code">
        <CodeDiff
          label="Diff of kxm/run_5b1e/implement"
          patch={
            "diff --git a/ledger/settle.ts b/ledger/settle.ts\n@@ -12,4 +12,5 @@ export function settle\n   const key = keyOf(refund);\n-  insert(entry);\n+  insert(debit(entry));\n+  insert(credit(entry)); // \u202e<script>\n \n"
          }
        />
      </Variant>
    </>
  ),
};

export const EVIDENCE_STORIES: readonly Story[] = [delivery, matrix, graph, timeline, diff];

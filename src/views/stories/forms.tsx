// Stories of what is typed and chosen: fields, filter, palette, dialogs.
/** @jsxImportSource #jsx */
import { ConfirmDialog, KeySheet } from "../ui/dialog.tsx";
import { FilterBar, Suggestions, Tabs } from "../ui/filter.tsx";
import { Check, Choices, Fields, SelectField, TextAreaField, TextField } from "../ui/form.tsx";
import { Row } from "../ui/page.tsx";
import { Palette } from "../ui/palette.tsx";
import { Name } from "../ui/untrusted.tsx";
import { HOSTILE, LONG_NAME, type Story, Variant } from "./story.tsx";

const fields: Story = {
  id: "fields",
  padded: true,
  title: "Form",
  shows: ".field .input .check .switch",
  render: () => (
    <Fields>
      <TextField id="story-why" name="why" label="Reason" placeholder="What must change?" hint="Reaches the agent and the audit log." />
      <TextField
        id="story-budget"
        name="budget"
        label="Budget a day"
        value="forty"
        error="Give a number of dollars, for example 40."
        inputmode="decimal"
      />
      <SelectField
        id="story-mode"
        name="mode"
        label="Delivery"
        options={[
          { value: "followUp", text: "followUp: after the current turn" },
          { value: "steer", text: "steer: into the current turn" },
        ]}
      />
      <TextField id="story-locked" name="locked" label="Locked" value="set by KXM_PROJECT" disabled />
      <TextAreaField id="story-body" name="body" label="Message" value={HOSTILE} />
      <Choices legend="Samples">
        <Row>
          <Check name="a" label="steer" checked />
          <Check name="b" label="allow offline" />
          <Check name="c" label="selected" kind="radio" value="1" checked />
          <Check name="c" label="all that match" kind="radio" value="2" />
          <Check name="d" label="on" kind="switch" checked />
          <Check name="e" label="off" kind="switch" />
          <Check name="f" label="Mark completed" note="You have evidence that it happened" />
        </Row>
      </Choices>
    </Fields>
  ),
};

const filter: Story = {
  id: "filter",
  padded: true,
  title: "Filter",
  shows: ".filter .qchip .suggest .tabs",
  render: () => (
    <>
      <FilterBar
        id="story-filter"
        action="#filter"
        placeholder="more…"
        qualifiers={[
          { key: "status", value: "running", without: "#filter" },
          { key: "from", value: LONG_NAME, without: "#filter" },
        ]}
      />
      <Variant name="completions">
        <div class="suggest" role="listbox" aria-label="Completions">
          <Suggestions
            of={[
              { inserts: "status:", shows: "status:", note: "of runs and messages" },
              { inserts: "status:uncertain", shows: "status:uncertain", count: 1 },
              { inserts: "since:", shows: "since:", note: "1h, 24h, 7d or a date" },
            ]}
          />
        </div>
      </Variant>
      <Tabs
        label="Sample"
        tabs={[
          { text: "Open", href: "#filter", count: 23, current: true },
          { text: "Answered", href: "#filter", count: 4000 },
          { text: "Dead letters", href: "#filter", count: 0 },
        ]}
      />
    </>
  ),
};

const palette: Story = {
  id: "palette-and-keys",
  title: "Palette and keys",
  shows: ".palette .keysheet, here without a dialog",
  wide: true,
  render: () => (
    <div class="cols cols--even specimen">
      <div class="dialog dialog--still palette">
        <Palette
          id="story-palette"
          groups={[
            {
              title: "Needs you",
              items: [{ icon: "approvals", text: "Approve “push main” of run_5b1e…c07d", hint: "waits 12 min", href: "#palette-and-keys" }],
            },
            { title: "Go to", items: [{ icon: "agents", text: <Name text={LONG_NAME} />, hint: "agent", href: "#palette-and-keys" }] },
            { title: "Do", items: [{ icon: "send", text: "Message an agent…", hint: "c", href: "#palette-and-keys" }] },
          ]}
        />
      </div>
      <div class="dialog dialog--still">
        <div class="dialog__body">
          <KeySheet
            places={[
              ["Overview", "o"],
              ["Runs", "r"],
            ]}
          />
        </div>
      </div>
    </div>
  ),
};

/** Dialogs that stories open. */
export const storyDialogs = () => (
  <ConfirmDialog id="story-confirm" title="Cancel run run_5b1e…c07d?" action="#buttons" csrf="story" confirm="Cancel run" cancel="Keep running">
    <p>It stops at the next safe point.</p>
    <TextAreaField id="story-reason" name="reason" label="Reason" placeholder="Reaches the agent and the audit log" />
  </ConfirmDialog>
);

export const FORM_STORIES: readonly Story[] = [fields, filter, palette];

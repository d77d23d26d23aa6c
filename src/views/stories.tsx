// The development page that shows every component in its states from plain data. The visual tests use it; no hub is needed.
/** @jsxImportSource #jsx */
import type { Html } from "./jsx/jsx-runtime.ts";
import { BASIC_STORIES } from "./stories/basics.tsx";
import { EVIDENCE_STORIES } from "./stories/evidence.tsx";
import { FEEDBACK_STORIES } from "./stories/feedback.tsx";
import { FIGURE_STORIES } from "./stories/figures.tsx";
import { FORM_STORIES, storyDialogs } from "./stories/forms.tsx";
import { LIST_STORIES } from "./stories/lists.tsx";
import { SampleOverview } from "./stories/overview.tsx";
import type { Story } from "./stories/story.tsx";
import { Button } from "./ui/button.tsx";
import { Flash } from "./ui/feedback.tsx";
import { Layout, type LayoutProps, SoloLayout } from "./ui/layout.tsx";
import { Columns, PageHead, Section } from "./ui/page.tsx";
import { SignIn } from "./ui/signin.tsx";

export type { Story } from "./stories/story.tsx";

/** Every story, in the order of the page. Ids are unique. */
export const STORIES: readonly Story[] = [
  ...BASIC_STORIES,
  ...FORM_STORIES,
  ...FEEDBACK_STORIES,
  ...FIGURE_STORIES,
  ...LIST_STORIES,
  ...EVIDENCE_STORIES,
];

const StorySection = ({ story, now }: { story: Story; now: number }) => (
  <Section title={story.title} note={story.shows} id={story.id} padded={story.padded}>
    {story.render(now)}
  </Section>
);

type StoriesProps = Pick<LayoutProps, "now" | "theme" | "events" | "navHref" | "palette"> & {
  /** Only the story with this id, or `overview` or `signin` for a sample page. */
  only?: string;
};

const SAMPLE = {
  project: { id: "atlas-payments", name: "atlas-payments", sub: "4 machines · 44 agents" },
  projects: [
    { name: "atlas-payments", href: "#status", count: 44, current: true },
    { name: "customer-identity-platform", href: "#status", count: 11 },
    { name: "All projects", href: "#status", count: 3 },
  ],
  counts: {
    approvals: { count: 5, tone: "attn" },
    runs: { count: 12 },
    messages: { count: 23 },
    leases: { count: 9 },
    agents: { count: 44 },
    runtimes: { count: 4 },
    sync: { count: 1, tone: "bad" },
  },
  saved: {
    views: [
      { name: "Broken this week", icon: "runs", href: "#status", count: "3" },
      { name: "Waits for release-captain", icon: "messages", href: "#status", count: "99+", current: true },
    ],
    save: "#status",
    manage: "#status",
  },
  csrf: "story",
  session: { role: "operator", signOut: "/session/end" },
  version: "0.1.0",
} satisfies Partial<LayoutProps>;

/** The page `/stories`. It is served in development only and reads nothing. */
export const StoriesPage = ({ only, ...props }: StoriesProps): Html => {
  const { now } = props;
  if (only === "overview")
    return (
      <Layout title="Overview" place="overview" dialogs={storyDialogs()} {...SAMPLE} {...props}>
        <SampleOverview now={now} />
      </Layout>
    );
  if (only === "signin")
    return (
      <SoloLayout title="Sign in" now={now} theme={props.theme}>
        <SignIn action="/signin" hub="127.0.0.1:7331" back="/runs" idleHours={12} notice={SIGNIN_NOTICE} />
      </SoloLayout>
    );
  const stories = only ? STORIES.filter(({ id }) => id === only) : STORIES;
  const narrow = stories.filter(({ wide }) => !wide);
  const middle = Math.ceil(narrow.length / 2);
  return (
    <Layout title="Components" flashes={only ? undefined : <SampleFlash />} dialogs={storyDialogs()} {...SAMPLE} {...props}>
      <PageHead
        title="Components"
        sub={["every component in every state", "class names as in the stylesheet"]}
        actions={
          <>
            <Button opens="palette">Palette</Button>
            <Button opens="keysheet">Keys</Button>
            <Button opens="story-confirm">Dialog</Button>
          </>
        }
      />
      <Columns even main={<StorySections of={narrow.slice(0, middle)} now={now} />} aside={<StorySections of={narrow.slice(middle)} now={now} />} />
      <StorySections of={stories.filter(({ wide }) => wide)} now={now} />
    </Layout>
  );
};

const SIGNIN_NOTICE = { tone: "attn", title: "This link no longer works", text: "A sign-in link works once and for 60 seconds." } as const;

const StorySections = ({ of, now }: { of: readonly Story[]; now: number }) => (
  <>
    {of.map((story) => (
      <StorySection story={story} now={now} />
    ))}
  </>
);

const SampleFlash = () => (
  <Flash tone="ok" text="Approved 2, refused 1" hint="apr_90c2…: the content changed after you opened it. Nothing was applied." />
);

// The first steps of somebody who has nothing here yet: exact commands to copy, and what will be seen.
/** @jsxImportSource #jsx */
import { link } from "./links.ts";
import type { Visit } from "./screen.ts";
import { command } from "./shell.ts";
import { Feed } from "./ui/feed.tsx";
import { Command, FirstSteps } from "./ui/feedback.tsx";
import { Columns, Lede, Section } from "./ui/page.tsx";
import { Link } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";

/** What to do first, and what it brings. */
export const Start = ({ visit }: { visit: Visit }) => {
  const { url, projects, project } = visit;
  const isNew = projects.length === 0;
  const connect = (project === undefined ? undefined : command`kxm connect --project ${project}`) ?? "kxm connect";
  return (
    <>
      <h1 class="visually-hidden">{isNew ? "Overview" : "First steps"}</h1>
      <Lede>
        {isNew
          ? "This hub is up, and nobody is here yet. Three commands make it useful; this page fills itself as they work."
          : "Three commands bring an agent, a run and a machine to this hub."}
      </Lede>
      <Columns
        below
        main={
          <>
            <h2 class="visually-hidden">What to do first</h2>
            <FirstSteps
              steps={[
                { title: "Hub", done: true, children: <p>Listening on {url.host}. What it acknowledges is on disk.</p> },
                { title: "Connect the first agent", done: !isNew, children: <ConnectStep command={connect} isNew={isNew} /> },
                { title: "Start the first run", children: <RunStep /> },
                { title: "Keep this machine’s Runtime running", children: <RuntimeStep /> },
              ]}
            />
          </>
        }
        aside={<Around project={project} />}
      />
    </>
  );
};

const ConnectStep = ({ command, isNew }: { command: string; isNew: boolean }) => (
  <>
    <p>
      Run this in a repository. It says which agent programs are installed (Claude Code, Codex, Gemini, OpenCode, Pi and more) and how to connect
      each.
    </p>
    <Command text={command} />
    <p>No program at hand? A terminal is an agent, too:</p>
    <Command text="kxm peer --as reviewer inbox --follow" />
    {isNew && (
      <p class="quiet">
        <Status state="queued" word="not yet" why="waiting for a first sign of life" />
      </p>
    )}
  </>
);

const RunStep = () => (
  <>
    <p>Works without a model: the built-in echo agent takes every step once, so you see a run from start to receipt.</p>
    <Command text="kxm init && kxm run 'Say hello'" />
  </>
);

const RuntimeStep = () => (
  <>
    <p>It keeps runs going while the hub is down and sends what happened when it is back. It starts by itself when a command needs it.</p>
    <Command text="kxm runtime start" />
  </>
);

const Around = ({ project }: { project: string | undefined }) => (
  <>
    <Section title="What you will see here">
      <Feed
        items={[
          { icon: "approvals", tone: "mute", text: "What waits for your decision, from all machines, with exactly what is asked and its hash" },
          { icon: "agents", tone: "mute", text: "Who is alive, and how the hub knows" },
          { icon: "runs", tone: "mute", text: "What is running, or why it is not" },
          { icon: "messages", tone: "mute", text: "How far each request got, and who answered" },
        ]}
      />
    </Section>
    <Section title="Other ways in">
      <Feed
        items={[
          { icon: "terminal", tone: "mute", text: [<Link href="/docs">The API</Link>, ": every call with its fields and refusals"] },
          { icon: "webhooks", tone: "mute", text: [<Link href={link("/webhooks", { project })}>A signed webhook</Link>, " starts a workflow"] },
          { icon: "play", tone: "mute", text: ["Just looking? ", <code>kxm demo</code>, " shows a living hub"] },
        ]}
      />
    </Section>
  </>
);

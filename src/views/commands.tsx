// What came of commands that were sent together: one item each with its receipt. A page of its own, so that it survives a reload and can be passed on.
/** @jsxImportSource #jsx */
import type { CommandRow } from "../db/schema.ts";
import * as commands from "../hub/commands.ts";
import { VIEW_ROWS_MAX } from "../protocol/limits.ts";
import type { Command } from "../protocol/runtimes.ts";
import { link } from "./links.ts";
import { livePage } from "./live-page.tsx";
import { CommandItem } from "./receipts.tsx";
import type { Screen, Visit } from "./screen.ts";
import { Empty } from "./ui/feedback.tsx";
import { Inbox } from "./ui/inbox.tsx";
import { PageHead, Section } from "./ui/page.tsx";
import { visible } from "./ui/untrusted.tsx";

type Shown = { command: Command; where: string };

/** Where the outcome of these commands is shown. */
export const commandsLink = (ids: readonly string[]): string => link(`/commands?${ids.map((id) => `id=${encodeURIComponent(id)}`).join("&")}`);

/** The machine of a Runtime in words: its host's name as it reported it, else its id. */
export async function machineOf({ hub }: Pick<Visit, "hub">, project: string, runtimeId: string): Promise<string> {
  const host = (await hub.engine.read.runtimes.find(project, runtimeId))?.host;
  return host ? visible(host).slice(0, 64) : runtimeId;
}

async function load(visit: Visit): Promise<Shown[]> {
  const { hub, url, session } = visit;
  const ids = url.searchParams.getAll("id").slice(0, VIEW_ROWS_MAX);
  const rows = await Promise.all(ids.map((id) => hub.engine.read.commands.find(id)));
  const mine = rows.filter((row): row is CommandRow => row !== undefined && (session.project === null || row.project === session.project));
  return Promise.all(mine.map(async (row) => ({ command: commands.commandOf(row), where: await machineOf(visit, row.project, row.runtimeId) })));
}

const FINAL = new Set<Command["state"]>(["applied", "refused", "expired"]);

const CommandsView = ({ shown, now }: { shown: Shown[]; now: number }) => {
  const done = shown.filter(({ command }) => FINAL.has(command.state)).length;
  const bad = shown.filter(({ command }) => command.state === "refused" || command.state === "expired").length;
  return (
    <>
      <PageHead
        title="What came of it"
        crumbs={[{ text: "Runs", href: "/runs" }, { text: "Commands" }]}
        sub={[`${done} of ${shown.length} finished`, bad > 0 && `${bad} refused`, "a machine that is away does it when it is back"]}
      />
      <Section title="Sent" count={shown.length}>
        {shown.length === 0 ? (
          <Empty title="No such command is known here." />
        ) : (
          <Inbox>
            {shown.map(({ command, where }) => (
              <CommandItem command={command} where={where} now={now} about />
            ))}
          </Inbox>
        )}
      </Section>
    </>
  );
};

export const screens: readonly Screen[] = livePage<Shown[]>({
  path: "/commands",
  id: "commands",
  place: "runs",
  topic: ["runtimes", "runs"],
  load,
  title: () => "What came of it",
  view: (shown, { now }) => <CommandsView shown={shown} now={now} />,
});

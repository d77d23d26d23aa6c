// Ending a token, and what follows from the end of a project's last one: nobody passes there until it has another or is opened again.
/** @jsxImportSource #jsx */
import type { TokenRow } from "../db/schema.ts";
import * as tokens from "../hub/tokens.ts";
import { HubError } from "../protocol/errors.ts";
import type { Child } from "./jsx/jsx-runtime.ts";
import { link } from "./links.ts";
import { type Screen, screen, type Visit } from "./screen.ts";
import { crumbs } from "./tokens.tsx";
import { Act, Button } from "./ui/button.tsx";
import { PageHead, Row, Section } from "./ui/page.tsx";
import { Id } from "./ui/reference.tsx";
import { Line, visible } from "./ui/untrusted.tsx";

const REVOKE = "/settings/tokens/revoke";
const OPEN = "/settings/tokens/open";

/** The token that an address or a form names, for those who may see its project. @throws HubError token_not_found */
async function tokenOf({ hub, session }: Visit, id: string): Promise<TokenRow> {
  const row = await hub.engine.read.tokens.find(id);
  if (!row || (session.project !== null && session.project !== row.project)) throw new HubError("token_not_found", "there is no such token");
  return row;
}

/** A page that asks one question. */
const question = (visit: Visit, { title, short, head, children }: { title: string; short: string; head: Child; children: Child }) =>
  visit.page({
    title,
    place: "settings",
    live: false,
    children: (
      <>
        <PageHead title={title} crumbs={crumbs(visit, short)} />
        <Section title={head} padded>
          <div class="form">{children}</div>
        </Section>
      </>
    ),
  });

const Leave = ({ visit }: { visit: Visit }) => <Button href={link("/settings", { project: visit.project })}>Leave it</Button>;
const ANYBODY = "Anybody who reaches this hub may then join it without a token, as before its first one.";

const asks = screen({
  method: "GET",
  path: REVOKE,
  role: "admin",
  run: async (visit) => {
    const { id, name, scope, project } = await tokenOf(visit, visit.url.searchParams.get("id") ?? "");
    const action = link(REVOKE, { project: visit.project });
    const closes = scope === "project" && project !== null && (await tokens.isClosed(visit.hub, project, id));
    return question(visit, {
      title: "Revoke a token",
      short: "Revoke",
      head: (
        <>
          Revoke <Id value={id} />?
        </>
      ),
      children: (
        <>
          <p>
            It is called <Line text={name} /> and has the role {scope}. Whoever uses it is refused from then on, and every session that began with it
            ends.
          </p>
          {closes && (
            <>
              <p>
                <strong>
                  No other token of <Line text={project!} /> counts.
                </strong>{" "}
                Without this one the project is closed: all its agents and Runtimes are refused until it has another token.
              </p>
              <p>Or open the project with the same act. {ANYBODY}</p>
            </>
          )}
          <Row>
            <Act action={action} csrf={visit.csrf} fields={{ id }}>
              <Button kind="danger" type="submit">
                {closes ? "Revoke it and close the project" : "Revoke the token"}
              </Button>
            </Act>
            {closes && (
              <Act action={action} csrf={visit.csrf} fields={{ id, open: "1" }}>
                <Button kind="warn" type="submit">
                  Revoke it and open the project
                </Button>
              </Act>
            )}
            <Leave visit={visit} />
          </Row>
        </>
      ),
    });
  },
});

const revoke = screen({
  method: "POST",
  path: REVOKE,
  role: "admin",
  run: async (visit) => {
    const { id, project, name } = await tokenOf(visit, visit.form.get("id") ?? "");
    const opens = visit.form.get("open") === "1" && project !== null;
    await visit.hub.engine.write(project ?? "", async (tx) => {
      await tokens.revoke(tx, visit.by, id);
      if (opens) await tokens.openProject(tx, visit.by, project);
    });
    const text = `The token ${visible(name)} is revoked${opens ? `, and ${visible(project)} is open` : ""}.`;
    return visit.redirect(link("/settings", { project: visit.project }), { tone: "ok", text });
  },
});

/** The project that an address or a form names. @throws HubError role_forbidden, protocol_error */
function projectOf(visit: Visit, given: string | null): string {
  if (!given) throw new HubError("protocol_error", "say which project");
  visit.requireProject(given);
  return given;
}

const asksToOpen = screen({
  method: "GET",
  path: OPEN,
  role: "admin",
  run: (visit) => {
    const project = projectOf(visit, visit.url.searchParams.get("of"));
    return question(visit, {
      title: "Open a project",
      short: "Open",
      head: (
        <>
          Let agents of <Line text={project} /> in without a token?
        </>
      ),
      children: (
        <>
          <p>All tokens of its own have ended. {ANYBODY} Its ended tokens leave the list; the audit keeps them.</p>
          <Row>
            <Act action={link(OPEN, { project: visit.project })} csrf={visit.csrf} fields={{ of: project }}>
              <Button kind="danger" type="submit">
                Open the project
              </Button>
            </Act>
            <Button href={link("/settings/tokens/new", { project: visit.project })}>Make a token instead</Button>
            <Leave visit={visit} />
          </Row>
        </>
      ),
    });
  },
});

const open = screen({
  method: "POST",
  path: OPEN,
  role: "admin",
  run: async (visit) => {
    const project = projectOf(visit, visit.form.get("of"));
    await visit.hub.engine.write(project, (tx) => tokens.openProject(tx, visit.by, project));
    return visit.redirect(link("/settings", { project: visit.project }), { tone: "ok", text: `${visible(project)} is open.` });
  },
});

export const screens: readonly Screen[] = [asks, revoke, asksToOpen, open];

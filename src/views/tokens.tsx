// Tokens: the list, and a new one with its secret shown once. Ending one is in token-end.tsx.
/** @jsxImportSource #jsx */
import type { TokenRow } from "../db/schema.ts";
import * as tokens from "../hub/tokens.ts";
import { HubError } from "../protocol/errors.ts";
import { newSecret } from "../protocol/ids.ts";
import { DAY_MS } from "../protocol/time.ts";
import { TOKEN_SCOPES } from "../protocol/tokens.ts";
import { fieldOf, optionalFieldOf, refusal } from "./acts.tsx";
import { link } from "./links.ts";
import { ProjectField } from "./project-field.tsx";
import { type FlashText, type Screen, screen, type Visit } from "./screen.ts";
import { secretOnce } from "./secret-once.tsx";
import { Button, Csrf } from "./ui/button.tsx";
import { Empty, Flash, Notice } from "./ui/feedback.tsx";
import { Fields, SelectField, TextField } from "./ui/form.tsx";
import { PageHead, Row, Section } from "./ui/page.tsx";
import { Quiet, Sub } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";
import { Table } from "./ui/table.tsx";
import { Ago, Left } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

const NAME_MAX = 64;
const PROJECT_MAX = 128;
const DAYS_MAX = 366;
const DAYS = ["7", "30", "90", "365"];
const WHAT: Record<(typeof TOKEN_SCOPES)[number], string> = {
  project: "project: an agent’s or Runtime’s place in one project, where all must show a token from then on",
  viewer: "viewer: reads metadata",
  operator: "operator: acts",
  admin: "admin: administers",
};

const Ends = ({ token: { revokedAt, expiresAt }, now }: { token: TokenRow; now: number }) => {
  if (revokedAt !== null) return <Status state="revoked" why={<Ago at={revokedAt} now={now} plain />} />;
  if (expiresAt === null) return <Quiet>never</Quiet>;
  return expiresAt <= now ? <Status state="expired" why={<Ago at={expiresAt} now={now} plain />} /> : <Left until={expiresAt} now={now} />;
};

/** The list with its form's link; for admins. */
export const Tokens = ({ tokens: rows, closed, visit }: { tokens: readonly TokenRow[]; closed: readonly string[]; visit: Visit }) => (
  <Section
    title="Tokens"
    count={rows.length}
    more={
      <Button small icon="plus" href={link("/settings/tokens/new", { project: visit.project })}>
        New token
      </Button>
    }
  >
    {closed.map((project) => (
      <Notice
        tone="attn"
        title={
          <>
            <Line text={project} /> is closed.
          </>
        }
        acts={
          <Button small href={link("/settings/tokens/open", { project: visit.project, of: project })}>
            Open it again…
          </Button>
        }
      >
        All tokens of its own have ended, so its agents and Runtimes are refused.
      </Notice>
    ))}
    {rows.length === 0 ? (
      <Empty title="There is no token yet.">A token lets an agent, a Runtime or a person in from elsewhere, with no more than its role.</Empty>
    ) : (
      <Table
        caption="Tokens"
        rows={rows}
        id={({ id }) => `token-${id}`}
        columns={[
          {
            head: "Name",
            kind: "main",
            slim: true,
            cell: ({ name, prefix }) => (
              <>
                <Line text={name} />
                <Sub>
                  <code class="id">{prefix}…</code>
                </Sub>
              </>
            ),
          },
          { head: "Role", cell: ({ scope }) => scope },
          { head: "Project", cell: ({ project }) => (project === null ? "all" : <Line text={project} />) },
          {
            head: "Last used",
            kind: "tight",
            cell: ({ lastUsedAt }) => (lastUsedAt === null ? <Quiet>never</Quiet> : <Ago at={lastUsedAt} now={visit.now} />),
          },
          { head: "Ends in", cell: (token) => <Ends token={token} now={visit.now} /> },
          {
            head: "",
            kind: "acts",
            cell: ({ id, revokedAt }) =>
              revokedAt === null && (
                <Button small kind="warn" href={link("/settings/tokens/revoke", { project: visit.project, id })}>
                  Revoke…
                </Button>
              ),
          },
        ]}
      />
    )}
  </Section>
);

/** The way back to settings. */
export const crumbs = (visit: Visit, text: string) => [{ text: "Settings", href: link("/settings", { project: visit.project }) }, { text }];

const formPage = (visit: Visit, refused?: FlashText) => {
  const { form, projects, session } = visit;
  return visit.page({
    title: "New token",
    place: "settings",
    live: false,
    children: (
      <>
        <PageHead title="New token" crumbs={crumbs(visit, "New token")} sub={["its secret is shown once"]} />
        <Section title="A token" padded>
          <form method="post" action={link("/settings/tokens/new", { project: visit.project })}>
            <Csrf token={visit.csrf} />
            {refused && <Flash {...refused} />}
            <Fields>
              <TextField
                id="token-name"
                name="name"
                label="Name"
                hint="what it is for"
                value={form.get("name") ?? ""}
                required
                maxlength={NAME_MAX}
              />
              <SelectField
                id="token-scope"
                name="scope"
                label="Role"
                options={TOKEN_SCOPES.map((scope) => ({ value: scope, text: WHAT[scope] }))}
                value={form.get("scope") ?? "viewer"}
              />
              <ProjectField
                id="token-project"
                name="of"
                projects={projects}
                first={session.project === null ? { value: "", text: "all projects" } : undefined}
                value={form.get("of") ?? visit.project ?? ""}
              />
              <SelectField
                id="token-days"
                name="days"
                label="Ends"
                options={[...DAYS.map((days) => ({ value: days, text: `after ${days} days` })), { value: "", text: "never" }]}
                value={form.get("days") ?? "90"}
              />
              <Row>
                <Button kind="primary" type="submit">
                  Make the token
                </Button>
                <Button href={link("/settings", { project: visit.project })}>Leave it</Button>
              </Row>
            </Fields>
          </form>
        </Section>
      </>
    ),
  });
};

const form = screen({ method: "GET", path: "/settings/tokens/new", role: "admin", run: (visit) => formPage(visit) });

/** What a form asks for. @throws HubError protocol_error, role_forbidden */
function wantedOf({ form, session }: Visit) {
  const name = fieldOf(form, "name", NAME_MAX);
  const scope = TOKEN_SCOPES.find((one) => one === form.get("scope"));
  if (!scope) throw new HubError("protocol_error", "choose what the token may do");
  const project = optionalFieldOf(form, "of", PROJECT_MAX) ?? null;
  if (scope === "project" && project === null) throw new HubError("protocol_error", "a token of scope project needs a project");
  if (session.project !== null && session.project !== project) throw new HubError("role_forbidden", "this session sees another project");
  const days = optionalFieldOf(form, "days", 4);
  if (days !== undefined && (!/^[1-9]\d{0,2}$/.test(days) || Number(days) > DAYS_MAX))
    throw new HubError("protocol_error", `days is a number from 1 to ${DAYS_MAX}`);
  return { name, scope, project, livesMs: days === undefined ? undefined : Number(days) * DAY_MS };
}

const create = screen({
  method: "POST",
  path: "/settings/tokens/new",
  role: "admin",
  run: async (visit) => {
    try {
      const { name, scope, project, livesMs } = wantedOf(visit);
      const secret = newSecret(scope === "project" ? "kxp" : "kxm");
      await visit.hub.engine.write(project ?? "", (tx) =>
        tokens.create(tx, visit.by, { secret, name, scope, project, expiresAt: livesMs === undefined ? null : tx.now + livesMs }),
      );
      return secretOnce(visit, {
        title: "The token is made",
        place: "settings",
        from: { text: "Settings", href: link("/settings", { project: visit.project }) },
        secret,
        children: "The hub keeps only its hash. Whoever has it may do what its role may, until it ends or is revoked.",
      });
    } catch (error) {
      if (!(error instanceof HubError) || error.status >= 500) throw error;
      return { html: await formPage(visit, refusal(error)), status: error.status };
    }
  },
});

export const screens: readonly Screen[] = [form, create];

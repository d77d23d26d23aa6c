// `kxm token`: make, list and revoke tokens, as the admin of a hub.
import type { Command } from "commander";
import { ask } from "../client/http.ts";
import { DAY_MS } from "../protocol/time.ts";
import { TOKEN_SCOPES, type Token } from "../protocol/tokens.ts";
import { ago } from "./ago.ts";
import { define, duration, group } from "./command.ts";
import { type Output, UsageError } from "./output.ts";
import { asOperator, CLI_HEADERS, findTarget, type TargetOptions, withTarget } from "./target.ts";

type CreateOptions = TargetOptions & { scope?: (typeof TOKEN_SCOPES)[number]; agent?: string; name: string; expires?: number };

/** Adds `kxm token` and its commands. */
export function addToken(program: Command): void {
  const token = withTarget(
    group(
      program,
      "token",
      "make and revoke tokens of a hub",
      "project lets agents of one project in; viewer reads, operator acts, admin administers the dashboard and the API.",
    ),
  );
  define<CreateOptions>(token, {
    usage: "create",
    summary: "make a token and print it, this once",
    details:
      "With --project the token opens that project alone; scope project always has one, the folder's unless it is named. With --agent it speaks for that agent alone. From the first token of scope project on, a project lets nobody in without a token, also after that one has ended: set KXM_TOKEN for its agents and Runtimes.",
    examples: [
      "kxm token create --scope operator --name laptop --expires 90d",
      "kxm token create --scope project --project shop --name ci",
      "kxm token create --agent reviewer --name desk",
    ],
    options: (command) =>
      command
        .option("--scope <scope>", `${TOKEN_SCOPES.join(", ")} (project with --agent)`)
        .option("--agent <name>", "the one agent of the project it speaks for")
        .requiredOption("--name <name>", "what it is for")
        .option("--expires <span>", "it ends by itself after so long", duration(60_000, 366 * DAY_MS)),
    run: async ({ options, out, world }) => {
      const { agent, name, expires } = options;
      const scope = options.scope ?? (agent === undefined ? undefined : "project");
      if (scope === undefined || !TOKEN_SCOPES.includes(scope)) throw new UsageError(`--scope is one of ${TOKEN_SCOPES.join(", ")}`);
      const project = options.project ?? (scope === "project" ? findTarget(world, options).project : undefined);
      const body = {
        scope,
        name,
        ...(project !== undefined && { project }),
        ...(agent !== undefined && { agent }),
        ...(expires !== undefined && { expiresInMs: expires }),
      };
      const to = asOperator(findTarget(world, options));
      const answer = await ask<{ token: Token; secret: string }>(to, "POST", "/v1/tokens", { body, headers: CLI_HEADERS, signal: world.stopping });
      out.result(answer.body, () => {
        out.line(answer.body.secret);
        out.note(`This is the only time it is shown. ${describe(answer.body.token)}`);
        if (scope === "project") out.note(`From now on agents and Runtimes of ${project} must show a token: set KXM_TOKEN where they run.`);
      });
    },
  });
  define<TargetOptions>(token, {
    usage: "list",
    summary: "list the tokens, also those that have ended",
    examples: ["kxm token list"],
    run: async ({ options, out, world }) => {
      const { body } = await ask<{ tokens: Token[] }>(asOperator(findTarget(world, options)), "GET", "/v1/tokens", { signal: world.stopping });
      out.result(body, () => showTokens(out, body.tokens));
    },
  });
  define<TargetOptions>(token, {
    usage: "revoke <id>",
    summary: "end a token and every session that began with it",
    examples: ["kxm token revoke tok_0190…"],
    run: async ({ args: [id], options, out, world }) => {
      const to = asOperator(findTarget(world, options));
      const { body } = await ask<{ token: Token }>(to, "DELETE", `/v1/tokens/${encodeURIComponent(id!)}`, {
        headers: CLI_HEADERS,
        signal: world.stopping,
      });
      out.result(body, () => out.line(`revoked ${body.token.name} (${body.token.id})`));
    },
  });
}

const describe = ({ id, scope, project, agent, expiresAt }: Token): string =>
  `It is ${id}, scope ${scope}${project === undefined ? "" : ` of project ${project}`}${agent === undefined ? "" : `, for ${agent} alone`}${expiresAt === undefined ? "" : `, until ${expiresAt}`}.`;

const stateOf = ({ revokedAt, expiresAt }: Token): string =>
  revokedAt !== undefined ? "revoked" : expiresAt !== undefined && Date.parse(expiresAt) <= Date.now() ? "expired" : "live";

function showTokens(out: Output, tokens: Token[]) {
  out.table(
    tokens,
    [
      { title: "ID", value: ({ id }) => id },
      { title: "NAME", value: ({ name }) => name },
      { title: "SCOPE", value: ({ scope }) => scope },
      { title: "PROJECT", value: ({ project }) => project ?? "all" },
      { title: "AGENT", value: ({ agent }) => agent ?? "any" },
      { title: "STARTS", value: ({ prefix }) => `${prefix}…` },
      { title: "STATE", value: stateOf, style: (one) => (stateOf(one) === "live" ? "good" : "dim") },
      { title: "AGE", value: ({ createdAt }) => ago(createdAt), align: "right" },
      { title: "USED", value: ({ lastUsedAt }) => (lastUsedAt === undefined ? "never" : `${ago(lastUsedAt)} ago`) },
    ],
    "no token was made yet",
  );
}

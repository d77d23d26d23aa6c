// `kxm lease`: take, keep, give back and look at leases, as the terminal's agent; take one away as an operator.
import type { Command } from "commander";
import { ask, HubRefusal } from "../client/http.ts";
import { HubError } from "../protocol/errors.ts";
import type { Lease, LeaseList, LeaseState, LeaseWaiter } from "../protocol/leases.ts";
import { LEASE_TTL_MS_MAX, LEASE_TTL_MS_MIN, LEASE_WAIT_MS_MAX } from "../protocol/limits.ts";
import { ago, span } from "./ago.ts";
import { type Call, type CommandSpec, define, duration, type Ended, group, number, spell } from "./command.ts";
import { asAgent, defaultName, type Terminal } from "./identity.ts";
import { type Output, oneLine, UsageError, type World } from "./output.ts";
import { asOperator, CLI_HEADERS, findTarget, type TargetOptions, withTarget } from "./target.ts";

type LeaseOptions = TargetOptions & { as?: string };
type Held = LeaseOptions & { token?: number; ttl?: number };
type LeaseCall<O extends LeaseOptions> = Call<O> & { me: Terminal };
type LeaseSpec<O extends LeaseOptions> = Omit<CommandSpec<O>, "run"> & {
  /** Refuses the call before a hub is asked. @throws UsageError */
  check?(call: Call<O>): unknown;
  run(call: LeaseCall<O>): Promise<Ended>;
};
type Add = <O extends LeaseOptions>(spec: LeaseSpec<O>) => Command;

/** @throws UsageError for the two names that no address can hold */
function pathOf(name: string, verb = ""): string {
  if (name === "." || name === "..") throw new UsageError(`a lease cannot be named ${name}`);
  return `/v1/leases/${encodeURIComponent(name)}${verb && `/${verb}`}`;
}
const withTtl = (command: Command) =>
  command.option("--ttl <span>", "how long it lasts without renewal (default 5m)", duration(LEASE_TTL_MS_MIN, LEASE_TTL_MS_MAX));
const withToken = (command: Command) =>
  command.option("--token <number>", "the fencing token that `kxm lease acquire` printed (KXM_FENCING_TOKEN)", number(1, Number.MAX_SAFE_INTEGER));

/** The token a command shows. A gate command under a lease has it in its environment. @throws UsageError */
function tokenOf({ token }: Held, { env }: World): number {
  if (token !== undefined) return token;
  const given = env["KXM_FENCING_TOKEN"]?.trim();
  if (!given) throw new UsageError("show the fencing token with --token: `kxm lease acquire NAME` prints it to whoever takes the lease");
  return number(1, Number.MAX_SAFE_INTEGER)(given);
}

/** Adds `kxm lease` and its commands. */
export function addLease(program: Command): void {
  const lease = withTarget(
    group(
      program,
      "lease",
      "hold a resource so that nobody else does",
      "A lease has one holder at a time and a fencing token that only rises: show the token to what you guard, and it can refuse the late.",
    ),
  ).option("--as <name>", "name to speak under (KXM_AGENT_NAME; else the user's name)");
  const add: Add = <O extends LeaseOptions>(spec: LeaseSpec<O>) =>
    define<O>(lease, {
      ...spec,
      run: async (call) => {
        spec.check?.(call);
        return spec.run({
          ...call,
          me: await asAgent(call.world, findTarget(call.world, call.options), call.options.as?.trim() || defaultName(call.world.env)),
        });
      },
    });
  addHolding(add);
  addLooking(lease);
  define<TargetOptions & { reason: string }>(lease, {
    usage: "force-release <name>",
    summary: "take a lease away from its holder, as an operator",
    examples: ["kxm lease force-release branch:main --reason 'its machine is gone'"],
    options: (command) => command.requiredOption("--reason <text>", "why; kept in the audit"),
    run: async ({ args: [name], options, out, world }) => {
      const target = findTarget(world, options);
      const body = { project: target.project, reason: options.reason };
      const answer = await ask<{ lease: Lease }>(asOperator(target), "POST", pathOf(name!, "force-release"), {
        body,
        headers: CLI_HEADERS,
        signal: world.stopping,
      });
      out.result(answer.body, () => out.line(`took ${oneLine(name!)} away from ${oneLine(answer.body.lease.holderAgentName)}`));
    },
  });
}

function addHolding(add: Add) {
  add<LeaseOptions & { ttl?: number; wait?: number }>({
    usage: "acquire <name>",
    summary: "take a lease, or extend one's own",
    details: "Prints the fencing token. Ends with 1 when somebody else holds it.",
    examples: [
      "kxm lease acquire branch:main",
      "kxm lease acquire db:migrations --ttl 10m --wait 30s",
      "TOKEN=$(kxm lease acquire deploy --json | jq .lease.fencingToken)",
    ],
    options: (command) => withTtl(command).option("--wait <span>", "stand in line for so long", duration(0, LEASE_WAIT_MS_MAX)),
    run: async ({ me, args: [name], options: { ttl, wait }, out }) => {
      const body = { ...(ttl !== undefined && { ttlMs: ttl }), ...(wait !== undefined && { waitMs: wait }) };
      const answer = await me.ask<{ lease: Lease; renewed: boolean }>("POST", pathOf(name!, "acquire"), { body }).catch((error) => {
        throw stillHeld(error, wait);
      });
      out.result(answer.body, () => showLease(out, answer.body.renewed ? "extended" : "acquired", answer.body.lease));
    },
  });
  add<Held>({
    usage: "renew <name>",
    summary: "extend a lease that is held from here",
    examples: ["kxm lease renew branch:main --token 17"],
    options: (command) => withTtl(withToken(command)),
    check: ({ options, world }) => tokenOf(options, world),
    run: async ({ me, args: [name], options, out, world }) => {
      const { ttl } = options;
      const body = { fencingToken: tokenOf(options, world), ...(ttl !== undefined && { ttlMs: ttl }) };
      const answer = await me.ask<{ lease: Lease }>("POST", pathOf(name!, "renew"), { body });
      out.result(answer.body, () => showLease(out, "extended", answer.body.lease));
    },
  });
  add<Held>({
    usage: "release <name>",
    summary: "give a lease back",
    examples: ["kxm lease release branch:main --token 17"],
    options: withToken,
    check: ({ options, world }) => tokenOf(options, world),
    run: async ({ me, args: [name], options, out, world }) => {
      const body = { fencingToken: tokenOf(options, world) };
      const answer = await me.ask<{ lease: Lease }>("POST", pathOf(name!, "release"), { body });
      out.result(answer.body, () => out.line(`released ${oneLine(name!)}`));
    },
  });
}

/** Reads or checks as an operator where nobody said which agent is meant: looking must not make the terminal an agent that others see. */
async function lookFrom({ options, world }: Call<LeaseOptions>): Promise<Pick<Terminal, "ask">> {
  const target = findTarget(world, options);
  const name = options.as?.trim() || world.env["KXM_AGENT_NAME"]?.trim();
  if (name || target.operatorToken === undefined) return asAgent(world, target, name || defaultName(world.env));
  const { project } = target;
  return {
    ask: (method, path, { query, body, ...rest } = {}) =>
      ask(asOperator(target), method, path, {
        ...rest,
        signal: world.stopping,
        ...(method === "GET" ? { query: { ...query, project } } : { body: { ...(body as object), project } }),
      }),
  };
}

function addLooking(lease: Command) {
  define<Held>(lease, {
    usage: "check <name>",
    summary: "say whether a token is still the one that counts",
    details: "Ends with 0 when it is, with 1 when it is not.",
    examples: ["kxm lease check branch:main --token 17 && git push"],
    options: withToken,
    run: async (call) => {
      const {
        args: [name],
        options,
        out,
        world,
      } = call;
      const token = tokenOf(options, world);
      const me = await lookFrom(call);
      const answer = await me.ask<{ valid: true; lease: LeaseState }>("POST", pathOf(name!, "check"), { body: { fencingToken: token } });
      out.result(answer.body, () => out.line(`token ${token} holds ${oneLine(name!)} until ${answer.body.lease.expiresAt}`));
    },
  });
  define<LeaseOptions>(lease, {
    usage: "list [name]",
    summary: "list the leases that are held, or show one with who stands in line",
    examples: ["kxm lease list", "kxm lease list branch:main"],
    run: async (call) => {
      const {
        args: [name],
        out,
      } = call;
      const me = await lookFrom(call);
      if (name !== undefined) {
        const { body } = await me.ask<{ lease: LeaseState; waiting: LeaseWaiter[] }>("GET", pathOf(name));
        return out.result(body, () => showDetail(out, body));
      }
      const { body } = await me.ask<LeaseList>("GET", "/v1/leases", { query: { limit: 200 } });
      out.result(body, () => showList(out, body.leases));
    },
  });
}

/** Who stood in line already is not told to do so. */
function stillHeld(error: unknown, wait: number | undefined): unknown {
  if (!(error instanceof HubRefusal && error.code === "lease_held") || !wait) return error;
  const hint = "It did not come free in that time. `kxm lease list NAME` shows the holder and the line; wait longer, or ask the holder.";
  return new HubError("lease_held", `${error.message}, still after ${spell(wait)}`, { ...error.extras, hint });
}

function showLease(out: Output, what: string, { name, fencingToken, expiresAt }: Lease) {
  out.line(`${what} ${oneLine(name)} with token ${out.styled("bold", String(fencingToken))}, until ${expiresAt}`);
}

function showList(out: Output, leases: LeaseState[]) {
  out.table(
    leases,
    [
      { title: "LEASE", value: ({ name }) => name },
      { title: "HOLDER", value: ({ holderAgentName }) => holderAgentName },
      { title: "TOKEN", value: ({ fencingToken }) => fencingToken, align: "right" },
      { title: "HELD", value: ({ heldForMs }) => span(heldForMs), align: "right" },
      { title: "LEFT", value: ({ expiresAt }) => span(Math.max(0, Date.parse(expiresAt) - Date.now())), align: "right" },
      { title: "WAITING", value: ({ waiters }) => waiters, align: "right" },
    ],
    "nobody holds a lease",
  );
}

function showDetail(out: Output, { lease, waiting }: { lease: LeaseState; waiting: LeaseWaiter[] }) {
  showList(out, [lease]);
  if (waiting.length === 0) return;
  out.line();
  out.table(
    waiting,
    [
      { title: "IN LINE", value: ({ agentName }) => agentName },
      { title: "SINCE", value: ({ waitingSince }) => ago(waitingSince), align: "right" },
    ],
    "nobody stands in line",
  );
}

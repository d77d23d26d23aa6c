// `kxm open`: a one-time link into the dashboard, opened in the browser of this machine when there is one.
import { spawn } from "node:child_process";
import type { Command } from "commander";
import { ask } from "../client/http.ts";
import { ROLES, type RoleWord, type SigninLink } from "../protocol/sessions.ts";
import { define } from "./command.ts";
import { UsageError, type World } from "./output.ts";
import { asOperator, CLI_HEADERS, findTarget, type Target, type TargetOptions, withTarget } from "./target.ts";

type OpenOptions = TargetOptions & { role?: RoleWord; print?: boolean };

/** Adds `kxm open`. */
export function addOpen(program: Command): void {
  define<OpenOptions>(program, {
    usage: "open",
    summary: "sign in to the dashboard",
    details: "Makes a link that works once and for a minute, and opens it in the browser.",
    examples: ["kxm open", "kxm open --print", "kxm open --role viewer --project shop --print"],
    options: (command) =>
      withTarget(command)
        .option("--role <role>", `what the session may do: ${ROLES.join(", ")} (default: as much as the token)`)
        .option("--print", "only print the link"),
    run: async ({ options, out, world }) => {
      const { role, project } = options;
      if (role !== undefined && !ROLES.includes(role)) throw new UsageError(`--role is one of ${ROLES.join(", ")}`);
      const target = findTarget(world, options);
      const body = { ...(role !== undefined && { role }), ...(project !== undefined && { project }) };
      const link = await makeLink(target, body, world);
      const opened = !options.print && !out.json && openInBrowser(link.url, world);
      out.result(link, () => out.line(opened ? `opened ${target.url} in the browser; if it did not appear: ${link.url}` : link.url));
    },
  });
}

/** Asks a hub for a sign-in link. @throws HubRefusal, HubUnreachable */
export async function makeLink(target: Pick<Target, "url" | "operatorToken">, body: object, world: World): Promise<SigninLink> {
  return (await ask<SigninLink>(asOperator(target), "POST", "/v1/signin-links", { body, headers: CLI_HEADERS, signal: world.stopping })).body;
}

/** Whether the desktop was asked to open the address. On a machine without one nothing is tried. */
function openInBrowser(url: string, { env, stdout }: World): boolean {
  const [program, ...args] = openerOf(env);
  if (!program || !stdout.isTTY) return false;
  const child = spawn(program, [...args, url], { stdio: "ignore", detached: true });
  child.on("error", () => {}); // the link was printed as well
  child.unref();
  return true;
}

function openerOf(env: World["env"]): string[] {
  if (process.platform === "darwin") return ["open"];
  if (process.platform === "win32") return ["rundll32", "url.dll,FileProtocolHandler"];
  return env["DISPLAY"] || env["WAYLAND_DISPLAY"] ? ["xdg-open"] : [];
}

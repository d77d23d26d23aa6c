// Which hub this machine uses and what to show it. Environment first, then the two private files of the state root. Read anew when a file changes.
import { statSync } from "node:fs";
import type { StatePaths } from "../../client/state-paths.ts";
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import { readPrivate, removePrivate, writePrivate } from "../paths.ts";
import type { KnownSecrets } from "../redact/known-secrets.ts";

/** The hub of this machine. */
export type HubBinding = {
  url: string;
  /** Of checkouts that name no project of their own. */
  project: string;
  token?: string;
  /** Tokens of single projects, where the hub has such. */
  tokens?: Record<string, string>;
};
/** What to show the hub for a project. */
export const tokenFor = ({ token, tokens }: HubBinding, project: string): string | undefined => tokens?.[project] ?? token;
type BindingFile = { schema: "kxm.hub-binding.v1"; url: string; project: string };
type CredentialFile = { schema: "kxm.hub-env.v1"; url: string; project: string; token?: string; tokens?: Record<string, string> };

const PROJECT_DEFAULT = "default";
export type BindingSource = ReturnType<typeof bindingSource>;

/**
 * @param env KXM_URL, KXM_PROJECT and KXM_TOKEN win over the files
 * @param known learns the token before anybody can use it
 */
export function bindingSource(paths: StatePaths, env: Record<string, string | undefined>, known: KnownSecrets) {
  let seen = "";
  let current: HubBinding | undefined;
  const stamp = () => [paths.hubBinding, paths.hubEnv].map((path) => stampOf(path)).join("|");
  return {
    /** The binding in force. @throws RuntimeRefusal state_file_invalid, state_root_unsafe */
    read: (): HubBinding | undefined => {
      const now = stamp();
      if (now !== seen) {
        current = resolve(paths, env);
        for (const token of [current?.token, ...Object.values(current?.tokens ?? {})]) known.add(token, "hub-token");
        seen = now;
      }
      return current;
    },
    /**
     * Binds this machine to a hub. For the hub it is bound to already it adds what it is given: a project's token stays beside the others.
     * @throws RuntimeRefusal state_file_invalid for an address that is none
     */
    bind: ({ url, project, token }: Pick<HubBinding, "url" | "project" | "token">) => {
      const address = hubUrl(url, "the hub's address");
      known.add(token, "hub-token");
      const before = readFile<CredentialFile>(paths.hubEnv, "kxm.hub-env.v1");
      const tokens = { ...(before?.url === address && before.tokens), ...(token && { [project]: token }) };
      writePrivate(paths.hubEnv, `${JSON.stringify({ schema: "kxm.hub-env.v1", url: address, project, token, tokens } satisfies CredentialFile)}\n`);
      writePrivate(paths.hubBinding, `${JSON.stringify({ schema: "kxm.hub-binding.v1", url: address, project } satisfies BindingFile)}\n`);
      seen = "";
    },
    unbind: () => {
      removePrivate(paths.hubBinding);
      removePrivate(paths.hubEnv);
      seen = "";
    },
  };
}

function resolve(paths: StatePaths, env: Record<string, string | undefined>): HubBinding | undefined {
  const binding = readFile<BindingFile>(paths.hubBinding, "kxm.hub-binding.v1");
  const saved = readFile<CredentialFile>(paths.hubEnv, "kxm.hub-env.v1");
  const url = env["KXM_URL"] || binding?.url || saved?.url;
  if (!url) return undefined;
  const address = hubUrl(url, env["KXM_URL"] ? "KXM_URL" : paths.hubBinding);
  const project = env["KXM_PROJECT"] || binding?.project || saved?.project || PROJECT_DEFAULT;
  // A saved token belongs to the hub it was saved for: it is shown to no other address.
  const own = saved && hubUrl(saved.url, paths.hubEnv) === address ? saved : undefined;
  const given = env["KXM_TOKEN"] || env["KXM_AUTH_TOKEN"];
  const token = (given || own?.token)?.trim();
  return { url: address, project, ...(token && { token }), ...(!given && own?.tokens && { tokens: own.tokens }) };
}

function readFile<T extends { schema: string; url: string }>(path: string, schema: T["schema"]): T | undefined {
  const text = readPrivate(path);
  if (text === undefined) return undefined;
  let value: T;
  try {
    value = JSON.parse(text);
  } catch {
    throw new RuntimeRefusal("state_file_invalid", `${path} is not JSON`);
  }
  if (value?.schema !== schema || typeof value.url !== "string") throw new RuntimeRefusal("state_file_invalid", `${path} is not a ${schema} file`);
  return value;
}

/** An address without path, user or query. */
function hubUrl(text: string, from: string): string {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password)
    throw new RuntimeRefusal("state_file_invalid", `${from} is not an http or https address without a user part`);
  return url.origin;
}

function stampOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat ? `${stat.mtimeMs}:${stat.size}:${stat.ino}` : "none";
}

// What programs answer when they are asked whether somebody is signed in. What an answer does not say is undefined.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { jsonObject } from "./result.ts";

/** Claude Code prints one object. */
export function claudeSignIn(said: string): boolean | undefined {
  const signedIn = jsonObject(said)?.["loggedIn"];
  return typeof signedIn === "boolean" ? signedIn : undefined;
}

/** Codex knows only sign-ins of OpenAI: with a provider of the user's own, nobody being signed in says nothing. */
export function codexSignIn(said: string, home: string): boolean | undefined {
  if (/^Logged in/m.test(said)) return true;
  return /^Not logged in/m.test(said) && !hasOwnProvider(home) ? false : undefined;
}

function hasOwnProvider(home: string): boolean {
  try {
    return /^\s*model_provider\s*=/m.test(readFileSync(join(home, ".codex/config.toml"), "utf8"));
  } catch {
    return false;
  }
}

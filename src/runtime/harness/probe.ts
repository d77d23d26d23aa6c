// What is installed: each harness's version and sign-in, asked of the program itself and the files it keeps. What cannot be told is said to be unknown.
import { existsSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { environmentFor } from "./environment.ts";
import { findProgram } from "./programs.ts";
import { HARNESS_TABLE, type Row } from "./table.ts";

/** Longest a version question may take. */
const PROBE_MS_MAX = 10_000;

export type HarnessReport = {
  id: string;
  state: "ready" | "missing" | "signed_out" | "unknown";
  path?: string;
  version?: string;
  /** The version this row was checked with; another one may behave otherwise. */
  checkedVersion?: string;
  drift?: boolean;
  signedIn: "yes" | "no" | "unknown";
};

type Environment = Record<string, string | undefined>;

/** What a program prints when it is asked something; undefined when it cannot be started. */
async function said(row: Row, argv: string[], env: Environment): Promise<{ stdout: string; stderr: string } | undefined> {
  try {
    const child = Bun.spawn(argv, {
      env: environmentFor(env, row.env, row.settings?.({ access: "read", sessionId: "", folder: "" }) ?? {}),
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: PROBE_MS_MAX,
      maxBuffer: 65_536,
    });
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
    return { stdout, stderr };
  } catch {
    return undefined;
  }
}

async function versionOf(row: Row, path: string, env: Environment): Promise<string | undefined> {
  const words = row.version && (await said(row, [path, ...row.version], env));
  return words && /\d+\.\d+\.\d+(?:[-+][\w.-]*\w)?/.exec(words.stdout)?.[0];
}

/** The program's own word counts first; then what lies here, which shows a sign-in but never that there is none. */
async function signedIn(row: Row, path: string, env: Environment): Promise<HarnessReport["signedIn"]> {
  const { files, env: names, ask } = row.signIn;
  const home = env["HOME"] ?? homedir();
  const words = ask && (await said(row, [path, ...ask.args], env));
  const answer = words && ask.read(`${words.stdout}\n${words.stderr}`, home);
  if (answer === true) return "yes";
  const key = names.some((name) => env[name]);
  if (answer === false) return key ? "unknown" : "no";
  return key || files.some((file) => existsSync(join(home, file))) ? "yes" : "unknown";
}

const STATES = { yes: "ready", no: "signed_out", unknown: "unknown" } as const;

async function reportOf(row: Row, env: Environment): Promise<HarnessReport> {
  const { id, program, checked } = row;
  if (!program) return { id, state: "ready", signedIn: "yes" };
  const path = findProgram(program, env, "/");
  if (!path) return { id, state: "missing", signedIn: "unknown", checkedVersion: checked?.version };
  const [version, sign] = await Promise.all([knownVersion(row, path, env), signedIn(row, path, env)]);
  const drift = version !== undefined && checked !== undefined && version !== checked.version;
  return {
    id,
    state: STATES[sign],
    path,
    version,
    checkedVersion: checked?.version,
    ...(drift && { drift }),
    signedIn: sign,
  };
}

/** Versions by program file and its time: a program that was replaced is asked again. */
const versions = new Map<string, Promise<string | undefined>>();

/** The version of an installed program, asked once. */
export function knownVersion(row: Row, path: string, env: Record<string, string | undefined>): Promise<string | undefined> {
  const key = `${path} ${statSync(path, { throwIfNoEntry: false })?.mtimeMs}`;
  const known = versions.get(key) ?? versionOf(row, path, env);
  versions.set(key, known);
  return known;
}

/** Asks every harness at once. */
export const harnessReports = async (env: Record<string, string | undefined>): Promise<{ harnesses: HarnessReport[] }> => ({
  harnesses: await Promise.all(Object.values(HARNESS_TABLE).map((row) => reportOf(row, env))),
});

/** How long a report is good. */
const REPORT_MS_MAX = 3_600_000;
let last: { at: number; harnesses: HarnessReport[] } | undefined;
let asking = false;

/** What is known without waiting: nothing at first, then what was found the last time. Asks again by itself once an hour. */
export function recentReports(env: Record<string, string | undefined>): HarnessReport[] {
  if (!asking && (last === undefined || performance.now() - last.at > REPORT_MS_MAX)) {
    asking = true;
    void harnessReports(env)
      .then(({ harnesses }) => (last = { at: performance.now(), harnesses }))
      .finally(() => (asking = false));
  }
  return last?.harnesses ?? [];
}

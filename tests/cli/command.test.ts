// How commands are called: every one explains itself, mistakes are code 2 and name what was meant.
import { expect, test } from "bun:test";
import type { Command } from "commander";
import { duration, examples, number, spell } from "../../src/cli/command.ts";
import { EXIT } from "../../src/cli/output.ts";
import { buildProgram } from "../../src/cli/program.ts";
import { nearest } from "../../src/protocol/nearest.ts";
import { VERSION } from "../../src/protocol/version.ts";
import { runHere } from "../support/served.ts";

const silent = { write: () => {}, isTTY: false };
const world = {
  env: {},
  cwd: "/",
  stdin: { isTTY: false, read: async () => "" },
  stdout: silent,
  stderr: silent,
  stopping: new AbortController().signal,
};
const leaves = (command: Command, path: string[] = []): { command: Command; path: string[] }[] =>
  command.commands.length === 0 ? [{ command, path }] : command.commands.flatMap((inner) => leaves(inner, [...path, inner.name()]));
const COMMANDS = leaves(buildProgram({ world, exitCode: 0 }));
const kxm = (...args: string[]) => runHere(args, { folder: "/nowhere" });

test.each(COMMANDS.map(({ command, path }) => [path.join(" "), command, path] as const))(
  "kxm %s has a summary, examples, --json and --help",
  async (_, command, path) => {
    expect(command.summary()).toMatch(/^[a-z`]/); // a sentence without capital and full stop: it stands in a list
    expect(command.summary()).not.toEndWith(".");
    expect(examples(command).length).toBeGreaterThan(0);
    for (const example of examples(command)) expect(example).toContain("kxm ");
    expect(command.options.some(({ long }) => long === "--json")).toBe(true);
    const help = await kxm(...path, "--help");
    expect(help.code).toBe(0);
    expect(help.stdout).toContain("Examples:");
    expect(help.stderr).toBe("");
  },
);

test.each(COMMANDS.flatMap(({ command, path }) => examples(command).map((example) => [example, path] as const)))(
  "the example parses: %s",
  async (example, path) => {
    const words = /(?:^|[\s(])kxm ([^|&>#)]*)/.exec(example)![1]!.trim();
    const args = [...words.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)]
      .map(([, a, b, c]) => a ?? b ?? c!)
      .filter((word) => word !== "<" && !word.startsWith("(in"));
    const ended = await kxm(...args.slice(0, args.indexOf("<") === -1 ? undefined : args.indexOf("<")), "--help");
    expect(ended.code).toBe(0);
    if (path[0] !== "hub") expect(args.slice(0, 1)).toEqual(path.slice(0, 1));
  },
);

const mandatory = ({ options }: Command, but: string) =>
  options.filter((one) => one.mandatory && one.long !== but).flatMap(({ long }) => [long!, "1"]);
const VALUED = COMMANDS.flatMap(({ command, path }) =>
  command.options
    .filter(({ required, optional }) => required || optional)
    .map(({ long }) => [[...path, ...command.registeredArguments.map(() => "x"), ...mandatory(command, long!)], long!] as const),
);
test("an option that is given an empty value, as by a variable that nobody set, is not taken for one that was left out", async () => {
  expect(VALUED.length).toBeGreaterThan(50);
  for (const [words, option] of [...VALUED, [["budget", "set", "7"], "--project"] as const]) {
    const { code, stderr } = await kxm(...words, option, "");
    expect([code, stderr]).toEqual([EXIT.usage, expect.stringMatching(/was given an empty value|is not a/)]);
  }
});

test("a mistyped command, group or option names the one that was meant, with code 2", async () => {
  const said = async (...args: string[]) => {
    const { code, stderr } = await kxm(...args);
    expect(code).toBe(EXIT.usage);
    return stderr;
  };
  expect(await said("hbu")).toContain("Did you mean hub?");
  expect(await said("peer", "lsit")).toContain("Did you mean list?");
  expect(await said("hub", "statsu")).toContain("Did you mean status?");
  expect(await said("peer", "list", "--al")).toContain("--all");
  expect(await said("lease", "renew", "x")).toContain("--token");
  expect(await said("peer", "send")).toContain("target");
  expect(await said("xyzzy")).toContain("unknown command 'xyzzy'");
  expect(await said("lease", "acquire", "x", "--ttl", "soon")).toContain("from 5s to 10m, such as 10s, 30s or 5m");
});

test("a mistake that is shown again cannot move the terminal", async () => {
  for (const args of [["\u001b[2Jhub"], ["hub", "start", "--\u009b2J"], ["hub", "\u202estart"]]) {
    const { code, stderr } = await kxm(...args);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^[\p{L}\p{N}\p{P}\p{S}\p{Zs}\n]*$/u);
    expect(stderr).toContain("\\u{");
  }
});

test("without a command the program explains itself", async () => {
  const { code, stderr } = await kxm();
  expect(code).toBe(EXIT.usage);
  for (const name of ["hub", "open", "peer", "lease", "token", "backup"]) expect(stderr).toContain(`  ${name}`);
  expect(await kxm("--version")).toMatchObject({ code: 0, stdout: `${VERSION}\n` });
});

test("time spans and numbers are read within their bounds", () => {
  expect(["500ms", "30s", "5m", "2h", "7d"].map(duration(1, 7 * 86_400_000))).toEqual([500, 30_000, 300_000, 7_200_000, 604_800_000]);
  for (const bad of ["5", "-5s", "5 s", "1.5h", "", "9d", "0ms", "1y", `${"9".repeat(13)}s`])
    expect(() => duration(1, 7 * 86_400_000)(bad)).toThrow("time span");
  expect(number(1, 9)("7")).toBe(7);
  for (const bad of ["", "x", "0", "10", "1e0", "1.0", " 5"]) expect(() => number(1, 9)(bad)).toThrow("whole number");
  expect([spell(500), spell(30_000), spell(90_000), spell(7_200_000), spell(86_400_000)]).toEqual(["500ms", "30s", "90s", "2h", "1d"]);
});

test("a time span that help names as a default is written as it is typed", async () => {
  expect((await kxm("peer", "await", "--help")).stdout).toContain("(default: 5m)");
  const spans = COMMANDS.flatMap(({ command }) => command.options.filter(({ flags, defaultValue }) => flags.includes("<span>") && defaultValue));
  expect(spans.length).toBeGreaterThan(5);
  for (const { defaultValue, defaultValueDescription } of spans) expect(duration(1, 86_400_000)(defaultValueDescription!)).toBe(defaultValue);
});

test("the nearest word is only one that is near", () => {
  expect(nearest("statsu", ["start", "stop", "status"])).toBe("status");
  expect(nearest("reviewer", ["start", "stop"])).toBeUndefined();
  expect(nearest("x", [])).toBeUndefined();
});

test("the help of a group shows examples of its commands", async () => {
  for (const name of ["worker", "runs", "runtime", "project", "hub"]) {
    const { stdout } = await kxm(name, "--help");
    expect(stdout).toMatch(new RegExp(`Examples:\n  \\$ kxm ${name}`));
  }
});

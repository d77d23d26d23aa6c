// What commands show: text of agents made harmless, tables, JSON, failures with their exit codes.
import { describe, expect, test } from "bun:test";
import { CommandFailed, createOutput, EXIT, harmlessJson, oneLine, reportFailure, UsageError, visible, type World } from "../../src/cli/output.ts";
import { HubRefusal, HubTimeout, HubUnreachable } from "../../src/client/http.ts";
import { HubError } from "../../src/protocol/errors.ts";

function terminal({ isTTY = false, env = {} as Record<string, string> } = {}) {
  const written = { stdout: "", stderr: "" };
  const world: World = {
    env,
    cwd: "/",
    stdin: { isTTY, read: async () => "" },
    stdout: { write: (text) => void (written.stdout += text), isTTY },
    stderr: { write: (text) => void (written.stderr += text), isTTY },
    stopping: new AbortController().signal,
  };
  return { world, written };
}

/** What must never reach a terminal from outside: moves the cursor, hides, reorders, or rings. */
const HOSTILE = [
  "\u001b[2J\u001b[1;1H", // clears the screen
  "\u001b]52;c;cm0gLXJmIC8=\u0007", // writes the clipboard
  "\u001b]8;;http://evil.example\u0007link\u001b]8;;\u0007",
  "\u009b31m", // CSI as one C1 character
  "\u0090q\u009c",
  "a\rb", // overwrites the line
  "a\bb",
  "\u0000",
  "\u007f",
  "\u202egnp.exe", // right-to-left override
  "\u2066hidden\u2069",
  "zero\u200bwidth\ufeff",
  "\u2028line",
  "\u00ad",
  "\u{e0041}tag",
  "lone \ud800 surrogate",
];

test("every character that could move the cursor, hide or reorder text is written out", () => {
  for (const text of HOSTILE) {
    const shown = visible(text);
    expect(shown).toMatch(/^[\p{L}\p{N}\p{P}\p{S}\p{Zs}\n\t]*$/u);
    expect(shown).toContain("\\u{");
    expect(JSON.parse(harmlessJson({ text }))).toEqual({ text }); // JSON means the same
    expect(harmlessJson({ text })).toMatch(/^[\p{L}\p{N}\p{P}\p{S}\p{Zs}]*$/u);
  }
  expect(visible("plain — ünïcode 漢字 😀\n\ttab")).toBe("plain — ünïcode 漢字 😀\n\ttab");
  expect(visible("\u001b[31mred")).toBe("\\u{1b}[31mred");
});

test("a line on a terminal keeps our own styles and nothing else that moves it", () => {
  for (const text of HOSTILE) {
    const { world, written } = terminal({ isTTY: true });
    const out = createOutput(world, false);
    out.line(`${out.styled("bold", "name")} ${text}`);
    expect(written.stdout).toBe(`\u001b[1mname\u001b[0m ${visible(text)}\n`);
  }
  const { world, written } = terminal({ isTTY: true });
  createOutput(world, false).line("\u001b[8mhidden\u001b[5;31mblink");
  expect(written.stdout).toBe("\\u{1b}[8mhidden\\u{1b}[5;31mblink\n");
});

test("a cell is one line of bounded length, whatever was written into it", () => {
  expect(oneLine("a\n\n  b\tc  ")).toBe("a b c");
  expect(oneLine("x".repeat(500))).toHaveLength(120);
  const { world, written } = terminal();
  createOutput(world, false).table(
    [{ name: "evil\n\u001b[2Jfake row   online", n: 5 }],
    [
      { title: "NAME", value: ({ name }) => name },
      { title: "N", value: ({ n }) => n, align: "right" },
    ],
    "none",
  );
  expect(written.stdout.split("\n")).toEqual(["NAME                             N", "evil \\u{1b}[2Jfake row   online  5", ""]);
});

test("columns stay straight with wide characters, and an empty table says so", () => {
  const { world, written } = terminal();
  const out = createOutput(world, false);
  const columns = [
    { title: "NAME", value: (name: string) => name },
    { title: "END", value: () => "x" },
  ];
  out.table(["漢字", "ab", "😀"], columns, "none");
  expect(written.stdout.split("\n").map((line) => Bun.stringWidth(line))).toEqual([9, 7, 7, 7, 0]);
  out.table([], columns, "nothing here");
  expect(written.stdout).toEndWith("nothing here\n");
});

test("colours are for terminals whose owner wants them", () => {
  const shown = (options: Parameters<typeof terminal>[0]) => createOutput(terminal(options).world, false).styled("good", "ok");
  expect(shown({ isTTY: true })).toBe("\u001b[32mok\u001b[0m");
  expect(shown({ isTTY: false })).toBe("ok");
  expect(shown({ isTTY: true, env: { NO_COLOR: "1" } })).toBe("ok");
  expect(shown({ isTTY: true, env: { TERM: "dumb" } })).toBe("ok");
});

test("with --json stdout holds one document and nothing else", () => {
  const { world, written } = terminal({ isTTY: true });
  const out = createOutput(world, true);
  out.line("not shown");
  out.table([1], [{ title: "N", value: (n) => n }], "none");
  out.facts([["a", "b"]]);
  out.note("advice");
  out.result({ a: "\u001b" }, () => out.line("not shown"));
  expect(written).toEqual({ stdout: '{"a":"\\u001b"}\n', stderr: "advice\n" });
});

test("progress is written over on a terminal and left out elsewhere", () => {
  const quiet = terminal();
  createOutput(quiet.world, false).progress("half");
  expect(quiet.written.stderr).toBe("");
  const loud = terminal({ isTTY: true });
  const out = createOutput(loud.world, false);
  out.progress("half");
  out.line("done");
  expect(loud.written).toEqual({ stderr: "\r\u001b[Khalf\r\u001b[K", stdout: "done\n" });
});

describe("a failure", () => {
  const CASES: [string, unknown, number, string][] = [
    [
      "a refusal of the hub",
      new HubRefusal(409, "lease_expired", "the lease ended", "Acquire it again.", "req_1", {}),
      EXIT.failed,
      "kxm: the lease ended (lease_expired)\n     Acquire it again.\n",
    ],
    [
      "a refusal with a command to type",
      new HubRefusal(409, "lease_held", "held by a", "Wait with waitMs", "req_1", {}),
      EXIT.failed,
      "kxm: held by a (lease_held)\n     --wait 30s stands in line; `kxm lease list NAME` shows the holder.\n",
    ],
    [
      "an error of a rule",
      new HubError("run_not_found", "there is no run x"),
      EXIT.failed,
      "kxm: there is no run x (run_not_found)\n     Check the project and run id; `kxm runs list` shows what is known.\n",
    ],
    ["an own failure", new CommandFailed("no file", "Make one."), EXIT.failed, "kxm: no file\n     Make one.\n"],
    ["a mistake in the call", new UsageError("--n must be a number"), EXIT.usage, "kxm: --n must be a number\n"],
    [
      "no hub",
      new HubUnreachable("http://127.0.0.1:9", "nothing listens there"),
      EXIT.unreachable,
      "kxm: no hub answers at http://127.0.0.1:9: nothing listens there\n",
    ],
    ["a time limit", new HubTimeout("too late"), EXIT.timedOut, "kxm: too late\n"],
    ["an interruption", new DOMException("aborted", "AbortError"), EXIT.failed, "kxm: interrupted\n"],
  ];
  test.each(CASES)("that is %s shows a sentence and no stack", (_, error, code, text) => {
    const { world, written } = terminal();
    expect(reportFailure(world, false, error)).toBe(code);
    expect(written.stderr).toStartWith(text);
    expect(written.stderr).not.toMatch(/\n\s+at /);
    expect(written.stdout).toBe("");
  });

  test("that nobody expected shows its stack, and is code 1", () => {
    const { world, written } = terminal();
    expect(reportFailure(world, false, new Error("boom"))).toBe(1);
    expect(written.stderr).toMatch(/^kxm: something unexpected went wrong: boom\n[\s\S]*at /);
  });

  test("is one JSON object on stderr with --json", () => {
    const { world, written } = terminal();
    reportFailure(world, true, new HubRefusal(409, "lease_held", "held by \u001b[2J", "hint", "req_1", { lease: { name: "x" } }));
    expect(written.stderr).not.toContain("\u001b");
    expect(JSON.parse(written.stderr)).toMatchObject({ error: "held by \u001b[2J", code: "lease_held", lease: { name: "x" } });
  });

  test("shows text of others made harmless", () => {
    const { world, written } = terminal();
    reportFailure(world, false, new HubRefusal(409, "lease_held", "held by \u001b[2J", undefined, undefined, {}));
    expect(written.stderr).toContain("held by \\u{1b}[2J");
  });
});

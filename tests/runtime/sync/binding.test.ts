// Which hub a machine uses, and that a token is shown to no other one.
import { expect, test } from "bun:test";
import { statSync, writeFileSync } from "node:fs";
import type { RuntimeRefusal } from "../../../src/protocol/runtime-errors.ts";
import { prepareStateRoot } from "../../../src/runtime/paths.ts";
import { knownSecrets } from "../../../src/runtime/redact/known-secrets.ts";
import { bindingSource, tokenFor } from "../../../src/runtime/sync/binding.ts";
import { syncInterval } from "../../../src/runtime/sync/loop.ts";
import { temporaryFolder } from "../support.ts";

const refusal = (work: () => unknown) => {
  try {
    work();
  } catch (error) {
    return (error as RuntimeRefusal).code;
  }
  return undefined;
};

function setup(env: Record<string, string> = {}) {
  const folder = temporaryFolder();
  const paths = prepareStateRoot(folder.file("state"));
  const known = knownSecrets();
  return { paths, known, source: bindingSource(paths, env, known), [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

test("a machine is bound, found again, and unbound; the files are private and the token is known as a secret at once", () => {
  using world = setup();
  expect(world.source.read()).toBeUndefined();
  world.source.bind({ url: "http://127.0.0.1:7331/", project: "demo", token: "a-token-of-the-hub" });
  expect(world.source.read()).toMatchObject({ url: "http://127.0.0.1:7331", project: "demo", token: "a-token-of-the-hub" });
  expect(world.known.find("x a-token-of-the-hub y").length).toBe(1);
  for (const path of [world.paths.hubBinding, world.paths.hubEnv]) expect(statSync(path).mode & 0o777).toBe(0o600);
  const again = bindingSource(world.paths, {}, knownSecrets());
  expect(again.read()).toEqual(world.source.read()!);
  expect(again.read()).toBe(again.read()!); // the same object until a file changes
  world.source.unbind();
  expect(world.source.read()).toBeUndefined();
  expect(again.read()).toBeUndefined();
});

test("tokens of several projects of one hub stay beside each other; another hub starts without them", () => {
  using world = setup();
  world.source.bind({ url: "http://127.0.0.1:7331", project: "one", token: "a-token-for-one" });
  world.source.bind({ url: "http://127.0.0.1:7331", project: "two", token: "a-token-for-two" });
  const bound = world.source.read()!;
  expect(["one", "two", "three"].map((project) => tokenFor(bound, project))).toEqual(["a-token-for-one", "a-token-for-two", "a-token-for-two"]);
  world.source.bind({ url: "http://127.0.0.1:7332", project: "two" });
  expect(world.source.read()).toEqual({ url: "http://127.0.0.1:7332", project: "two", tokens: {} });
});

test("the environment wins, and a saved token is not shown to another address", () => {
  using world = setup({ KXM_URL: "http://127.0.0.1:9999", KXM_PROJECT: "other" });
  world.source.bind({ url: "http://127.0.0.1:7331", project: "demo", token: "a-token-of-the-hub" });
  expect(world.source.read()).toEqual({ url: "http://127.0.0.1:9999", project: "other" });
  using own = setup({ KXM_URL: "http://127.0.0.1:9999", KXM_TOKEN: "a-token-of-the-other" });
  expect(own.source.read()).toEqual({ url: "http://127.0.0.1:9999", project: "default", token: "a-token-of-the-other" });
});

test("files that are no binding and addresses that are none are refused by name", () => {
  using world = setup();
  for (const url of ["nonsense", "ftp://host", "http://user:password@host"])
    expect(refusal(() => world.source.bind({ url, project: "demo" }))).toBe("state_file_invalid");
  writeFileSync(world.paths.hubBinding, "{ not json", { mode: 0o600 });
  expect(refusal(() => world.source.read())).toBe("state_file_invalid");
  writeFileSync(world.paths.hubBinding, '{"schema":"another.v1","url":"http://x"}', { mode: 0o600 });
  expect(refusal(() => world.source.read())).toBe("state_file_invalid");
});

test("the interval is clamped, and what is no number is the default", () => {
  const cases: [string | undefined, number][] = [
    [undefined, 10_000],
    ["", 10_000],
    ["soon", 10_000],
    ["1", 250],
    ["-5", 250],
    ["500.4", 500],
    ["1e9", 60_000],
    ["Infinity", 10_000],
  ];
  for (const [text, expected] of cases) expect([text, syncInterval(text)]).toEqual([text, expected]);
});

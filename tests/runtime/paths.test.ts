// Where state lives and who may touch it.
import { expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { statePaths, stateRoot } from "../../src/client/state-paths.ts";
import type { RuntimeRefusal } from "../../src/protocol/runtime-errors.ts";
import { canonicalRoot, prepareStateRoot, projectKey, readPrivate, removePrivate, writePrivate } from "../../src/runtime/paths.ts";
import { temporaryFolder } from "./support.ts";

const refusal = (work: () => unknown) => {
  try {
    work();
  } catch (error) {
    return (error as RuntimeRefusal).code;
  }
  return undefined;
};

test("the state root is where each system keeps state, unless it is named", () => {
  expect(stateRoot({ KXM_STATE_HOME: "/srv/kxm" }, "linux", "/home/a")).toBe("/srv/kxm");
  expect(stateRoot({ XDG_STATE_HOME: "/x" }, "linux", "/home/a")).toBe("/x/kxm");
  expect(stateRoot({ XDG_STATE_HOME: "relative" }, "linux", "/home/a")).toBe("/home/a/.local/state/kxm");
  expect(stateRoot({}, "darwin", "/Users/a")).toBe("/Users/a/Library/Application Support/KXM");
  expect(stateRoot({ LOCALAPPDATA: "/c/local" }, "win32", "/c")).toBe("/c/local/KXM");
  expect(refusal(() => stateRoot({ KXM_STATE_HOME: "relative" }))).toBe("state_root_unsafe");
});

test("folders are 0700 and files 0600, also under a careless umask and when they were open before", () => {
  using folder = temporaryFolder();
  const before = process.umask(0);
  const root = folder.file("state");
  mkdirSync(root, { mode: 0o755 });
  const paths = prepareStateRoot(root);
  writePrivate(paths.hubEnv, "{}");
  process.umask(before);
  for (const path of [root, paths.runtime, paths.projects, paths.logs]) expect(statSync(path).mode & 0o777).toBe(0o700);
  expect(statSync(paths.hubEnv).mode & 0o777).toBe(0o600);
  chmodSync(paths.hubEnv, 0o644);
  writePrivate(paths.hubEnv, "{}");
  expect(statSync(paths.hubEnv).mode & 0o777).toBe(0o600);
});

test("a symlink in the place of a folder or file is refused and what it points to is not touched", () => {
  using folder = temporaryFolder();
  const root = folder.file("state");
  const target = folder.file("target");
  mkdirSync(root);
  mkdirSync(target, { mode: 0o755 });
  symlinkSync(target, statePaths(root).runtime);
  expect(refusal(() => prepareStateRoot(root))).toBe("state_root_unsafe");
  expect(statSync(target).mode & 0o777).toBe(0o755);
  writeFileSync(folder.file("secret"), "theirs");
  symlinkSync(folder.file("secret"), folder.file("link"));
  expect(refusal(() => readPrivate(folder.file("link")))).toBe("state_root_unsafe");
  expect(refusal(() => writePrivate(folder.file("link"), "mine"))).toBe("state_root_unsafe");
  expect(readFileSync(folder.file("secret"), "utf8")).toBe("theirs");
  expect(refusal(() => readPrivate(folder.path))).toBe("state_root_unsafe");
});

test("a private file is replaced whole, and one that is missing reads as nothing", () => {
  using folder = temporaryFolder();
  const path = folder.file("a.json");
  expect(readPrivate(path)).toBeUndefined();
  writePrivate(path, "one");
  writePrivate(path, "two");
  expect(readPrivate(path)).toBe("two");
  removePrivate(path);
  removePrivate(path);
  expect(existsSync(path)).toBeFalse();
});

test("a checkout has one key, by whichever path it is named", () => {
  using folder = temporaryFolder();
  mkdirSync(folder.file("real"));
  symlinkSync(folder.file("real"), folder.file("alias"));
  expect(projectKey(canonicalRoot(folder.file("alias")))).toBe(projectKey(canonicalRoot(folder.file("real"))));
  expect(projectKey("/a")).toMatch(/^[0-9a-f]{24}$/);
  expect(refusal(() => canonicalRoot(folder.file("none")))).toBe("project_not_found");
});

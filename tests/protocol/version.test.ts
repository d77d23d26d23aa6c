// The version that programs show.
import { expect, test } from "bun:test";
import { version } from "../../package.json";
import { VERSION } from "../../src/protocol/version.ts";

test("programs show the version of package.json", () => {
  expect(VERSION).toBe(version);
});

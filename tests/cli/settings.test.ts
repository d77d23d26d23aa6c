// Settings from the environment: the contract's defaults, and every mistake at once.
import { describe, expect, test } from "bun:test";
import { isLoopback, readSettings } from "../../src/cli/settings.ts";
import { sha256 } from "../../src/protocol/canonical.ts";

const read = (env: Record<string, string> = {}) => readSettings(env, "/home/me/shop");
const refusal = (env: Record<string, string>) => {
  try {
    read(env);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
};

test("without variables a hub listens on this machine, keeps its state in the workspace, and asks agents for nothing", () => {
  const settings = read();
  expect(settings).toMatchObject({
    host: "127.0.0.1",
    port: 7331,
    dataPath: "/home/me/shop/.kxm/state/kxm.db",
    databaseUrl: undefined,
    stateDir: "/home/me/shop/.kxm/state",
    logPath: "/home/me/shop/.kxm/logs/kxm-hub.jsonl",
    assetsDir: "/home/me/shop/.kxm/assets",
    configDir: "/home/me/shop/.kxm/config",
    hub: {
      loopback: true,
      durable: true,
      adminTokenHash: undefined,
      messageTtlMs: 86_400_000,
      messageRetentionMs: 604_800_000,
      rateLimit: { max: 600, windowMs: 60_000 },
    },
  });
  expect(settings.hub.projectTokenHashes.size).toBe(0);
});

test("tokens are kept as hashes, trimmed", () => {
  const { hub } = read({ KXM_AUTH_TOKEN: "  admin-secret ", KXM_PROJECT_TOKENS: '{" shop ":" shop-secret "}' });
  expect(hub.adminTokenHash).toBe(sha256("admin-secret"));
  expect([...hub.projectTokenHashes]).toEqual([["shop", sha256("shop-secret")]]);
  expect(JSON.stringify(read({ KXM_AUTH_TOKEN: "admin-secret" }).hub)).not.toContain("admin-secret");
});

test("folders move together with the workspace, or one by one", () => {
  expect(read({ KXM_WORKSPACE_DIR: "ws" })).toMatchObject({
    stateDir: "/home/me/shop/ws/state",
    dataPath: "/home/me/shop/ws/state/kxm.db",
    logPath: "/home/me/shop/ws/logs/kxm-hub.jsonl",
  });
  expect(read({ KXM_STATE_DIR: "/var/kxm", KXM_LOGS_DIR: "/log" })).toMatchObject({
    stateDir: "/var/kxm",
    dataPath: "/var/kxm/kxm.db",
    logPath: "/log/kxm-hub.jsonl",
  });
  expect(read({ KXM_DATA_PATH: "x.db", KXM_LOG_PATH: "y.jsonl" })).toMatchObject({
    dataPath: "/home/me/shop/x.db",
    logPath: "/home/me/shop/y.jsonl",
  });
  expect(read({ KXM_DATA_PATH: ":memory:" })).toMatchObject({ dataPath: ":memory:", hub: { durable: false } });
  expect(read({ KXM_DATA_PATH: ":memory:", KXM_DATABASE_URL: "postgres://h/d" }).hub.durable).toBe(true);
});

describe("a mistake is named by its variable", () => {
  test.each([
    ["KXM_PORT", "65536"],
    ["KXM_PORT", "-1"],
    ["KXM_PORT", "80.5"],
    ["KXM_PORT", "http"],
    ["KXM_HOST", "http://127.0.0.1"],
    ["KXM_HOST", "a b"],
    ["KXM_HOST", "[::1]"],
    ["KXM_MESSAGE_TTL_MS", "999"],
    ["KXM_MESSAGE_RETENTION_MS", "1e9"],
    ["KXM_RATE_LIMIT_MAX", "0"],
    ["KXM_RATE_LIMIT_WINDOW_MS", "99"],
    ["KXM_PROJECT_TOKENS", "[]"],
    ["KXM_PROJECT_TOKENS", "null"],
    ["KXM_PROJECT_TOKENS", "{"],
    ["KXM_PROJECT_TOKENS", '{"a":""}'],
    ["KXM_PROJECT_TOKENS", '{"a":5}'],
    ["KXM_PROJECT_TOKENS", '{"":"x"}'],
    ["KXM_PROJECT_TOKENS", `{"${"p".repeat(129)}":"x"}`],
    ["KXM_PROJECT_TOKENS", '{"a":"two words"}'],
    ["KXM_AUTH_TOKEN", "two words"],
    ["KXM_AUTH_TOKEN", "a,b"],
    ["KXM_DATABASE_URL", "mysql://h/d"],
    ["KXM_PUBLIC_URL", "https://h/path"],
    ["KXM_PUBLIC_URL", "ftp://h"],
    ["KXM_PUBLIC_URL", "https://user:pw@h"],
  ])("%s=%s", (name, value) => {
    expect(refusal({ [name]: value })).toStartWith(`the hub does not start: ${name} `);
  });

  test("all at once, without the secret that is wrong", () => {
    const message = refusal({ KXM_PORT: "x", KXM_RATE_LIMIT_MAX: "0", KXM_PROJECT_TOKENS: '{"shop":"two secret words"}' });
    for (const name of ["3 settings are wrong", "KXM_PORT", "KXM_RATE_LIMIT_MAX", "KXM_PROJECT_TOKENS"]) expect(message).toContain(name);
    expect(message).not.toContain("secret words");
  });

  test("a host beyond this machine needs an admin token", () => {
    for (const host of ["0.0.0.0", "::", "192.168.1.5", "hub.lan", "127.evil.example", "localhost.evil.example"]) {
      expect(refusal({ KXM_HOST: host })).toContain("KXM_AUTH_TOKEN is required");
      expect(read({ KXM_HOST: host, KXM_AUTH_TOKEN: "0123456789abcdef" }).hub.loopback).toBe(false);
    }
    for (const host of ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1"]) expect(read({ KXM_HOST: host }).hub.loopback).toBe(true);
    expect(isLoopback("127.0.0.1.nip.io")).toBe(false);
  });
});

test("a token that can be guessed is said when the hub starts, and not shown", () => {
  for (const where of [{}, { KXM_HOST: "0.0.0.0" }, { KXM_PUBLIC_URL: "https://kxm.example.com" }] as Record<string, string>[]) {
    const [said] = read({ ...where, KXM_AUTH_TOKEN: "fifteen-letters" }).warnings;
    expect(said).toStartWith("KXM_AUTH_TOKEN has 15 characters, which can be guessed");
    expect(said).not.toContain("fifteen");
    expect(read({ ...where, KXM_AUTH_TOKEN: "sixteen-letters-" }).warnings).toEqual([]);
  }
  expect(read({}).warnings).toEqual([]);
  const short = read({ KXM_PROJECT_TOKENS: '{"shop":"hunter2","bank":"0123456789abcdef"}' });
  expect(short.warnings).toEqual([expect.stringMatching(/KXM_PROJECT_TOKENS gives "shop" a token of less than 16 characters(?!.*hunter2)/)]);
  expect(read({ KXM_PUBLIC_URL: "https://kxm.example.com" }).warnings).toEqual([expect.stringContaining("whoever reaches that address")]);
});

test("the public address is kept as an origin", () => {
  expect(read({ KXM_PUBLIC_URL: "https://kxm.example.com/" }).hub.publicUrl).toBe("https://kxm.example.com");
  expect(read({ KXM_PUBLIC_URL: "http://kxm.lan:8080" }).hub.publicUrl).toBe("http://kxm.lan:8080");
});

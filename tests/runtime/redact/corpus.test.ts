// Redaction against fake secrets of every shape in every carrier, and against text that only looks like one.
import { expect, test } from "bun:test";
import { knownSecrets } from "../../../src/runtime/redact/known-secrets.ts";
import { createRedactor } from "../../../src/runtime/redact/redactor.ts";
import { CARRIERS, type Carrier, corpus, leaks, type Sample, seeded } from "./corpus.ts";

const ROUNDS = process.env["KXM_FAULTS"] === "full" ? 20 : 4;
const samples = Array.from({ length: ROUNDS }, (_, round) => corpus(seeded(1000 + round))).flat();
const SHAPE_CARRIERS = ["plain", "json", "json-escapes", "env", "export", "header"];
const redactor = createRedactor(knownSecrets());

test("the corpus has every shape, and every carrier gives the secret back when nothing is taken out", () => {
  expect(new Set(samples.map(({ shape }) => shape)).size).toBeGreaterThanOrEqual(37);
  expect(CARRIERS.length).toBe(12);
  for (const carrier of CARRIERS)
    for (const { text, core } of samples.slice(0, 40))
      expect([carrier.name, leaks(carrier.read(carrier.carry(text)), core)]).toEqual([carrier.name, true]);
});

const missed = (carrier: Carrier, of: Sample[], scrub: (text: string) => string) =>
  of.filter(({ text, core }) => leaks(carrier.read(scrub(carrier.carry(text))), core)).map(({ shape }) => shape);

test.each(CARRIERS.map((carrier) => [carrier.name, carrier] as const))("known values are found in every form: %s", (_, carrier) => {
  for (let round = 0; round < ROUNDS; round++) {
    const of = corpus(seeded(1000 + round));
    const known = knownSecrets();
    for (const { core } of of) known.add(core, "known");
    const { leaving } = createRedactor(known);
    expect(missed(carrier, of, (text) => leaving(text).text)).toEqual([]);
  }
});

test.each(CARRIERS.filter(({ name }) => SHAPE_CARRIERS.includes(name)).map((carrier) => [carrier.name, carrier] as const))(
  "shapes are found without knowing the value, at least 98 of 100: %s",
  (_, carrier) => {
    const lost = missed(carrier, samples, (text) => redactor.leaving(text).text);
    expect([lost.length / samples.length <= 0.02, lost]).toEqual([true, lost]);
  },
);

test("shapes in the other carriers, as far as their form can be read", () => {
  const rate = (name: string) =>
    missed(CARRIERS.find((carrier) => carrier.name === name)!, samples, (text) => redactor.leaving(text).text).length / samples.length;
  for (const name of ["url-query", "percent", "yaml", "two-characters", "diff"]) expect([name, rate(name) <= 0.05]).toEqual([name, true]);
});

test("redacting twice is redacting once", () => {
  for (const carrier of CARRIERS)
    for (const { text } of samples.slice(0, 80)) {
      const once = redactor.leaving(carrier.carry(text)).text;
      expect(redactor.leaving(once)).toMatchObject({ text: once, replaced: 0 });
    }
});

test("nothing in a text can switch redaction off", () => {
  const switches = [
    "# secretlint-disable",
    "// secretlint-disable-line",
    "gitleaks:allow",
    "pragma: allowlist secret",
    "#nosec",
    "[REDACTED:",
    "kxm-redact: off",
  ];
  for (const word of switches)
    for (const { text, core, shape } of samples.slice(0, 40))
      for (const around of [`${word}\n${text}`, `${text} ${word}`, `${word} ${text} ${word}`])
        expect([word, shape, leaks(redactor.leaving(around).text, core)]).toEqual([word, shape, false]);
});

const hexOf = (random: () => number, length: number) => Array.from({ length }, () => Math.floor(random() * 16).toString(16)).join("");
const PROSE = `When the supervisor starts it takes the record and beats every second. The token is renewed by its holder; a password prompt never appears,
because no secret: neither the key nor the session leaves this machine. Use the token, not the key. See "authorization" in the manual: a cookie is not needed.
The author passes 3 tests, fails 0, and says: password reset works; secret santa is on Friday. Tokens: 4096 in, 512 out, cost 0.12 USD. pass=12 fail=0.
Set max_tokens=4096 and token_count: 77. Bearer of good news. The bearer token is missing. Basic rules apply to authorization: required. key-value stores,
monkey-patching, npm_config_cache and secret_manager are ordinary words. A lease has fencingToken 7 and an expiry; a session lasts twelve hours. `;

test("what is no secret stays: ids, hashes, oids, lock files, versions, and 20 KB of prose", () => {
  const random = seeded(7);
  const uuid = () => hexOf(random, 32).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  const ulid = () => Array.from({ length: 26 }, () => "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[Math.floor(random() * 32)]).join("");
  const base64 = (bytes: number) => Buffer.from(hexOf(random, bytes * 2), "hex").toString("base64");
  const clean = Array.from({ length: 200 }, () => [
    `request ${uuid()} done`,
    `sha256:${hexOf(random, 64)}`,
    `commit ${hexOf(random, 40)} on main`,
    `index ${hexOf(random, 7)}..${hexOf(random, 7)} 100644`,
    `"integrity": "sha512-${base64(64)}",`,
    `run_${hexOf(random, 32)} sequence 12`,
    `id ${ulid()}`,
    "src/runtime/token.ts:12:5 error TS2304: Cannot find name 'token'.",
    "bun@1.4.5 elysia@1.4.30 (2026-01-02T03:04:05.678Z)",
    `md5 ${hexOf(random, 32)}`,
  ]).flat();
  const changed = clean.filter((line) => redactor.secrets(line).replaced > 0);
  expect(changed).toEqual([]);
  const prose = PROSE.repeat(Math.ceil(20_000 / PROSE.length));
  expect(redactor.secrets(prose)).toEqual({ text: prose, replaced: 0 });
});

test.each([
  ["a", "a"],
  ["-----BEGIN", "-----BEGIN"],
  ["-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n"],
  ["eyJ", "eyJ"],
  ["eyJ.", "eyJaaaaaaaaaa.eyJaaaaaa."],
  ["nested quotes", `"'\`\\"`],
  ["password=", "password="],
  ["password", "password "],
  ['password="', 'password="'],
  ["authorization", "authorization: bearer "],
  ["://", "a://b:"],
  ["sk-", "sk-"],
  ["ghp_", "ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "],
  ["slashes", "/a"],
  ["backslashes", "\\"],
  ["backslash u", "\\u0067"],
  ["percent", "%41"],
  ["control characters", "\u001b[0m"],
  ["cookie", "cookie: a=b;"],
  ["secret words", "secret token key "],
  ["windows", "C:\\a\\"],
  ["dots", "SG.aaaaaaaaaaaaaaaaaaaaaa."],
])("256 KiB of %s cost at most 50 ms", (_, piece) => {
  const text = piece.repeat(Math.ceil(262_144 / piece.length)).slice(0, 262_144);
  const known = knownSecrets();
  for (let index = 0; index < 20; index++) known.add(`${hexOf(seeded(index), 40)}`, "known");
  const busy = createRedactor(known, { folders: ["/home/somebody"] });
  busy.leaving(text);
  const best = Math.min(...[1, 2, 3, 4].map(() => timed(() => busy.leaving(text))));
  expect(best).toBeLessThan(50);
});

/** Milliseconds of this process's own time: others on the machine do not count. */
function timed(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

test("a text that was looked at before is looked at again once another value is known to be secret", () => {
  const known = knownSecrets();
  const { leaving } = createRedactor(known);
  const text = "the password is tr0ub4dor-and-3-more";
  expect(leaving(text).text).toBe(text);
  known.add("tr0ub4dor-and-3-more", "known");
  expect(leaving(text).text).toBe("the password is [REDACTED:known]");
});

test("a known value cut over two and three texts leaves no fragment of eight characters", () => {
  const known = knownSecrets();
  const value = `Zx9${hexOf(seeded(3), 20)}Qq`;
  known.add(value, "known");
  const { leaving } = createRedactor(known);
  for (let first = 0; first <= value.length; first++) {
    for (const parts of [[value.slice(0, first), value.slice(first)], ...middle(value, first)]) {
      for (const part of parts) expect([parts, leaks(leaving(part).text, value)]).toEqual([parts, false]);
      expect(leaks(leaving(`out: ${parts[0]}`).text, value)).toBeFalse();
      expect(leaks(leaving(`${parts.at(-1)} and more`).text, value)).toBeFalse();
    }
  }
});
const middle = (value: string, first: number) =>
  [4, 9, 12]
    .filter((size) => first + size < value.length)
    .map((size) => [value.slice(0, first), value.slice(first, first + size), value.slice(first + size)]);

test("an unknown token cut over two and three texts of a run leaves no fragment of eight characters", () => {
  const [of, others] = [corpus(seeded(5)), corpus(seeded(6))];
  const tokens = of.flatMap(({ shape, text, core }, at) =>
    text === core ? [{ shape, token: text, secret: text.slice(commonLength(text, others[at]!.text)) }] : [],
  );
  const lost: string[] = [];
  for (const { shape, token, secret } of tokens)
    for (let first = 1; first < token.length; first++)
      for (const parts of [[token.slice(0, first), token.slice(first)], ...middle(token, first)]) {
        let before = "";
        for (const [index, part] of parts.entries()) {
          const text = index === 0 ? `the key is ${part}` : index === parts.length - 1 ? `${part} it said` : part;
          const left = redactor.leaving(text, before);
          if (leaks(left.text, secret)) lost.push(`${shape} at ${first}: ${text}`);
          before = left.tail;
        }
      }
  expect(lost).toEqual([]);
});

/** How much of two tokens of a shape is the shape's own. */
function commonLength(one: string, other: string): number {
  let length = 0;
  while (one[length] === other[length]) length++;
  return length;
}

test("places are taken out of what leaves, and stay in what does not", () => {
  const home = createRedactor(knownSecrets(), { folders: ["/Users/Jo Smith"] });
  const cases: [string, string][] = [
    ["cannot open /home/ana/project/src/a.ts: no such file", "cannot open [path]: no such file"],
    ["in /Users/Jo Smith/plans/x and ~/notes/a.md", "in [path] and [path]"],
    ["at C:\\Users\\ana\\x.txt or \\\\server\\share\\x", "at [path] or [path]"],
    ["see file:///etc/passwd.", "see [path]."],
    ["--root=/home/ana/x done", "--root=[path] done"],
    ["either/or, 1/2, src/a.ts, https://host.example/a/b, /help", "either/or, 1/2, src/a.ts, https://host.example/a/b, /help"],
    ["under /tmp now", "under [path] now"],
  ];
  for (const [text, expected] of cases) expect(home.leaving(text).text).toBe(expected);
  for (const [text] of cases) expect(home.secrets(text).text).toBe(text);
});

test("a secret hidden between invisible characters is seen, and they are gone", () => {
  const [sample] = corpus(seeded(9)).filter(({ shape }) => shape === "github-ghp");
  for (const mark of ["\u200b", "\u001b[31m", "\u0000", "\u2066"]) {
    const hidden = [...sample!.text].join(mark);
    const { text } = redactor.leaving(`x ${hidden} y`);
    expect(leaks(text.replaceAll(mark, ""), sample!.core)).toBeFalse();
    expect(text.includes(mark)).toBeFalse();
  }
});

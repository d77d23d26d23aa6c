// Fake secrets of every known shape, made from a seed when a test runs: no literal that a scanner could find is in the repository.

/** A repeatable source of numbers below 1. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A text as a program prints it, and the part of it that must not leave. */
export type Sample = { shape: string; text: string; core: string };

const ALNUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const UPPER32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const URL64 = `${ALNUM}-_`;
const BASE64 = `${ALNUM}+/`;

/** One sample of each shape. */
export function corpus(random: () => number): Sample[] {
  const of = (alphabet: string, length: number) => Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)]).join("");
  const [A, d, hex] = [(n: number) => of(ALNUM, n), (n: number) => of("0123456789", n), (n: number) => of("0123456789abcdef", n)];
  const token = (shape: string, text: string): Sample => ({ shape, text, core: text });
  const within = (shape: string, before: string, core: string, after = ""): Sample => ({ shape, text: before + core + after, core });
  const pem = (kind: string) => ["-----BEGIN ", kind, "-----\n", of(BASE64, 64), "\n", of(BASE64, 40), "\n-----END ", kind, "-----"].join("");
  const body = (block: string) => block.split("\n")[1]!;
  const [rsa, service, openssh] = [pem("RSA PRIVATE KEY"), pem("PRIVATE KEY"), pem("OPENSSH PRIVATE KEY")];
  const jwt = ["eyJ", of(URL64, 33), ".eyJ", of(URL64, 60), ".", of(URL64, 43)].join("");
  return [
    token("aws-key-id", `AK${"IA"}${of(UPPER32, 16)}`),
    token("aws-session-id", `AS${"IA"}${of(UPPER32, 16)}`),
    within("aws-secret", 'aws_secret_access_key = "', A(40), '"'),
    ...["ghp", "gho", "ghs", "ghu", "ghr"].map((kind) => token(`github-${kind}`, `${kind}_${A(36)}`)),
    token("github-fine-grained", `github${"_pat_"}${A(22)}_${A(59)}`),
    token("gitlab", `gl${"pat-"}${A(20)}`),
    token("slack-bot", `xo${"xb-"}${d(12)}-${d(12)}-${A(24)}`),
    within("slack-hook", "https://hooks.slack.com/services/", `T${of(UPPER32, 8)}/B${of(UPPER32, 10)}/${A(24)}`),
    token("openai-old", `sk-${A(20)}T3Blbk${"FJ"}${A(20)}`),
    token("openai-project", `sk-proj-${A(74)}T3Blbk${"FJ"}${A(74)}`),
    token("anthropic", `sk-ant-${"api03-"}${A(93)}AA`),
    token("google-api", `AI${"za"}${A(35)}`),
    token("google-oauth", `ya29${"."}${A(120)}`),
    {
      shape: "gcp-service-account",
      text: JSON.stringify({ type: "service_account", private_key: service, client_email: "x@y.iam" }),
      core: body(service),
    },
    token("stripe", `sk_${"live_"}${A(24)}`),
    token("npm", `npm${"_"}${A(36)}`),
    token("pypi", `pypi-${"AgEIcHlwaS5vcmc"}${A(80)}`),
    token("sendgrid", `SG${"."}${A(22)}.${A(43)}`),
    token("hugging-face", `hf${"_"}${A(33)}7`),
    { shape: "pem-rsa", text: rsa, core: body(rsa) },
    { shape: "pem-openssh", text: openssh, core: body(openssh) },
    token("jwt", jwt),
    within("basic-auth-url", "https://user:", A(16), "@host.example/path"),
    within("postgres-url", "postgres://app:", A(16), "@host:5432/db"),
    within("bearer", "Authorization: Bearer ", A(40)),
    within("basic-header", "Authorization: Basic ", of(BASE64, 30).concat("==")),
    within("cookie", "Cookie: session=", A(32)),
    token("groq", `gsk${"_"}${A(52)}`),
    ...["kxa", "kxp", "kxm"].map((kind) => token(kind, `${kind}_${of(URL64, 43)}`)),
    within("env-line", "DATABASE_PASSWORD=", A(20)),
    token("shopify", `shp${"at_"}${hex(32)}`),
    token("webhook", `whsec${"_"}${of(BASE64, 32)}`),
  ];
}

/** A way in which text is carried, and how to read it back from what is left. */
export type Carrier = { name: string; carry(text: string): string; read(text: string): string };

const unescaped = (text: string) =>
  text
    .replace(/\\u([0-9a-fA-F]{4})/g, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16)))
    .replace(/\\n/g, "\n")
    .replace(/\\(["\\/])/g, "$1");
const unpercent = (text: string) => text.replace(/%([0-7][0-9a-fA-F])/g, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16)));
const everyByte = (text: string) => [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, "0").toUpperCase()}`).join("");
const same = (text: string) => text;

export const CARRIERS: Carrier[] = [
  { name: "plain", carry: (text) => `the program said ${text} and went on`, read: same },
  { name: "json", carry: (text) => JSON.stringify({ output: text, ok: true }), read: unescaped },
  {
    name: "json-escapes",
    carry: (text) =>
      `{"output":"${[...text].map((c, at) => (at % 3 === 0 ? `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}` : JSON.stringify(c).slice(1, -1))).join("")}"}`,
    read: unescaped,
  },
  { name: "url-query", carry: (text) => `https://host.example/path?q=${encodeURIComponent(text)}&page=2`, read: unpercent },
  { name: "percent", carry: everyByte, read: unpercent },
  { name: "header", carry: (text) => `X-Debug-Output: ${text}\r\nAccept: */*`, read: same },
  { name: "env", carry: (text) => `THING=${text}\nLANG=C`, read: same },
  { name: "export", carry: (text) => `export THING='${text}'`, read: same },
  { name: "yaml", carry: (text) => `settings:\n  thing: ${text}\n  other: 1`, read: same },
  { name: "two-characters", carry: (text) => text.replaceAll("\n", "\\n"), read: unescaped },
  {
    name: "base64",
    carry: (text) => `output ${Buffer.from(text).toString("base64")} end`,
    read: (text) => text.replace(/[A-Za-z0-9+/=]{12,}/g, (run) => Buffer.from(run, "base64").toString("latin1")),
  },
  {
    name: "diff",
    carry: (text) =>
      text
        .split("\n")
        .map((line) => `+${line}`)
        .join("\n"),
    read: same,
  },
];

/** Whether any eight characters in a row of a secret are left. */
export function leaks(output: string, core: string, length = 8): boolean {
  for (let at = 0; at + length <= core.length; at++) if (output.includes(core.slice(at, at + length))) return true;
  return false;
}

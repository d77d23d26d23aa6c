// Secrets by their looks: tokens with a known beginning. Each rule is tried only where its beginning stands, and every repetition is bounded,
// so no text can make it slow. Nothing in a text can switch a rule off.
import type { Match } from "./known-secrets.ts";

/** How one kind of token begins (searched as it is) and the whole of it, matched from there. */
type Shape = { kind: string; starts: string[]; whole: RegExp };

const A = "A-Za-z0-9";
const shape = (kind: string, starts: string | string[], whole: string): Shape => ({
  kind,
  starts: [starts].flat(),
  whole: new RegExp(whole, "y"),
});

const SHAPES: Shape[] = [
  shape("aws-key-id", ["AKIA", "ASIA", "AROA", "AIDA", "ABIA", "ACCA"], `[A-Z]{4}[A-Z2-7]{16}(?![A-Z0-9])`),
  shape("github-token", ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], `gh[pousr]_[${A}]{30,255}`),
  shape("github-token", "github_pat_", `github_pat_[${A}_]{30,255}`),
  shape("gitlab-token", ["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glsoat-"], `gl[a-z]{2,5}-[${A}_.-]{16,255}`),
  shape("slack-token", ["xoxb-", "xoxa-", "xoxp-", "xoxr-", "xoxs-", "xoxe-", "xoxe.", "xapp-"], `x(?:ox[a-z]|app)[-.][${A}.-]{10,255}`),
  shape("slack-webhook", "hooks.slack.com/", `hooks\\.slack\\.com/(?:services|workflows|triggers)/[${A}/_-]{20,255}`),
  shape(
    "discord-webhook",
    ["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"],
    `discord(?:app)?\\.com/api/webhooks/\\d{5,32}/[${A}_-]{20,128}`,
  ),
  shape("anthropic-key", "sk-ant-", `sk-ant-[${A}_-]{20,255}`),
  shape("api-key", "sk-", `sk-(?:[a-z0-9]{2,12}-){0,3}[${A}_-]{20,255}`),
  shape("google-key", "AIza", `AIza[${A}_-]{30,64}`),
  shape("google-oauth", "ya29.", `ya29\\.[${A}_.-]{20,2048}`),
  shape("google-oauth", ["GOCSPX-", "1//0"], `(?:GOCSPX-|1//0)[${A}_-]{24,255}`),
  shape("stripe-key", ["sk_live_", "sk_test_", "rk_live_", "rk_test_"], `[sr]k_(?:live|test)_[${A}]{16,255}`),
  shape("webhook-secret", "whsec_", `whsec_[${A}+/=_-]{16,255}`),
  shape("npm-token", "npm_", `npm_[${A}]{30,64}`),
  shape("pypi-token", "pypi-", `pypi-[${A}_-]{50,1024}`),
  shape("sendgrid-key", "SG.", `SG\\.[${A}_-]{16,32}\\.[${A}_-]{20,64}`),
  shape("huggingface-token", ["hf_", "api_org_"], `(?:hf|api_org)_[${A}]{30,64}`),
  shape("groq-key", "gsk_", `gsk_[${A}]{32,128}`),
  shape("kxm-key", ["kxa_", "kxp_", "kxm_", "kxs_", "kxl_"], `kx[apmsl]_[${A}_-]{40,64}`),
  shape("shopify-token", ["shpat_", "shpca_", "shppa_", "shpss_"], `shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}`),
  shape("jwt", "eyJ", `eyJ[${A}_-]{8,8192}\\.(?:eyJ|ey)[${A}_-]{6,16384}(?:\\.[${A}_-]{16,4096})?`),
  shape("jwe", "eyJ", `eyJ[${A}_-]{8,8192}\\.[${A}_-]{0,4096}\\.[${A}_-]{8,256}\\.[${A}_-]{8,16384}\\.[${A}_-]{8,256}`),
  shape("replicate-token", "r8_", `r8_[${A}]{30,64}`),
  shape("digitalocean-token", ["dop_v1_", "doo_v1_", "dor_v1_"], `do[opr]_v1_[0-9a-f]{64}`),
  shape("linear-key", "lin_api_", `lin_api_[${A}]{32,64}`),
  shape("notion-token", ["ntn_", "secret_"], `(?:ntn|secret)_[${A}]{40,64}`),
  shape("databricks-token", "dapi", `dapi[0-9a-f]{32}(?:-\\d)?`),
  shape("age-key", "AGE-SECRET-KEY-1", `AGE-SECRET-KEY-1[A-Z0-9]{50,64}`),
  shape("vault-token", ["hvs.", "hvb.", "hvr."], `hv[sbr]\\.[${A}_-]{20,300}`),
  shape("doppler-token", ["dp.pt.", "dp.st.", "dp.ct.", "dp.sa."], `dp\\.[a-z]{2}\\.[${A}._-]{30,128}`),
  shape("pulumi-token", "pul-", `pul-[0-9a-f]{40}`),
  shape("planetscale-token", ["pscale_tkn_", "pscale_pw_", "pscale_oauth_"], `pscale_(?:tkn|pw|oauth)_[${A}=._-]{32,64}`),
  shape("supabase-key", ["sbp_", "sb_secret_"], `sb(?:p|_secret)_[${A}_-]{20,128}`),
  shape("postman-key", "PMAK-", `PMAK-[0-9a-f]{24}-[0-9a-f]{34}`),
  shape("sentry-token", ["sntrys_", "sntryu_"], `sntry[su]_[${A}+/=_-]{40,1024}`),
  shape("atlassian-token", ["ATATT3", "ATCTT3"], `AT[AC]TT3[${A}_=-]{50,512}`),
  shape("figma-token", ["figd_", "figo_"], `fig[do]_[${A}_-]{30,128}`),
  shape("rubygems-key", "rubygems_", `rubygems_[0-9a-f]{48}`),
  shape("xai-key", ["xai-", "pplx-", "csk-", "tvly-", "nvapi-", "fw_"], `(?:xai-|pplx-|csk-|tvly-|nvapi-|fw_)[${A}_-]{24,255}`),
  shape("langsmith-key", "lsv2_", `lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}`),
  shape("buildkite-token", ["bkua_", "bkaj_"], `bk(?:ua|aj)_[0-9a-f]{40}`),
  shape("mailgun-key", "key-", `key-[0-9a-f]{32}(?![0-9a-f])`),
  shape("artifactory-key", "AKCp", `AKCp[${A}]{60,80}`),
  shape("heroku-key", "HRKU-", `HRKU-[${A}_-]{30,80}`),
  shape("terraform-token", ".atlasv1.", `\\.atlasv1\\.[${A}_=-]{60,70}`),
  shape("telegram-token", ":AA", `:AA[${A}_-]{32,34}(?![${A}_-])`),
  shape("azure-sas", "sig=", `sig=[${A}%+/=_-]{40,128}`),
];

/** Characters before a beginning that make it the middle of a longer word. */
const WORD = /[A-Za-z0-9_-]/;

/** Tokens of known looks. A beginning inside a longer word is none, so that hashes and prose stay. */
export function findShapes(text: string): Match[] {
  const matches: Match[] = [];
  for (const { kind, starts, whole } of SHAPES)
    for (const beginning of starts)
      for (let at = text.indexOf(beginning); at !== -1; at = text.indexOf(beginning, at + 1)) {
        if (at > 0 && WORD.test(beginning[0]!) && WORD.test(text[at - 1]!)) continue;
        whole.lastIndex = at;
        const found = whole.exec(text);
        if (!found) continue;
        matches.push({ start: at, end: at + found[0].length, kind });
        at += found[0].length - 1;
      }
  return matches;
}

const STARTS = [...new Set(SHAPES.flatMap(({ starts }) => starts))].filter((start) => WORD.test(start[0]!) && start.length >= 3);
const TOKEN = /[A-Za-z0-9_.+/=-]/;
const TAIL_MAX = 4096;

/** A token that begins at the end of a text and may go on in the next: from its beginning to the end. */
export function findOpenShape(text: string): Match | undefined {
  let from = text.length;
  while (from > 0 && text.length - from < TAIL_MAX && TOKEN.test(text[from - 1]!)) from--;
  const run = text.slice(from);
  let first: number | undefined;
  for (const beginning of STARTS) {
    const at = run.indexOf(beginning);
    const bounded = at === 0 || (at > 0 && !WORD.test(run[at - 1]!));
    if (bounded && run.length - at > beginning.length && (first === undefined || at < first)) first = at;
  }
  return first === undefined ? undefined : { start: from + first, end: text.length, kind: "partial" };
}

// The check runs of a commit at GitHub or a server that speaks like it: every page, until all have ended.

/** A check run, as far as a verdict needs it. */
export type CheckRun = { name: string; status: string; conclusion: string | null; html_url?: string };
/** How the checks of a commit stand together. */
export type Verdict = { done: boolean; passed: boolean; total: number; failed: CheckRun[]; running: CheckRun[] };

const PER_PAGE = 100;
const PAGES_MAX = 20;
/** Conclusions that let a commit pass. */
const GOOD = new Set(["success", "neutral", "skipped"]);

/** @param api such as https://api.github.com  @throws Error when the server refuses or does not answer in time */
export async function checkRuns(request: {
  api: string;
  repo: string;
  ref: string;
  token?: string;
  timeoutMs: number;
  fetch?: (request: Request) => Promise<Response>;
}): Promise<CheckRun[]> {
  const { api, repo, ref, token, timeoutMs, fetch: send = fetch } = request;
  const runs: CheckRun[] = [];
  for (let page = 1; page <= PAGES_MAX; page++) {
    const url = new URL(
      `${api.replace(/\/$/, "")}/repos/${repo.split("/").map(encodeURIComponent).join("/")}/commits/${encodeURIComponent(ref)}/check-runs`,
    );
    url.searchParams.set("per_page", String(PER_PAGE));
    url.searchParams.set("page", String(page));
    const headers = { accept: "application/vnd.github+json", "user-agent": "kxm", ...(token && { authorization: `Bearer ${token}` }) };
    const response = await send(new Request(url, { headers, redirect: "error", signal: AbortSignal.timeout(timeoutMs) }));
    if (!response.ok) throw new Error(`the checks of ${ref} cannot be read: ${response.status}`);
    const body = (await response.json()) as { total_count?: number; check_runs?: CheckRun[] };
    runs.push(...(body.check_runs ?? []));
    if ((body.check_runs ?? []).length < PER_PAGE || runs.length >= (body.total_count ?? 0)) break;
  }
  return runs;
}

/** What the check runs say together. A commit without any is not done: its checks may not have begun. */
export function verdictOf(runs: readonly CheckRun[]): Verdict {
  const running = runs.filter(({ status }) => status !== "completed");
  const failed = runs.filter(({ status, conclusion }) => status === "completed" && !GOOD.has(conclusion ?? ""));
  return { done: runs.length > 0 && running.length === 0, passed: failed.length === 0, total: runs.length, failed, running };
}

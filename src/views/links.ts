// Addresses of the dashboard's pages, once. A page of one thing is found by our id; `project` keeps the reader in the project that was chosen.

const enc = encodeURIComponent;

/** An address with parameters; empty and absent ones are left out. */
export function link(path: string, params: Readonly<Record<string, string | number | undefined>> = {}): string {
  const query = Object.entries(params)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => `${enc(name)}=${enc(String(value))}`);
  const [bare, hash] = path.split("#") as [string, string | undefined];
  return `${bare}${query.length > 0 ? `${bare.includes("?") ? "&" : "?"}${query.join("&")}` : ""}${hash === undefined ? "" : `#${hash}`}`;
}

/** The project of the address, if one was chosen: what every link of a page carries on. */
type Within = { project?: string | undefined };
/** The same, and what the page is asked to show. */
type More = Within & Readonly<Record<string, string | number | undefined>>;

export const agentLink = (id: string, within: Within = {}) => link(`/agents/${enc(id)}`, within);
export const messageLink = (id: string, within: Within = {}) => link(`/messages/${enc(id)}`, within);
/** A form for a new message. @param to ids or names of agents */
export const composeLink = (to: readonly string[], within: Within & { correlation?: string | undefined } = {}) =>
  link("/messages/new", { to: to.join(", "), ...within });
/** A lease is named by its project and its name. `.` and `..` would be steps of the path, so they travel as a parameter. */
export const leaseLink = (project: string, name: string, more: Readonly<Record<string, string>> = {}) =>
  /^\.\.?$/.test(name) ? link("/leases/-", { project, name, ...more }) : link(`/leases/${enc(name)}`, { project, ...more });
/** A run of a Runtime. */
export const runLink = (projectId: string, runId: string, more: More = {}) => link(`/runs/${enc(projectId)}/${enc(runId)}`, more);
/** A workflow run of the hub itself. */
export const workflowRunLink = (id: string, more: More = {}) => link(`/workflows/${enc(id)}`, more);
export const approvalLink = (id: string, more: More = {}) => link(`/approvals/${enc(id)}`, more);
export const conflictLink = (id: string, within: Within = {}) => link(`/sync/${enc(id)}`, within);
export const alertLink = (id: string, within: Within = {}) => link(`/sync/${enc(id)}`, within);
/** A Runtime is one per hub project. */
export const runtimeLink = (project: string, runtimeId: string) => link(`/runtimes/${enc(runtimeId)}`, { project });
/** A receiver of a project's events, with its delivery log. */
export const webhookLink = (id: string, more: More = {}) => link(`/webhooks/${enc(id)}`, more);
/** An entry of the journal: its project's journal from that entry on. */
export const journalLink = (project: string, id: string) => link("/journal", { project, entry: id });
/** A state key with everything it ever said. */
export const stateLink = (project: string, key: string) => link("/context", { project, key });

// What every request passes before any route: its id, the Host and Origin it may carry, and its place under the rate limit.
import { HubError } from "../protocol/errors.ts";

const REQUEST_ID = /^[A-Za-z0-9._-]{1,80}$/;

/** What later steps know of a request. */
export interface Admission {
  requestId: string;
  /** Headers that belong on the answer whatever it is. */
  headers: Record<string, string>;
}

/** Rules of admission of one listener. */
export interface AdmissionRules {
  newRequestId: () => string;
  /** `name:port` (or bare name for the default port), lower case, that Host may be. Filled once the port is known. */
  hosts: ReadonlySet<string>;
  /** Origin of the hub's public address, when a proxy stands in front of it. */
  publicOrigin?: string | undefined;
}

/** The request's own id when it is well formed, else a new one. */
export function admit(request: Request, rules: AdmissionRules): Admission {
  const given = request.headers.get("x-request-id");
  const requestId = given !== null && REQUEST_ID.test(given) ? given : rules.newRequestId();
  return { requestId, headers: { "x-request-id": requestId } };
}

/**
 * Refuses requests for other hosts (DNS rebinding, joined or forged Host headers), broken percent escapes, and cross-origin changes or streams.
 * @param guarded whether an Origin header must match: true for changes and streams
 * @throws HubError host_forbidden, origin_forbidden, protocol_error
 */
export function checkOrigin(request: Request, rules: AdmissionRules, guarded: boolean): void {
  const { url, headers } = request;
  const authority = url.slice(url.indexOf("://") + 3, pathStart(url)).toLowerCase();
  const host = headers.get("host")?.toLowerCase() ?? authority;
  if (!rules.hosts.has(host) || authority !== host) throw new HubError("host_forbidden", "this hub does not answer under that host name");
  if (guarded && !isOwn(request, rules, host)) throw new HubError("origin_forbidden", "this hub does not answer pages of another origin");
  if (url.includes("%")) {
    let plain: string;
    try {
      plain = decodeURIComponent(url);
    } catch {
      throw new HubError("protocol_error", "the path has a malformed percent escape");
    }
    if (plain.includes("\0")) throw new HubError("protocol_error", "the address holds a NUL, which no name here has"); // PostgreSQL stores none
  }
}

/**
 * Whether a request is from the hub's own pages, or from no page at all. A form of a page without a referrer says `Origin: null`; then the browser's own
 * word for where it came from counts, which no page can set.
 */
function isOwn({ headers }: Request, rules: AdmissionRules, host: string): boolean {
  const [origin, site] = [headers.get("origin")?.toLowerCase(), headers.get("sec-fetch-site")];
  if (site === "cross-site" || site === "same-site") return false;
  if (origin === undefined || origin === `http://${host}`) return true;
  if (origin === "null") return site === "same-origin";
  return isPublic(rules, host) && origin === rules.publicOrigin;
}

/** Whether a request came in under the public address: only then is its origin the hub's own. */
const isPublic = ({ publicOrigin }: AdmissionRules, host: string) => publicOrigin?.endsWith(`://${host}`) === true;

const pathStart = (url: string) => {
  const at = url.indexOf("/", url.indexOf("://") + 3);
  return at === -1 ? url.length : at;
};

/** Every spelling of Host that reaches a listener: the loopback names and the configured ones, with the port. */
export function hostsOf(port: number, names: readonly string[]): Set<string> {
  const all = ["localhost", "127.0.0.1", "[::1]", ...names.map((name) => name.toLowerCase())];
  return new Set(all.flatMap((name) => (port === 80 ? [name, `${name}:80`] : [`${name}:${port}`])));
}

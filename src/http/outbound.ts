// Requests to addresses that people gave us: checked when they are given and again at each use, connected only to the address that was checked,
// without following redirects. What is not public is refused unless exactly this host and port was allowed.
import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import { HubError } from "../protocol/errors.ts";

const PRIVATE = new BlockList();
for (const [address, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.31.196.0", 24], // with the two below: AS112 and AMT, anycast that ends wherever the network around it says
  ["192.52.193.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["192.175.48.0", 24],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const)
  PRIVATE.addSubnet(address, prefix, "ipv4");
// Only global unicast (2000::/3) is public in IPv6; out of it come documentation, 6to4 and Teredo, which hide IPv4 addresses.
const PUBLIC_6 = new BlockList();
PUBLIC_6.addSubnet("2000::", 3, "ipv6");
const PRIVATE_6 = new BlockList();
for (const [address, prefix] of [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const)
  PRIVATE_6.addSubnet(address, prefix, "ipv6");

const PORTS_REFUSED = new Set([22, 23, 25, 53, 110, 143, 389, 445, 465, 587, 993, 995, 3306, 5432, 6379, 11211, 27017]);
const NAMES_REFUSED = /(^|\.)(localhost|local|internal|intranet|lan|home\.arpa|localdomain)$/;

/** Whether an IP address is reachable from the public network and nothing else. */
export const isPublicAddress = (address: string): boolean => {
  const family = isIP(address);
  if (family === 4) return !PRIVATE.check(address, "ipv4");
  return family === 6 && PUBLIC_6.check(address, "ipv6") && !PRIVATE_6.check(address, "ipv6");
};

const refused = (why: string) => new HubError("invalid_webhook_url", `the address is refused: ${why}`);
const privately = () =>
  new HubError("invalid_webhook_url", "the address is refused: its host is not public", {
    hint: "If this exact host and port is meant, allow it: `kxm webhook add … --allow-private`, allowPrivate in the API, the box on the page.",
  });

/**
 * Checks an address without asking the network.
 * @param allowPrivate exactly this host and port may be private, and http is enough
 * @throws HubError invalid_webhook_url
 */
export function checkAddress(url: string, allowPrivate: boolean): URL {
  const parsed = URL.parse(url);
  if (!parsed || (parsed.protocol !== "https:" && parsed.protocol !== "http:")) throw refused("it must be an https address");
  if (parsed.username || parsed.password) throw refused("it must not hold a user name or password");
  if (parsed.hash) throw refused("it must not have a fragment");
  if (allowPrivate) return parsed;
  const host = parsed.hostname
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "")
    .toLowerCase();
  if (isIP(host) ? !isPublicAddress(host) : NAMES_REFUSED.test(host) || !host.includes(".")) throw privately();
  if (parsed.protocol !== "https:") throw refused("it must be https");
  if (PORTS_REFUSED.has(Number(parsed.port || 443))) throw refused("its port belongs to another kind of service");
  return parsed;
}

/** Resolves names; replaced by tests. */
export type Resolver = (host: string) => Promise<string[]>;
const systemResolver: Resolver = async (host) => (await lookup(host, { all: true })).map(({ address }) => address);

/** What came back. The body is never returned to whoever asked for the request. */
export type Posted = { status: number; retryAfter: string | null };

const ANSWER_BYTES_MAX = 4_096; // read and thrown away, so that the connection can be used again

/**
 * Posts a body to a checked address.
 * @param timeoutMs for everything: resolving, connecting, sending, reading
 * @throws HubError invalid_webhook_url when the name now leads to a private address; Error when the receiver cannot be reached in time
 */
export async function post(request: {
  url: string;
  allowPrivate: boolean;
  headers: Record<string, string>;
  body: string;
  timeoutMs: number;
  resolve?: Resolver;
}): Promise<Posted> {
  const { allowPrivate, headers, body, timeoutMs, resolve = systemResolver } = request;
  const url = checkAddress(request.url, allowPrivate);
  const signal = AbortSignal.timeout(timeoutMs);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const addresses = isIP(host) ? [host] : await within(resolve(host), signal);
  if (addresses.length === 0) throw new Error("the name has no address");
  if (!allowPrivate && !addresses.every(isPublicAddress)) throw refused("its name leads to an address that is not public");
  const pinned = new URL(url);
  pinned.hostname = isIP(addresses[0]!) === 6 ? `[${addresses[0]}]` : addresses[0]!;
  const response = await fetch(pinned, {
    method: "POST",
    body,
    headers: { ...headers, host: url.host },
    redirect: "manual",
    signal,
    ...(url.protocol === "https:" && { tls: { serverName: host } }),
  } as RequestInit);
  await drain(response, signal);
  return { status: response.status, retryAfter: response.headers.get("retry-after") };
}

async function within<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const late = () => reject(new Error("the name was not resolved in time"));
  signal.addEventListener("abort", late, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", late);
  }
}

async function drain(response: Response, signal: AbortSignal) {
  const reader = response.body?.getReader();
  for (let size = 0; reader && size < ANSWER_BYTES_MAX && !signal.aborted; ) {
    const { done, value } = await reader.read();
    if (done) return;
    size += value.length;
  }
  await reader?.cancel().catch(() => {});
}

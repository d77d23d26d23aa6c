// What is said on this machine stays on it: a proxy that the environment names must never see a request, and the token in it, to a loopback address.

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
const PROXIES = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
const EXCEPTIONS = ["NO_PROXY", "no_proxy"];

/**
 * Takes loopback addresses out of the proxy settings of this process, before the first request to one. Bun's fetch heeds those settings for every
 * address (1.4.5); other programs' fetch does not, and a browser has no such settings.
 * @param hostname as URL gives it
 */
export function keepLoopbackDirect(hostname: string): void {
  const env = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env;
  if (!env || !LOOPBACK.test(hostname) || !PROXIES.some((name) => env[name])) return;
  const host = hostname.replace(/^\[|\]$/g, "");
  for (const name of EXCEPTIONS) {
    const listed = (env[name] ?? "").split(",").map((item) => item.trim());
    if (!listed.includes(host)) env[name] = [...listed.filter(Boolean), host].join(",");
  }
}

// What a browser loads besides pages: one stylesheet, htmx, our script, the logo. Embedded as text, so that a binary carries them.
// Invariant: an address contains the hash of its content, so an answer may be kept for ever and a new build is never stale.
import htmx from "htmx.org/dist/htmx.min.js" with { type: "text" };
import logo from "./logo.svg" with { type: "text" };
import clock from "./script/clock.browser.js" with { type: "text" };
import live from "./script/live.browser.js" with { type: "text" };
import page from "./script/page.browser.js" with { type: "text" };
import { STYLESHEET } from "./stylesheet.ts";

/** The files of our script share one scope and nothing else sees it. Sent without comments and long names: under 8 KB in all. */
const SCRIPT = new Bun.Transpiler({ loader: "js", target: "browser", minifyWhitespace: true, ...{ minify: true } }).transformSync(
  `(() => {\n"use strict";\n${clock}${live}${page}})();\n`,
);

export type AssetName = "app.css" | "app.js" | "htmx.js" | "logo.svg";
export type Asset = {
  name: AssetName;
  /** Where it is served: `/assets/app-3f9c0a1b2c3d.css`. */
  path: string;
  contentType: string;
  /** Strong validator, quoted. */
  etag: string;
  body: Uint8Array<ArrayBuffer>;
  gzip: Uint8Array<ArrayBuffer>;
};

const HASH_SHOWN = 16;

function asset(name: AssetName, text: string, contentType: string): Asset {
  const body = new TextEncoder().encode(text);
  const hash = new Bun.CryptoHasher("sha256").update(body).digest("hex").slice(0, HASH_SHOWN);
  const dot = name.lastIndexOf(".");
  return {
    name,
    path: `/assets/${name.slice(0, dot)}-${hash}${name.slice(dot)}`,
    contentType,
    etag: `"${hash}"`,
    body,
    gzip: Bun.gzipSync(body, { level: 9 }),
  };
}

/** Everything there is to serve. */
export const ASSETS: readonly Asset[] = [
  asset("app.css", STYLESHEET, "text/css; charset=utf-8"),
  asset("app.js", SCRIPT, "text/javascript; charset=utf-8"),
  asset("htmx.js", htmx, "text/javascript; charset=utf-8"),
  asset("logo.svg", logo, "image/svg+xml"),
];

const byName = new Map(ASSETS.map((one) => [one.name, one]));
const byPath = new Map(ASSETS.map((one) => [one.path, one]));

/** The address of an asset, for pages. */
export const assetUrl = (name: AssetName): string => byName.get(name)!.path;

/**
 * The answer to a request for `path` (a URL path), or undefined when there is no such asset: an old hash is not found.
 * `accepts` is the request's Accept-Encoding, `ifNoneMatch` its If-None-Match.
 */
export function serveAsset(path: string, accepts = "", ifNoneMatch?: string | null): Response | undefined {
  const found = byPath.get(path);
  if (!found) return undefined;
  const headers: Record<string, string> = {
    "content-type": found.contentType,
    "cache-control": "public, max-age=31536000, immutable",
    etag: found.etag,
    vary: "accept-encoding",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
  };
  if (ifNoneMatch === found.etag) return new Response(null, { status: 304, headers });
  if (!/\bgzip\b/.test(accepts)) return new Response(found.body, { headers });
  return new Response(found.gzip, { headers: { ...headers, "content-encoding": "gzip" } });
}

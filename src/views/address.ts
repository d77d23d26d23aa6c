// The address a page has itself: with other parameters, and that of its fragment; and whether an address is one of this hub. Addresses of other pages
// are in links.ts.

const HERE = "http://hub.invalid";

/** An address of this hub, never of another host, or the front page. It is read as a browser reads it, which drops tabs and takes a backslash for a slash. */
export function ownAddress(text: string): string {
  const url = URL.parse(text, HERE);
  return url?.origin === HERE && !url.pathname.startsWith("//") ? `${url.pathname}${url.search}${url.hash}` : "/";
}

/** The page that an address belongs to: a fragment's is its page's. */
export const pagePath = ({ pathname }: URL): string => pathname.replace(/^\/ui(?=\/)/, "");

/** The fragment of the page at this address, with the same parameters. */
export const fragmentHref = (url: URL): string => `/ui${pagePath(url)}${url.search}`;

/** This page with some parameters changed (undefined removes one): filters, tabs, pages of a list. */
export const here = (url: URL, changes: Readonly<Record<string, string | undefined>> = {}): string => withQuery(pagePath(url), url, changes);

/** Another address with all parameters of this page, some of them changed: a filter may have several `q`. */
export function withQuery(path: string, url: URL, changes: Readonly<Record<string, string | undefined>> = {}): string {
  const query = new URLSearchParams(url.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return text === "" ? path : `${path}?${text}`;
}

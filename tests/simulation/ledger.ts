// Who holds which lease, as somebody would know who heard every answer of the hub: one holder at a time, under a fence that only rises.
type Lease = { name: string; fencingToken: number; holderAgentId: string; expiresAt: string };
type Held = { fence: number; holder: string; until: number; released: boolean };

/**
 * @param now the hub's clock, milliseconds since 1970
 * @param trouble hears what may never be
 */
export function leaseLedger(now: () => number, trouble: (what: string) => void) {
  const resources = new Map<string, Held>();
  return {
    /** The newest fence of a resource; 0 before the first. */
    newest: (name: string): number => resources.get(name)?.fence ?? 0,
    /** The hub granted or extended it. */
    granted: ({ name, fencingToken: fence, holderAgentId: holder, expiresAt }: Lease) => {
      const before = resources.get(name);
      const until = Date.parse(expiresAt);
      if (before && fence < before.fence) trouble(`the fence of ${name} went back from ${before.fence} to ${fence}`);
      else if (before && fence === before.fence && holder !== before.holder) trouble(`${name} has two holders under the fence ${fence}`);
      else if (before && fence > before.fence && !before.released && before.until > now())
        trouble(`${name} was granted under ${fence} while ${before.fence} was held`);
      if (!before || fence >= before.fence) resources.set(name, { fence, holder, until, released: false });
    },
    /** The hub took it back from its holder. */
    released: ({ name, fencingToken }: Pick<Lease, "name" | "fencingToken">) => {
      const held = resources.get(name);
      if (held?.fence === fencingToken) held.released = true;
    },
  };
}

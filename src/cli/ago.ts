// Times for people: how long ago, in one unit.

const UNITS: [number, string][] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
];

/** `5s`, `3m`, `2h`, `4d` since an ISO time. */
export const ago = (iso: string, now = Date.now()): string => span(now - Date.parse(iso));

/** Milliseconds in the largest unit that fits, rounded down. */
export function span(ms: number): string {
  for (const [size, unit] of UNITS) if (ms >= size) return `${Math.floor(ms / size)}${unit}`;
  return "0s";
}

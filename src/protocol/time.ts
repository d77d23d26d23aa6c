// Times: integer milliseconds inside, UTC ISO-8601 with milliseconds and Z on the wire.

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** Milliseconds since 1970 → `2026-01-02T03:04:05.678Z`. */
export const iso = (ms: number): string => new Date(ms).toISOString();

/** The same for a time that may be missing: null becomes undefined, so the member is left out. */
export const isoOrNone = (ms: number | null | undefined): string | undefined => (ms == null ? undefined : iso(ms));

/** A wire timestamp of a sync event: seconds or 1 to 9 fraction digits, always Z. */
export const TIMESTAMP = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?Z$/;

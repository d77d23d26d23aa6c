// How a search names kinds, and how a value stands behind its qualifier.
import type { SearchKind } from "../protocol/search.ts";

export const PLURALS: Record<SearchKind, string> = {
  message: "Messages",
  agent: "Agents",
  lease: "Leases",
  run: "Runs",
  event: "Events of runs",
  workflow: "Workflows",
  journal: "Journal",
  context: "Context",
};

/** A value as a qualifier holds it. */
export const valued = (key: string, value: string): string => `${key}:${/\s/.test(value) ? `"${value}"` : value}`;

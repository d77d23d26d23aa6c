// Where a house rule makes the code worse, and why. An exception that nothing needs any more is itself a finding.

/** `rule` is a rule's name, `path` one file. */
export type Exception = { rule: string; path: string; why: string };

export const EXCEPTIONS: Exception[] = [
  {
    rule: "rules and stores know no clock, no chance and no timer",
    path: "src/hub/loop.ts",
    why: "The one place that wakes up by itself. What is due is decided by the hub's clock; the timer only says when to look.",
  },
  {
    rule: "a file has at most 400 lines",
    path: "src/db/schema.ts",
    why: "One list of all tables is the first file a newcomer reads; split, nobody sees how they hang together.",
  },
  {
    rule: "a transaction is opened by the write lane alone",
    path: "src/db/migrate.ts",
    why: "A migration runs before the write lane exists, in one synchronous transaction.",
  },
  {
    rule: "rules and stores know no clock, no chance and no timer",
    path: "src/db/follow.ts",
    why: "A follower looks again each second in case a wake-up from another hub was lost.",
  },
  {
    rule: "rules and stores know no clock, no chance and no timer",
    path: "src/db/engine-sqlite.ts",
    why: "The lane measures how long its batch has run; no rule sees that time, and nothing stored depends on it.",
  },
  {
    rule: "rules and stores know no clock, no chance and no timer",
    path: "src/db/patience.ts",
    why: "Waiting for a lock, a probe or a connection is measured here, in monotonic time, for the whole store.",
  },
  {
    rule: "a transaction is opened by the write lane alone",
    path: "src/db/dialect-sqlite.ts",
    why: "A store that nobody serves yet (opening, restoring) has no lane; the callback is synchronous and runs one rule.",
  },
  {
    rule: "markup is trusted in few places",
    path: "src/views/ui/icon.tsx",
    why: "Drawings are constants of icon-paths.ts, and nothing else is passed.",
  },
  ...["evidence", "lists"].map((stories) => ({
    rule: "a function has at most 70 lines",
    path: `src/views/stories/${stories}.tsx`,
    why: "A story is a page of sample data; cut into functions it could no longer be read from top to bottom.",
  })),
  {
    rule: "programs are never minified",
    path: "src/views/assets/assets.ts",
    why: "What the browser gets is minified; no hook of the HTTP framework is in there.",
  },
];

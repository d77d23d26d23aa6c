// Ids that a Runtime makes: `<prefix>_<32 lower-case hex>`, sortable by creation time. The Runtime's own id is shorter and kept for ever.

/** What a prefix stands for. One place, so that no two things share one. */
const RUNTIME_ID_PREFIXES = {
  run: "run",
  evt: "event",
  asg: "assignment",
  att: "attempt of an assignment",
  gat: "attempt of a gate",
  evd: "evidence",
  eff: "effect",
  apr: "approval request",
  art: "artifact",
  rcp: "drive receipt",
  int: "intake message",
  cmd: "command",
  mem: "memory revision",
  prj: "project",
} as const;
export type RuntimeIdPrefix = keyof typeof RUNTIME_ID_PREFIXES;

/** Makes ids; tests and the simulator give their own. */
export type NewId = (prefix: RuntimeIdPrefix) => string;
export const newId: NewId = (prefix) => `${prefix}_${Bun.randomUUIDv7("hex").replaceAll("-", "")}`;

/** A new id for this machine's Runtime: `rtm_` and 24 random hex digits. */
export const newRuntimeId = (): string => `rtm_${crypto.getRandomValues(new Uint8Array(12)).toHex()}`;

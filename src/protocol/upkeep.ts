// What came of a backup or a check of the store.

/** What a backup made. */
export type BackupMade = { file: string; bytes: number; rows: number; damaged: number };
/** What a check found; of the damage only the first few places are named. */
export type CheckMade = { rows: number; damaged: number; damage: { table: string; id: string; what: string }[]; notChecked: string[] };
/** One of them, or why there is neither. */
export type UpkeepOutcome = { backup: BackupMade } | { check: CheckMade } | { failure: string; hint?: string };

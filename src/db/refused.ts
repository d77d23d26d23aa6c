// Why a store was not opened. A refusal happens before anything is created, renamed or truncated, and names the path and what to do.

/** What stood in the way. Closed, so that the command line can give each its exit text; docs/storage.md explains them. */
export const REFUSALS = [
  "store_empty",
  "store_not_sqlite",
  "store_foreign",
  "store_truncated",
  "store_damaged",
  "store_newer",
  "store_migration_changed",
  "store_read_only",
  "store_symlink",
  "store_foreign_owner",
  "store_open_to_all",
  "store_folder_unusable",
  "store_foreign_log",
  "store_held",
  "store_locked",
  "store_disk",
  "store_settings",
  "sqlite_too_old",
  "backup_exists",
  "backup_missing",
  "backup_damaged",
  "database_unreachable",
  "database_unsuitable",
] as const;
export type RefusalCode = (typeof REFUSALS)[number];

/** The store cannot be used as it is; the hub must not start. One sentence that names the path, and one that says what to do next. */
export class StoreRefused extends Error {
  override readonly name = "StoreRefused";
  constructor(
    readonly code: RefusalCode,
    message: string,
    readonly hint: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

// One door to a store: picks the engine, and gives every reason not to start as a StoreRefused.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Engine } from "./engine.ts";
import { openPostgres, type PostgresOptions } from "./engine-postgres.ts";
import { openSqlite, type SqliteOptions } from "./engine-sqlite.ts";
import { StoreRefused } from "./refused.ts";

export type OpenOptions = SqliteOptions &
  PostgresOptions & {
    /** `postgres://…`: the database that hubs share. Wins over `path`. */
    url?: string | undefined;
    /** The data file of a hub of its own; `:memory:` for one that is gone when the hub ends. */
    path?: string | undefined;
  };

/**
 * Opens the hub's store, brought to the current schema.
 * @throws StoreRefused when it must not be used; then nothing was created, renamed or changed
 */
export async function openEngine({ url, path, ...options }: OpenOptions): Promise<Engine> {
  if (url !== undefined) {
    if (/^postgres(ql)?:\/\//.test(url)) return openPostgres(url, options);
    throw new StoreRefused(
      "database_unsuitable",
      "the database address is not one of PostgreSQL",
      "Write KXM_DATABASE_URL=postgres://user@host/database.",
    );
  }
  if (path === undefined) throw new Error("openEngine needs a url or a path");
  return path === ":memory:" ? openTemporary(options) : openSqlite(resolve(path), options);
}

/** SQLite's own `:memory:` belongs to one connection and a hub has two, so this is a private file that is removed at the end. */
async function openTemporary(options: SqliteOptions): Promise<Engine> {
  const folder = mkdtempSync(join(tmpdir(), "kxm-memory-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    const engine = await openSqlite(join(folder, "kxm.db"), options);
    return {
      ...engine,
      async close() {
        await engine.close();
        remove();
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}

// What a PostgreSQL server must be like before a hub trusts it with acknowledged writes.
import { SQL } from "bun";
import { isConnectionLoss, sqlState } from "./dialect-postgres.ts";
import type { StoreLog } from "./engine.ts";
import { StoreRefused } from "./refused.ts";

const VERSION_MIN = 130_000;
type Facts = { version: number; encoding: string; replica: boolean; commits: string; fsync: string };

/**
 * Checks that the server is reachable and suitable.
 * @returns session settings that every connection of the hub needs
 * @throws StoreRefused database_unreachable, database_unsuitable; never with the password of the address
 */
export async function preparePostgres(url: string, log: StoreLog): Promise<Record<string, string>> {
  const where = describePostgres(url);
  const { version, encoding, replica, commits, fsync } = await factsOf(url, where);
  const unsuitable = (why: string, hint: string) => new StoreRefused("database_unsuitable", `${where} ${why}`, hint);
  if (version < VERSION_MIN) throw unsuitable(`is PostgreSQL ${Math.floor(version / 10_000)}`, "Use PostgreSQL 13 or newer.");
  if (encoding !== "UTF8") throw unsuitable(`stores text as ${encoding}`, "Create the database with encoding UTF8.");
  if (replica) throw unsuitable("is a read-only replica", "Name the primary server in KXM_DATABASE_URL.");
  if (fsync !== "on") log("database_not_durable", { where, fsync });
  return commits === "off" ? { synchronous_commit: "on" } : {}; // an answer must mean durable, whatever the server's default is
}

async function factsOf(url: string, where: string): Promise<Facts> {
  const client = new SQL({ url, max: 1, connectionTimeout: 5 });
  try {
    const [facts] = await client`select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding,
      pg_is_in_recovery() as replica, current_setting('synchronous_commit') as commits, current_setting('fsync') as fsync`;
    return facts as Facts;
  } catch (cause) {
    const why = isConnectionLoss(cause) ? "does not answer" : `refused the hub: ${(cause as Error).message}`;
    const hint = sqlState(cause) === "3D000" ? "Create the database first." : "Check KXM_DATABASE_URL, the server and the rights of its user.";
    throw new StoreRefused("database_unreachable", `${where} ${why}`, hint, { cause });
  } finally {
    await client.close();
  }
}

/** Host, port and database of an address, without user or password: fit for logs and errors. */
export function describePostgres(url: string): string {
  try {
    const { hostname, port, pathname } = new URL(url);
    return `PostgreSQL at ${hostname || "localhost"}:${port || 5432}${pathname}`;
  } catch {
    return "the PostgreSQL address in KXM_DATABASE_URL";
  }
}

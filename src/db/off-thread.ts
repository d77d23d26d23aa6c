// A statement that takes seconds (a copy of the store, a check of every page) runs in a thread of its own, so that a hub in this process goes on serving.
import { visitorOptions } from "./pragmas.ts";

const WORKER = `import { Database } from "bun:sqlite";
self.onmessage = ({ data: { path, options, sql, values } }) => {
  let database, reply;
  try {
    database = new Database(path, options);
    database.exec("pragma busy_timeout = 5000; pragma trusted_schema = 0");
    reply = { rows: database.query(sql).all(...values) };
  } catch (error) {
    reply = { message: error.message, code: error.code };
  } finally {
    database?.close(true);
  }
  postMessage(reply); // last: the thread is ended when it arrives
};`;

/**
 * Runs one statement that changes nothing on a SQLite file, in another thread.
 * @returns its rows
 * @throws Error with the `code` of SQLite's error
 */
export async function runOffThread(path: string, sql: string, ...values: string[]): Promise<Record<string, unknown>[]> {
  const address = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
  const worker = new Worker(address);
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>[]>();
  worker.onmessage = ({ data }) => ("rows" in data ? resolve(data.rows) : reject(Object.assign(new Error(data.message), { code: data.code })));
  worker.onerror = ({ message }) => reject(new Error(message));
  worker.postMessage({ path, options: visitorOptions(path), sql, values });
  try {
    return await promise;
  } finally {
    worker.terminate();
    URL.revokeObjectURL(address);
  }
}

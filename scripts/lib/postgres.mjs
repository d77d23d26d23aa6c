// A private PostgreSQL server for one test run: loopback only, random port and password, gone when the run ends, however it ends.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/**
 * Starts a server and resolves with its address and a way to stop it. The server lives in a keeper process that holds a pipe to
 * this one: when this process ends, even by kill -9, the pipe closes and the keeper stops the server and removes its files.
 * @param {string} bin folder with initdb and postgres
 * @param {{durable?: boolean}} options durable: fsync on, for measurements
 * @returns {Promise<{url: string, stop: () => Promise<void>}>}
 */
export async function startPostgres(bin, { durable = false } = {}) {
  const keeper = spawn(process.execPath, [fileURLToPath(new URL("postgres-keeper.mjs", import.meta.url)), bin, durable ? "on" : "off"], {
    stdio: ["pipe", "pipe", "inherit"],
    detached: true,
  });
  const ended = new Promise((resolve) => keeper.once("exit", resolve));
  const url = await new Promise((resolve, reject) => {
    let text = "";
    keeper.stdout.on("data", (chunk) => {
      text += chunk;
      if (text.endsWith("\n")) resolve(text.trim());
    });
    keeper.once("error", reject);
    keeper.once("exit", () => reject(new Error(text.trim() || "PostgreSQL did not start")));
  });
  const stop = async () => {
    keeper.stdin.end();
    await ended;
  };
  return { url, stop };
}

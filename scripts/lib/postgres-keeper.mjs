// Runs one private PostgreSQL server until stdin closes, then stops it and removes its files. Prints the server's address when it is ready.
// Arguments: the folder with initdb and postgres, and fsync on|off. Its own process group: Ctrl-C at the terminal does not reach the server.
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const CONNECTIONS_MAX = 300;
const START_TRIES = 5;
const STOP_MS = 5_000;

const [bin, fsync] = process.argv.slice(2);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {}); // only the pipe decides
process.stdout.on("error", () => {}); // nobody reads any more: the pipe is about to close
const parentGone = new Promise((resolve) => process.stdin.once("close", resolve).resume());

const owner = serverUser();
const folder = mkdtempSync(join(owner.uid ? "/tmp" : tmpdir(), "kxm-postgres-")); // root's own TMPDIR may be closed to the server's account
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const password = randomBytes(18).toString("base64url");
createCluster();
const { server, port } = await startServer();
process.stdout.write(`postgres://postgres:${password}@127.0.0.1:${port}\n`);
const ended = new Promise((resolve) => server.once("exit", resolve));
await Promise.race([parentGone, ended]);
const force = setTimeout(() => server.kill("SIGKILL"), STOP_MS);
server.kill("SIGINT"); // "fast" shutdown: open connections are closed, files are left clean
if (server.exitCode === null && server.signalCode === null) await ended;
clearTimeout(force);
process.exit(0);

/** PostgreSQL refuses to run as root: the account its package made is used, or nobody. */
function serverUser() {
  if (process.getuid() !== 0) return {};
  for (const name of ["postgres", "nobody"]) {
    const [uid, gid] = ["-u", "-g"].map((flag) => Number.parseInt(spawnSync("id", [flag, name], { encoding: "utf8" }).stdout, 10));
    if (uid > 0) return { uid, gid };
  }
  stop("no account to run PostgreSQL as");
}

function createCluster() {
  const passwordFile = join(folder, "password");
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (owner.uid) for (const path of [folder, passwordFile]) chownSync(path, owner.uid, owner.gid);
  chmodSync(folder, 0o700);
  const args = [
    "-D",
    join(folder, "data"),
    "-U",
    "postgres",
    "-E",
    "UTF8",
    "--locale=C",
    "--no-sync",
    "-A",
    "scram-sha-256",
    `--pwfile=${passwordFile}`,
  ];
  const { status, stderr, error } = spawnSync(join(bin, "initdb"), args, { ...owner, cwd: folder, encoding: "utf8", env: serverEnv() });
  if (status !== 0) stop(`initdb failed: ${(stderr || String(error)).trim().split("\n").at(-1)}`);
}

async function startServer() {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const { server, log } = await launch(port);
    if (server.exitCode === null) return { server, port };
    if (attempt === START_TRIES || !log.includes("could not bind")) stop(`PostgreSQL did not start: ${log.trim().split("\n").at(-1)}`);
  }
}

/** Starts the server and resolves when it is ready or has ended. */
function launch(port) {
  const settings = {
    listen_addresses: "127.0.0.1",
    port,
    unix_socket_directories: "",
    max_connections: CONNECTIONS_MAX,
    fsync,
    full_page_writes: fsync,
    log_min_messages: "warning",
    timezone: "UTC",
  };
  const args = ["-D", join(folder, "data"), ...Object.entries(settings).flatMap(([key, value]) => ["-c", `${key}=${value}`])];
  const server = spawn(join(bin, "postgres"), args, { ...owner, cwd: folder, stdio: ["ignore", "ignore", "pipe"], env: serverEnv() });
  let log = "";
  return new Promise((resolve) => {
    const done = () => resolve({ server, log });
    server.once("exit", done).once("error", (error) => {
      log += error.message;
      done();
    });
    server.stderr.setEncoding("utf8").on("data", (chunk) => {
      log = (log + chunk).slice(-4_096);
      if (log.includes("ready to accept connections")) done();
    });
  });
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

function serverEnv() {
  return { PATH: process.env.PATH, HOME: folder, TMPDIR: folder, LC_ALL: "C" };
}

function stop(reason) {
  process.stdout.write(reason);
  process.exit(1);
}

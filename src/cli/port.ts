// Who listens on a port: for the sentence that a hub which cannot start says.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

const LISTEN = "0A"; // state of a listening socket in /proc/net/tcp

/** A program that listens: what its command line calls it, and the folder it was started in. */
export type Listener = { name: string; pid: string; folder: string | undefined };

/**
 * The program that listens on a port of this machine, where the system tells (Linux, own processes or root).
 * @param address ask only for ::1
 */
export function listenerOf(port: number, address?: "::1"): Listener | undefined {
  const tables = address ? ["/proc/net/tcp6"] : ["/proc/net/tcp", "/proc/net/tcp6"];
  const inodes = new Set(tables.flatMap((table) => listeningInodes(table, port)));
  if (inodes.size === 0) return undefined;
  for (const pid of namesIn("/proc").filter((name) => /^\d+$/.test(name))) {
    if (!namesIn(`/proc/${pid}/fd`).some((fd) => inodes.has(socketInode(`/proc/${pid}/fd/${fd}`)))) continue;
    return { name: nameOf(pid), pid, folder: folderOf(pid) };
  }
  return undefined;
}

function listeningInodes(table: string, port: number): string[] {
  const wanted = port.toString(16).toUpperCase().padStart(4, "0");
  const rows = textOf(table)
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/));
  return rows.filter(([, local, , state]) => state === LISTEN && local?.endsWith(`:${wanted}`)).map((row) => row[9]!);
}

function nameOf(pid: string): string {
  const [program = "", ...args] = textOf(`/proc/${pid}/cmdline`).split("\0").filter(Boolean);
  const short = (program.split("/").at(-1) ?? "").replace(/\.exe$/, "");
  const script = args.find((arg) => /\.[cm]?[jt]s$/.test(arg));
  return [short || textOf(`/proc/${pid}/comm`).trim(), script?.split("/").at(-1)].filter(Boolean).join(" ");
}

function folderOf(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}

function socketInode(link: string): string {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(link))?.[1] ?? "";
  } catch {
    return ""; // closed meanwhile, or not ours to see
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

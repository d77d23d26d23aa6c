// The machine under the engine: its programs, its Git worktrees and its project files. The engine reaches them only through this, so that the simulation can put a machine
// of its own in their place; everything that decides runs the same on either.
import { statSync } from "node:fs";
import * as launching from "./harness/launch.ts";
import { knownVersion, recentReports } from "./harness/probe.ts";
import * as processes from "./harness/process.ts";
import { findProgram } from "./harness/programs.ts";
import { loadBundle } from "./project/bundle.ts";
import * as worktrees from "./workspace/worktrees.ts";

type Launching = Pick<
  typeof launching,
  "prepareFolder" | "launch" | "reattach" | "hasStarted" | "shellPid" | "exitOf" | "readOutput" | "clearFolder" | "folderExists"
>;
type Processes = Pick<typeof processes, "bootId" | "startedAt" | "isAlive" | "markedProcesses" | "endAttempt">;

/** Programs: found, started, watched and ended. */
export type Programs = Launching & Processes & { find: typeof findProgram; version: typeof knownVersion; reports: typeof recentReports };
/** Folders that programs work in. */
export type Worktrees = Pick<typeof worktrees, "pinHeads" | "requireCommits" | "materialize" | "restore" | "capture"> & {
  isFolder: (path: string) => boolean;
};
/** `loadBundle` reads the files of a project. */
export type Machine = { programs: Programs; worktrees: Worktrees; loadBundle: typeof loadBundle };

/** The machine this process runs on. */
export const thisMachine: Machine = {
  programs: { ...launching, ...processes, find: findProgram, version: knownVersion, reports: recentReports },
  worktrees: { ...worktrees, isFolder: (path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true },
  loadBundle,
};

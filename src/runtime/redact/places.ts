// Places of this machine in a text: absolute paths of every system, home folders, and folders known by name. They say who and where, not what.
import type { Match } from "./known-secrets.ts";

/** Top folders that make a path of one name a place; other single names (`/help`, `/v1`) are not. */
const TOP =
  /^\/(?:bin|boot|dev|etc|home|lib|lib64|media|mnt|opt|private|proc|root|run|sbin|srv|sys|tmp|usr|var|Users|Volumes|Applications|System|Library|workspace|workspaces)$/;
const POSIX = /(?<![\w/.:~\])}%@=-])\/(?![\s/*])[^\s"'`<>|;,:()[\]{}*?\\]{1,4096}/g;
/** After `=`, `:` or `@` a path counts only when it is a clear one. */
const POSIX_AFTER_SIGN =
  /(?<=[=:@])\/(?:bin|etc|home|lib|lib64|mnt|opt|private|proc|root|run|srv|tmp|usr|var|Users|Volumes)\/[^\s"'`<>|;,:()[\]{}*?\\]{1,4096}/g;
const FILE_URL = /file:\/\/[^\s"'`<>|;,()[\]{}]{1,4096}/g;
const HOME = /(?<![\w/.-])~[A-Za-z0-9_-]{0,32}\/[^\s"'`<>|;,:()[\]{}*?\\]{0,4096}/g;
const WINDOWS = /(?<![A-Za-z0-9])[A-Za-z]:[\\/]{1,4}[^\s"'`<>|;,:()[\]{}*?\\/][^\s"'`<>|;,:()[\]{}*?]{0,4096}/g;
const UNC = /(?<![\w\\])(?:\\{2,4}|\\{2}\?\\)[A-Za-z0-9_.$-]{1,255}\\{1,2}[^\s"'`<>|;,:()[\]{}*?]{1,4096}/g;
const REST = /[^\s"'`<>|;,:()[\]{}*?]{0,4096}/y;

/**
 * Where places stand in a text.
 * @param folders folders known by name (home, state root, project roots): found also when their names hold spaces
 */
export function findPlaces(text: string, folders: readonly string[]): Match[] {
  const matches: Match[] = [];
  const add = (start: number, found: string) => {
    const length = found.length - (/[.!]+$/.exec(found)?.[0].length ?? 0); // the end of a sentence
    matches.push({ start, end: start + length, kind: "path" });
  };
  for (const folder of folders)
    for (let at = text.indexOf(folder); at !== -1; at = text.indexOf(folder, at + folder.length)) {
      REST.lastIndex = at + folder.length;
      add(at, folder + REST.exec(text)![0]);
    }
  if (text.includes("/"))
    for (const { 0: found, index } of text.matchAll(POSIX)) {
      const trimmed = found.replace(/[/.!]+$/, "");
      if (trimmed.indexOf("/", 1) !== -1 || TOP.test(trimmed)) add(index, found);
    }
  for (const pattern of text.includes("/") ? [POSIX_AFTER_SIGN, FILE_URL, HOME] : [])
    for (const { 0: found, index } of text.matchAll(pattern)) add(index, found);
  if (text.includes(":\\") || text.includes(":/")) for (const { 0: found, index } of text.matchAll(WINDOWS)) add(index, found);
  if (text.includes("\\\\")) for (const { 0: found, index } of text.matchAll(UNC)) add(index, found);
  return matches;
}

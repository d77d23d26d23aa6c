// Files as evidence: they must lie inside the workspace, be plain files with something in them, and are known by the hash of their bytes.
import { readFileSync, realpathSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import { sha256 } from "../../protocol/canonical.ts";
import { REPOSITORY_PATH } from "../../protocol/sync-event.ts";
import type { NewId } from "../ids.ts";
import type { EvidencePiece } from "./local.ts";

/** Bytes of a file that is hashed. */
const ARTIFACT_BYTES_MAX = 268_435_456;

/** The hash of one file of a workspace, or why it is no evidence. */
function artifactHash(folder: string, path: string): { hash: string } | { why: string } {
  if (!REPOSITORY_PATH.test(path)) return { why: `${JSON.stringify(path.slice(0, 200))} is not a path inside the repository` };
  try {
    const real = realpathSync(join(folder, path));
    if (!real.startsWith(realpathSync(folder) + sep)) return { why: `${path} leads out of the repository` };
    const stat = statSync(real);
    if (!stat.isFile()) return { why: `${path} is not a plain file` };
    if (stat.size === 0) return { why: `${path} is empty` };
    if (stat.size > ARTIFACT_BYTES_MAX) return { why: `${path} is larger than ${ARTIFACT_BYTES_MAX} bytes` };
    return { hash: `sha256:${sha256(readFileSync(real))}` };
  } catch {
    return { why: `${path} does not exist` };
  }
}

/** One file as a piece of evidence, or why it is none. */
export function artifactPiece(newId: NewId, given: { key: string; producer: string; path: string; folder: string }): EvidencePiece | string {
  const found = artifactHash(given.folder, given.path);
  if ("why" in found) return found.why;
  return { id: newId("evd"), key: given.key, kind: "artifact", producer: given.producer, hash: found.hash, text: given.path };
}

// What a worker is: a name at the hub and the harness that answers for it. Kept per project, so that workers come back with the Runtime.
import { join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { HARNESSES, OneOf } from "../../protocol/project-files.ts";
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import { readPrivate, writePrivate } from "../paths.ts";

export const WorkerSpec = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 64 }),
    harness: OneOf(HARNESSES, "The program that answers"),
    purpose: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    instructions: Type.Optional(Type.String({ minLength: 1, maxLength: 20_000 })),
    model: Type.Optional(
      Type.Object(
        { provider: Type.String({ minLength: 1, maxLength: 64 }), model: Type.String({ minLength: 1, maxLength: 200 }) },
        { additionalProperties: false },
      ),
    ),
    access: Type.Optional(OneOf(["read", "write"] as const, "Whether it may change files, in a worktree of its own")),
    command: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 4096 }), { minItems: 1, maxItems: 64 })),
    env: Type.Optional(Type.Array(Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]{0,127}$" }), { maxItems: 64 })),
    timeoutMs: Type.Optional(Type.Integer({ minimum: 100, maximum: 86_400_000 })),
  },
  { additionalProperties: false },
);
export type WorkerSpec = Static<typeof WorkerSpec>;

const WORKERS_MAX = 64;
const file = (folder: string) => join(folder, "workers.json");

/** A worker from a request. @throws RuntimeRefusal runtime_protocol_error naming the member that is wrong */
export function readSpec(given: unknown): WorkerSpec {
  if (!Value.Check(WorkerSpec, given)) {
    const wrong = Value.Errors(WorkerSpec, given).First()?.path || "/";
    throw new RuntimeRefusal("runtime_protocol_error", `the worker has no valid ${wrong}`);
  }
  if ((given.harness === "command") !== (given.command !== undefined))
    throw new RuntimeRefusal("runtime_protocol_error", "a worker with the harness command needs command, and only that one");
  return given;
}

/** The workers of a project. A file that somebody damaged is no workers and a refusal that says so. @throws RuntimeRefusal state_file_invalid */
export function readSpecs(folder: string): WorkerSpec[] {
  const text = readPrivate(file(folder));
  if (text === undefined) return [];
  try {
    return (JSON.parse(text) as unknown[]).map(readSpec);
  } catch (cause) {
    throw new RuntimeRefusal("state_file_invalid", `${file(folder)} does not hold workers`, { cause });
  }
}

/** Keeps the workers of a project. @throws RuntimeRefusal runtime_protocol_error beyond 64 */
export function writeSpecs(folder: string, specs: WorkerSpec[]): void {
  if (specs.length > WORKERS_MAX) throw new RuntimeRefusal("runtime_protocol_error", `a project has at most ${WORKERS_MAX} workers`);
  writePrivate(file(folder), `${JSON.stringify(specs, null, 1)}\n`);
}

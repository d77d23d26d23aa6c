// Starts a Runtime with a backlog and tells it when to push.
import type { DrainReport, DrainSetup } from "./runtime-drain-process.ts";

/** A drain process that is full and waits; `go` lets it push. */
export async function drainProcess(setup: DrainSetup): Promise<{ go(): Promise<DrainReport>; kill(): void }> {
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/runtime-drain-process.ts`, JSON.stringify(setup)], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const lines = linesOf(child.stdout);
  if (!JSON.parse(await lines.next()).ready) throw new Error("the drain process did not start");
  return {
    go: async () => {
      child.stdin.write("go\n");
      await child.stdin.end();
      return JSON.parse(await lines.next());
    },
    kill: () => child.kill("SIGKILL"),
  };
}

function linesOf(stream: ReadableStream<Uint8Array>) {
  const reader = stream.pipeThrough(new TextDecoderStream() as any).getReader() as ReadableStreamDefaultReader<string>;
  let held = "";
  return {
    next: async (): Promise<string> => {
      while (!held.includes("\n")) {
        const { value, done } = await reader.read();
        if (done) throw new Error(`the process ended after ${JSON.stringify(held)}`);
        held += value;
      }
      const at = held.indexOf("\n");
      const line = held.slice(0, at);
      held = held.slice(at + 1);
      return line;
    },
  };
}

// `kxm harness list`: which agent programs this machine's Runtime can start.
import type { Command } from "commander";
import { define, group } from "./command.ts";
import { connectOrStart } from "./local.ts";

type Report = { id: string; state: string; path?: string; version?: string; checkedVersion?: string; drift?: boolean; signedIn: string };

/** Adds `kxm harness`. */
export function addHarness(program: Command): void {
  const harness = group(program, "harness", "see which agent programs can run here");
  define(harness, {
    usage: "list",
    summary: "list the harnesses: installed, version, signed in, and what is unknown",
    examples: ["kxm harness list", "kxm harness list --json"],
    isDefault: true,
    run: async ({ out, world }) => {
      const { harnesses } = (await (await connectOrStart(world)).get("/v1/harnesses")) as { harnesses: Report[] };
      out.result({ harnesses }, () =>
        out.table(
          harnesses,
          [
            { title: "HARNESS", value: (row) => row.id },
            {
              title: "STATE",
              value: (row) => row.state,
              style: (row) => (row.state === "ready" ? "good" : row.state === "missing" ? "dim" : "warn"),
            },
            { title: "VERSION", value: (row) => row.version },
            { title: "CHECKED WITH", value: (row) => (row.drift ? `${row.checkedVersion} (other version)` : row.checkedVersion) },
            { title: "SIGNED IN", value: (row) => row.signedIn },
            { title: "PROGRAM", value: (row) => row.path },
          ],
          "no harnesses",
        ),
      );
    },
  });
}

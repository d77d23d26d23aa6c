// `kxm redact scan`: looks at what this machine's Runtime keeps for secrets, with today's rules.
import type { Command } from "commander";
import { define, group } from "./command.ts";
import { connectOrStart } from "./local.ts";
import { EXIT } from "./output.ts";

/** Adds `kxm redact`. */
export function addRedact(program: Command): void {
  const redact = group(program, "redact", "look for secrets in what this machine keeps");
  define(redact, {
    usage: "scan",
    summary: "scan every store and log of the Runtime; ends with 1 when something is found",
    details: "Nothing is changed and no value is shown: a finding says where it is and of what kind.",
    examples: ["kxm redact scan", "kxm redact scan --json"],
    run: async ({ out, world }) => {
      const runtime = await connectOrStart(world);
      const report = await runtime.redactScan();
      out.result(report, () => {
        out.table(
          report.findings,
          [
            { title: "FILE", value: (row) => row.file },
            { title: "WHERE", value: (row) => row.place },
            { title: "KIND", value: (row) => row.kind, style: () => "warn" },
            { title: "COUNT", value: (row) => row.count, align: "right" },
          ],
          `nothing that looks like a secret in ${report.texts} texts of ${report.files} files`,
        );
      });
      return report.findings.length === 0 ? EXIT.ok : EXIT.failed;
    },
  });
}

// Entry of `kxm`: hands the arguments to the command line. Nothing else, and nothing exported (a compiled program would try to serve an export).
import { runProgram } from "./cli/program.ts";

process.exitCode = await runProgram(process.argv.slice(2));

// What is wrong with project files: every problem has a place and a code, all of them are collected, none stops the reading of the others.

/** One finding in one file. Lines and columns count from 1. */
export type Problem = { file: string; line: number; column: number; code: string; message: string };

/** `file:line:column: code: message`, the form editors turn into a link. */
export const formatProblem = (problem: Problem): string => `${problem.file}:${problem.line}:${problem.column}: ${problem.code}: ${problem.message}`;

/** Problems in reading order: by file, then line, then column. */
export const sortProblems = (problems: Problem[]): Problem[] =>
  problems.toSorted((a, b) => a.file.localeCompare(b.file) || a.line - b.line || a.column - b.column);

/** Thrown when a bundle cannot be used. Holds all findings, sorted. */
export class ProjectProblems extends Error {
  override readonly name = "ProjectProblems";
  constructor(readonly problems: Problem[]) {
    super(`${problems.length} ${problems.length === 1 ? "problem" : "problems"} in the project files:\n${problems.map(formatProblem).join("\n")}`);
  }
}

// Two payloads side by side, and a patch line by line. Their text comes from elsewhere: hidden characters are marked.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import type { DiffLine, DiffRow } from "./line-diff.ts";
import { marked } from "./untrusted.tsx";

const Text = ({ line }: { line: DiffLine }) => {
  if (!line.marks) return <>{marked(line.text)}</>;
  const [from, to] = line.marks;
  return (
    <>
      {marked(line.text.slice(0, from))}
      {to > from && <b>{marked(line.text.slice(from, to))}</b>}
      {marked(line.text.slice(to))}
    </>
  );
};

const SIDES = { removed: { class: "is-del", sign: "−", word: "removed: " }, added: { class: "is-add", sign: "+", word: "added: " } } as const;

const Cell = ({ line, side }: { line?: DiffLine; side?: keyof typeof SIDES }) => {
  if (!line)
    return (
      <div class="diff__cell is-none">
        <span></span>
        <span></span>
        <code></code>
      </div>
    );
  const sign = side && SIDES[side];
  return (
    <div class={["diff__cell", sign?.class]}>
      <span>{line.n}</span>
      <span aria-hidden="true">{sign?.sign}</span>
      <code>
        {sign && <span class="visually-hidden">{sign.word}</span>}
        <Text line={line} />
      </code>
    </div>
  );
};

const Rows = ({ of }: { of: readonly DiffRow[] }) => (
  <>
    {of.map((row) =>
      row.kind === "fold" ? (
        <details>
          <summary class="diff__fold">{row.rows.length} equal lines</summary>
          <Rows of={row.rows} />
        </details>
      ) : (
        <div class={["diff__row", row.kind === "same" && "is-same"]}>
          <Cell line={row.left} side={row.kind === "changed" ? "removed" : undefined} />
          <Cell line={row.right} side={row.kind === "changed" ? "added" : undefined} />
        </div>
      ),
    )}
  </>
);

/** Two texts in columns, from `diffLines`; on phones the sides stack and equal lines appear once. `heads` name the sides. */
export const PayloadDiff = ({ heads, rows }: { heads: readonly [Child, Child]; rows: readonly DiffRow[] }) => (
  <div class="diff" hx-ignore>
    <div class="diff__head">
      {heads.map((head) => (
        <div>{head}</div>
      ))}
    </div>
    <Rows of={rows} />
  </div>
);

/** Lines of one patch that are shown; a longer one ends with how many follow. */
const PATCH_LINES_MAX = 2_000;

const patchKind = (line: string): "is-add" | "is-del" | "is-hunk" | "is-file" | undefined => {
  if (/^(diff --git|index |--- |\+\+\+ |new file|deleted file|rename |similarity )/.test(line)) return "is-file";
  if (line.startsWith("@@")) return "is-hunk";
  return line.startsWith("+") ? "is-add" : line.startsWith("-") ? "is-del" : undefined;
};

/** A unified diff as Git prints it. Added and removed lines are tinted and keep their signs. */
export const CodeDiff = ({ patch, label }: { patch: string; label: string }) => {
  const lines = patch.replace(/\n$/, "").split("\n");
  return (
    <div class="patch" role="region" aria-label={label} tabindex="0" hx-ignore>
      {lines.slice(0, PATCH_LINES_MAX).map((line) => (
        <code class={patchKind(line)}>{line === "" ? " " : marked(line)}</code>
      ))}
      {lines.length > PATCH_LINES_MAX && <p class="patch__rest">{(lines.length - PATCH_LINES_MAX).toLocaleString("en")} more lines are not shown</p>}
    </div>
  );
};

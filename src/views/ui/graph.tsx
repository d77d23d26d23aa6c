// The steps of a run or workflow as a graph: boxes for agents, stacked boxes for panels, pills for approvals and the end.
// Drawn twice from one layout: across for wide places, downwards for phones; the stylesheet shows one of them.
/** @jsxImportSource #jsx */
import { IconAt, type IconName } from "./icon.tsx";

export type GraphNode = {
  id: string;
  name: string;
  /** A few words below the name: `gate · attempt 2`. */
  note: string;
  kind: "agent" | "gate" | "panel" | "approval" | "wait" | "end";
  state: "ok" | "run" | "attn" | "bad" | "todo";
  /** Where the box leads; `#step-<id>` unless given. */
  href?: string;
};
/** `done` when it was taken. An edge to an earlier step is a way back and is drawn dashed, with its `label` (its budget). */
export type GraphEdge = { from: string; to: string; done?: boolean; label?: string };

type Box = { node: GraphNode; x: number; y: number; w: number; h: number };
type Lane = { column: number; row: number };

const NAME_CHARACTERS = 16;
const ACROSS = { w: 156, h: 48, gapX: 34, gapY: 24, top: 30, pad: 2 };
const DOWN = { width: 328, w: 140, h: 48, gapX: 16, gapY: 28, right: 40, pad: 2 };
const ICONS = { ok: "ok", run: "run", attn: "attn", bad: "bad", todo: "queued" } as const;

const iconOf = ({ state, kind }: GraphNode): IconName =>
  state === "attn" && kind === "approval" ? "person" : state === "attn" && kind === "wait" ? "wait" : ICONS[state];

/** Whether an edge leads back: to the same or an earlier step in the order of the definition. */
function isBack(order: Map<string, number>, { from, to }: GraphEdge): boolean {
  return (order.get(to) ?? 0) <= (order.get(from) ?? 0);
}

/** Puts each step one column after the last of those it follows, and steps of one column under one another. Steps are in order of their definition. */
export function lanes(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): Map<string, Lane> {
  const order = new Map(nodes.map(({ id }, i) => [id, i]));
  const incoming = Map.groupBy(
    edges.filter((edge) => order.has(edge.from) && order.has(edge.to) && !isBack(order, edge)),
    ({ to }) => to,
  );
  const placed = new Map<string, Lane>();
  const rows: number[] = [];
  for (const { id } of nodes) {
    const before = (incoming.get(id) ?? []).map(({ from }) => placed.get(from)!.column);
    const column = before.length > 0 ? Math.max(...before) + 1 : 0;
    const row = rows[column] ?? 0;
    rows[column] = row + 1;
    placed.set(id, { column, row });
  }
  return placed;
}

const round = (n: number): number => Number(n.toFixed(1));

function acrossEdge(p: Box, q: Box, back: boolean): { line: string; head: string } {
  if (back) {
    const top = 16;
    const [x1, x2] = [p.x + p.w / 2, q.x + q.w / 2];
    return {
      line: `M${x1} ${p.y}V${top + 6}Q${x1} ${top} ${x1 - 6} ${top}H${x2 + 6}Q${x2} ${top} ${x2} ${top + 6}V${q.y - 2}`,
      head: `M${x2 - 4} ${q.y - 6}l4 4 4-4`,
    };
  }
  const [x1, y1, x2, y2] = [p.x + p.w, p.y + p.h / 2, q.x, q.y + q.h / 2];
  const turn = x2 - ACROSS.gapX / 2;
  const s = Math.sign(y2 - y1);
  const line =
    y1 === y2
      ? `M${x1} ${y1}H${x2}`
      : `M${x1} ${y1}H${turn - 8}Q${turn} ${y1} ${turn} ${y1 + s * 8}V${y2 - s * 8}Q${turn} ${y2} ${turn + 8} ${y2}H${x2}`;
  return { line, head: `M${x2 - 5} ${y2 - 4}l4 4-4 4` };
}

function downEdge(p: Box, q: Box, back: boolean): { line: string; head: string } {
  if (back) {
    const x = DOWN.width - 20;
    const [y1, y2] = [p.y + p.h / 2, q.y + q.h / 2];
    const [right1, right2] = [p.x + p.w, q.x + q.w];
    return {
      line: `M${right1} ${y1}H${x - 6}Q${x} ${y1} ${x} ${y1 - 6}V${y2 + 6}Q${x} ${y2} ${x - 6} ${y2}H${right2 + 2}`,
      head: `M${right2 + 6} ${y2 - 4}l-4 4 4 4`,
    };
  }
  const [x1, y1, x2, y2] = [p.x + p.w / 2, p.y + p.h, q.x + q.w / 2, q.y];
  const turn = y2 - DOWN.gapY / 2;
  const s = Math.sign(x2 - x1);
  const line =
    x1 === x2
      ? `M${x1} ${y1}V${y2}`
      : `M${x1} ${y1}V${turn - 6}Q${x1} ${turn} ${x1 + s * 6} ${turn}H${x2 - s * 6}Q${x2} ${turn} ${x2} ${turn + 6}V${y2}`;
  return { line, head: `M${x2 - 4} ${y2 - 5}l4 4 4-4` };
}

function boxesAcross(nodes: readonly GraphNode[], at: Map<string, Lane>): { boxes: Box[]; width: number; height: number } {
  const { w, h, gapX, gapY, top, pad } = ACROSS;
  const boxes = nodes.map((node) => {
    const { column, row } = at.get(node.id)!;
    return { node, x: pad + column * (w + gapX), y: pad + top + row * (h + gapY), w, h };
  });
  const right = Math.max(0, ...boxes.map((box) => box.x + box.w));
  const bottom = Math.max(0, ...boxes.map((box) => box.y + box.h));
  return { boxes, width: right + pad, height: bottom + pad };
}

function boxesDown(nodes: readonly GraphNode[], at: Map<string, Lane>): { boxes: Box[]; width: number; height: number } {
  const { width, w, h, gapX, gapY, right, pad } = DOWN;
  const columns = Map.groupBy(nodes, ({ id }) => at.get(id)!.column);
  const boxes: Box[] = [];
  let y = pad + 6;
  for (const column of [...columns.keys()].sort((a, b) => a - b)) {
    const here = columns.get(column)!;
    const wide = width - right - pad;
    here.forEach((node, i) => {
      const alone = here.length === 1 || (i === here.length - 1 && i % 2 === 0);
      boxes.push({ node, x: pad + (i % 2) * (w + gapX), y: y + Math.floor(i / 2) * (h + 12), w: alone ? wide : w, h });
    });
    y += Math.ceil(here.length / 2) * (h + 12) - 12 + gapY;
  }
  return { boxes, width, height: y - gapY + pad };
}

const NodeBox = ({ box: { node, x, y, w, h } }: { box: Box }) => {
  const characters = w > ACROSS.w ? 2 * NAME_CHARACTERS : NAME_CHARACTERS;
  const stacked = node.kind === "panel" ? 5 : 0;
  return (
    <a href={node.href ?? `#step-${node.id}`} class={`n-${node.state}`}>
      <title>
        {node.name} · {node.kind} · {node.note}
      </title>
      {stacked > 0 && <rect class="n-back" x={x + 5} y={y - 5} width={w - 5} height={h} rx="5" />}
      <rect class="n-box" x={x} y={y} width={w - stacked} height={h} rx={node.kind === "approval" || node.kind === "end" ? h / 2 : 5} />
      <IconAt name={iconOf(node)} x={x + 12} y={y + 16} />
      <text class="n-name" x={x + 36} y={y + 21}>
        {node.name.length > characters ? `${node.name.slice(0, characters - 1)}…` : node.name}
      </text>
      <text class="n-sub" x={x + 36} y={y + 37}>
        {node.note}
      </text>
    </a>
  );
};

type DrawingProps = { boxes: Box[]; width: number; height: number; edges: readonly GraphEdge[]; down: boolean; label: string };

const Drawing = ({ boxes, width, height, edges, down, label }: DrawingProps) => {
  const byId = new Map(boxes.map((box) => [box.node.id, box]));
  const order = new Map(boxes.map((box, i) => [box.node.id, i]));
  return (
    <svg
      class={down ? "graph__down" : "graph__across"}
      width={width}
      height={round(height)}
      viewBox={`0 0 ${width} ${round(height)}`}
      role="group"
      aria-label={label}
    >
      {edges.map((edge) => {
        const [p, q] = [byId.get(edge.from), byId.get(edge.to)];
        if (!p || !q) return null;
        const back = isBack(order, edge);
        const { line, head } = down ? downEdge(p, q, back) : acrossEdge(p, q, back);
        return (
          <>
            <path class={`e e-${back ? "back" : edge.done ? "done" : "todo"}`} d={line} />
            <path class={edge.done && !back ? "e-head e e-done" : "e-head"} d={head} />
            {back && edge.label && <BackLabel edge={edge.label} p={p} q={q} down={down} />}
          </>
        );
      })}
      {boxes.map((box) => (
        <NodeBox box={box} />
      ))}
    </svg>
  );
};

const BackLabel = ({ edge, p, q, down }: { edge: string; p: Box; q: Box; down: boolean }) => {
  if (!down)
    return (
      <text class="e-label" x={(p.x + q.x + p.w) / 2} y="10" text-anchor="middle">
        {edge}
      </text>
    );
  const [x, y] = [DOWN.width - 11, round((p.y + q.y + p.h) / 2)];
  return (
    <text class="e-label" x={x} y={y} text-anchor="middle" transform={`rotate(90 ${x} ${y})`}>
      {edge}
    </text>
  );
};

/** The graph of `nodes` in the order of their definition. `label` names the definition. Each box is a link. */
export const StepGraph = ({ nodes, edges, label }: { nodes: readonly GraphNode[]; edges: readonly GraphEdge[]; label: string }) => {
  const at = lanes(nodes, edges);
  return (
    <div class="graph" tabindex="0" role="region" aria-label={label}>
      <Drawing {...boxesAcross(nodes, at)} edges={edges} down={false} label={`${label}, from left to right`} />
      <Drawing {...boxesDown(nodes, at)} edges={edges} down={true} label={`${label}, from top to bottom`} />
    </div>
  );
};

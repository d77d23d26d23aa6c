// The conditions of a stage: what it needs, what it has, from whom, as of when.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";
import { Icon, type IconName } from "./icon.tsx";
import type { State } from "./status.tsx";
import { Status } from "./status.tsx";
import { Table } from "./table.tsx";

export type Producer = { state: "ok" | "run" | "wait" | "bad"; icon: IconName; name: Child; note?: Child };

/** Who gave, is giving, or could give a piece of evidence. */
export const By = ({ producers }: { producers: readonly Producer[] }) => (
  <ul class="by" role="list">
    {producers.map(({ state, icon, name, note }) => (
      <li>
        <span class={`is-${state}`}>
          <Icon name={icon} />
        </span>
        <span>
          {name} {note && <span class="quiet">{note}</span>}
        </span>
      </li>
    ))}
  </ul>
);

/** How many of a quorum are in: `met`, `asked`, or open. `text` says it: `1 of 2`. */
export const Quorum = ({ marks, text }: { marks: readonly ("met" | "asked" | "open")[]; text: string }) => (
  <span class="quorum" role="img" aria-label={text}>
    {marks.map((mark) => (
      <i class={mark === "open" ? undefined : `is-${mark}`}></i>
    ))}
    <span>{text}</span>
  </span>
);

export type Condition = { id: string; name: Child; kind: string; state: State; why?: Child; has: Child; by: readonly Producer[]; asOf?: Child };

/** Conditions as rows; what is missing is tinted. */
export const ConditionMatrix = ({
  conditions,
  caption = "Required evidence of this stage",
}: {
  conditions: readonly Condition[];
  caption?: string;
}) => (
  <div class="matrix">
    <Table
      caption={caption}
      rows={conditions}
      id={({ id }) => id}
      rowClass={({ state }) => (state === "met" ? undefined : "matrix__row--missing")}
      columns={[
        {
          head: "Condition",
          kind: "main",
          cell: ({ name, kind }) => (
            <>
              {name}
              <span class="sub">{kind}</span>
            </>
          ),
        },
        { head: "State", phone: "line", cell: ({ state, why }) => <Status state={state} why={why} stack={why !== undefined} /> },
        { head: "Has", phone: "line", cell: ({ has }) => has },
        { head: "By whom", phone: "line", cell: ({ by }) => (by.length > 0 ? <By producers={by} /> : null) },
        { head: "As of", kind: "num", tight: true, cell: ({ asOf }) => asOf ?? "–" },
      ]}
    />
  </div>
);

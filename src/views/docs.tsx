// The reference of the JSON API as a page, from plain data that the composition root hands over: this layer does not know the API's.
/** @jsxImportSource #jsx */
import type { Child } from "./jsx/jsx-runtime.ts";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Command } from "./ui/feedback.tsx";
import { FilterBar, Tabs } from "./ui/filter.tsx";
import { Fields } from "./ui/form.tsx";
import { Facts, PageHead, Section } from "./ui/page.tsx";
import { Link, Quiet } from "./ui/reference.tsx";
import { Table } from "./ui/table.tsx";

type Refusal = { code: string; status: number };
type FieldWords = { name: string; in: string; type: string; required: boolean; default?: unknown; description?: string };
export type OperationWords = {
  id: string;
  tag: string;
  method: string;
  path: string;
  summary: string;
  credential: string;
  fields: readonly FieldWords[];
  answers: readonly { status: number; what: string }[];
  errors: readonly Refusal[];
};
/** The reference in words, as the API describes itself. */
export type Reference = { version: string; operations: readonly OperationWords[]; errors: readonly (Refusal & { hint: string })[] };

const anchorOf = ({ id }: OperationWords): string => `op-${id}`;

/** A call to copy: the address of this hub, the method, a body where there is one. */
function curlOf(origin: string, { method, path, fields, credential }: OperationWords): string {
  const body = fields
    .filter((field) => field.in === "body" && field.required)
    .map(({ name, type }) => [name, type.startsWith("integer") ? 1 : "…"] as const);
  const parts = ["curl", ...(method === "GET" ? [] : ["-X", method]), `'${origin}${path}'`];
  if (credential.includes("token")) parts.push("-H 'authorization: Bearer TOKEN'");
  if (credential.includes("agent")) parts.push("-H 'x-kxm-agent-id: ID' -H 'x-kxm-agent-key: KEY'");
  if (method === "POST") parts.push("-H 'content-type: application/json'", `-d '${JSON.stringify(Object.fromEntries(body))}'`);
  return parts.join(" ");
}

const Operation = ({ operation, origin }: { operation: OperationWords; origin: string }) => (
  <Section
    id={anchorOf(operation)}
    title={
      <>
        <code>{operation.method}</code> <code>{operation.path}</code>
      </>
    }
    note={operation.id}
    padded
  >
    <Fields>
      <p>{operation.summary}</p>
      <Facts
        rows={[
          ["Needs", operation.credential],
          ["Answers", operation.answers.map(({ status, what }) => `${status}: ${what}`).join(" · ")],
          ["Refuses", <Refusals of={operation.errors} />],
        ]}
      />
      {operation.fields.length > 0 && (
        <Table
          caption={`Fields of ${operation.id}`}
          rows={operation.fields}
          id={({ name, in: place }) => `${anchorOf(operation)}-${place}-${name}`}
          columns={[
            { head: "Field", kind: "main", slim: true, cell: ({ name }) => <code>{name}</code> },
            { head: "In", kind: "tight", cell: ({ in: place }) => place },
            {
              head: "Type",
              phone: "line",
              cell: ({ type, required, default: absent }) => <FieldType type={type} required={required} absent={absent} />,
            },
            { head: "Meaning", phone: "line", cell: ({ description }) => description ?? "–" },
          ]}
        />
      )}
      <Command text={curlOf(origin, operation)} />
    </Fields>
  </Section>
);

const FieldType = ({ type, required, absent }: { type: string; required: boolean; absent: unknown }) => (
  <>
    {type}
    {required ? ", required" : absent === undefined ? "" : `, ${JSON.stringify(absent)} when left out`}
  </>
);

/** Codes by their status, each leading to its hint. */
const Refusals = ({ of }: { of: readonly Refusal[] }): ReturnType<typeof Quiet> => (
  <>
    {[...Map.groupBy(of, ({ status }) => status)].map(
      ([status, codes], index): Child => (
        <>
          {index > 0 && " · "}
          <Quiet>{status}</Quiet>{" "}
          {codes.map(({ code }, n) => (
            <>
              {n > 0 && ", "}
              <Link href={`#code-${code}`}>{code}</Link>
            </>
          ))}
        </>
      ),
    )}
  </>
);

const DocsView = ({ reference, visit }: { reference: Reference; visit: Visit }) => {
  const { url } = visit;
  const words = (url.searchParams.get("q") ?? "").trim().toLowerCase().slice(0, 100);
  const tags = [...new Set(reference.operations.map(({ tag }) => tag))];
  const tag = tags.find((one) => one === url.searchParams.get("tag"));
  const shown = reference.operations.filter(
    (one) => (tag === undefined || one.tag === tag) && [one.path, one.summary, one.id].some((text) => text.toLowerCase().includes(words)),
  );
  const count = (one: string | undefined) => reference.operations.filter((operation) => one === undefined || operation.tag === one).length;
  return (
    <>
      <PageHead
        title="API reference"
        sub={[`version ${reference.version}`, `${reference.operations.length} operations`, <Link href="/openapi.json">OpenAPI 3.1</Link>]}
      />
      <Tabs
        label="Parts of the API"
        tabs={[undefined, ...tags].map((one) => ({
          text: one ?? "All",
          href: one ? `/docs?tag=${encodeURIComponent(one)}` : "/docs",
          count: count(one),
          current: one === tag,
        }))}
      />
      <FilterBar action="/docs" value={words} placeholder="words of a path or a summary" keep={tag ? { tag } : {}} />
      {shown.length === 0 && <p class="section__note">No operation fits.</p>}
      {shown.map((operation) => (
        <Operation operation={operation} origin={url.origin} />
      ))}
      <Section title="Codes of refusals" count={reference.errors.length} note="every refusal has a code, a sentence and a hint">
        <Table
          caption="Codes, their status and what to do"
          rows={reference.errors}
          id={({ code }) => `code-${code}`}
          columns={[
            { head: "Code", kind: "main", slim: true, cell: ({ code }) => <code>{code}</code> },
            { head: "Status", kind: "tight", cell: ({ status }) => status },
            { head: "What to do", phone: "line", cell: ({ hint }) => hint },
          ]}
        />
      </Section>
    </>
  );
};

/** The screen over a reference, for the composition root to add to the list. @param describe asked once, at the first visit */
export function docsScreen(describe: () => Reference): Screen {
  let reference: Reference | undefined;
  return screen({
    method: "GET",
    path: "/docs",
    role: "viewer",
    run: (visit) => visit.page({ title: "API reference", children: <DocsView reference={(reference ??= describe())} visit={visit} /> }),
  });
}

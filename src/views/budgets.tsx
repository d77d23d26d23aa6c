// Budgets on the page of cost: what is left of each, setting one, changing and removing it. Viewers see them; operators set those of their projects.
/** @jsxImportSource #jsx */
import * as budgets from "../hub/budgets.ts";
import { HubError } from "../protocol/errors.ts";
import { DAY_MS } from "../protocol/time.ts";
import { act, fieldOf } from "./acts.tsx";
import { link } from "./links.ts";
import { amount } from "./money.ts";
import { ProjectField } from "./project-field.tsx";
import { Ask, type Question } from "./question.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Empty } from "./ui/feedback.tsx";
import { BudgetRow } from "./ui/fleet.tsx";
import { SelectField, TextField } from "./ui/form.tsx";
import { Section, SectionNote } from "./ui/page.tsx";
import { shortId } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";
import { Line, visible } from "./ui/untrusted.tsx";

const AMOUNT_CHARS = 16;
const PROJECT_CHARS = 128;
/** The value that stands for all projects together in a form: no project is called so. */
const ALL = "";
const FIRST_CURRENCY = "USD";

const whose = (project: string): string => (project === ALL ? "All projects" : visible(project));
const howLong = ({ period }: { period: "day" | "month" }): string => (period === "day" ? "a day" : "a month");

const mayChange = ({ session }: Visit, project: string): boolean =>
  session.role !== "viewer" && (session.project === null || session.project === project);

/** What can be asked about budgets: a new one first, then to change or remove each. Nothing for viewers. */
export function budgetQuestions(visit: Visit, uses: readonly budgets.BudgetUse[]): Question[] {
  if (visit.session.role === "viewer") return [];
  const action = link("/cost/budgets", { project: visit.project });
  const fresh: Question = {
    name: "budget",
    button: "Set a budget…",
    kind: "primary",
    title: "Set a budget",
    action,
    confirm: "Set the budget",
    cancel: "Leave it",
    confirmKind: "primary",
    fields: (id) => <NewFields id={id} visit={visit} />,
  };
  return [
    fresh,
    ...uses
      .filter(({ budget }) => mayChange(visit, budget.project))
      .flatMap((use): Question[] => [
        {
          name: `change-${use.budget.id}`,
          button: "Change…",
          small: true,
          title: `Change ${shortId(use.budget.id)}?`,
          action,
          confirm: "Change the budget",
          cancel: "Leave it",
          confirmKind: "primary",
          fields: (id) => <ChangeFields id={id} use={use} />,
        },
        {
          name: `remove-${use.budget.id}`,
          button: "Remove…",
          small: true,
          kind: "warn",
          title: `Remove ${shortId(use.budget.id)}?`,
          action: link("/cost/budgets/remove", { project: visit.project }),
          confirm: "Remove the budget",
          cancel: "Leave it",
          fields: () => (
            <>
              <input type="hidden" name="id" value={use.budget.id} />
              <p>
                {whose(use.budget.project)}, {amount(use.limit, use.budget.currency)} {howLong(use.budget)}. Nobody is told any more when it is used
                up.
              </p>
            </>
          ),
        },
      ]),
  ];
}

const AmountField = ({ id, value }: { id: string; value?: string }) => (
  <TextField
    id={`${id}-amount`}
    name="amount"
    label="Amount"
    inputmode="decimal"
    value={value}
    placeholder="40"
    required
    maxlength={AMOUNT_CHARS}
    autofocus
  />
);

const NewFields = ({ id, visit }: { id: string; visit: Visit }) => (
  <>
    <ProjectField
      id={`${id}-of`}
      name="of"
      label="For"
      projects={visit.projects}
      first={visit.session.project === null ? { value: ALL, text: "all projects together" } : undefined}
      value={visit.project ?? ALL}
    />
    <SelectField
      id={`${id}-period`}
      name="period"
      label="In"
      options={[
        { value: "day", text: "a day (UTC)" },
        { value: "month", text: "a month (UTC)" },
      ]}
    />
    <AmountField id={id} />
    <TextField id={`${id}-currency`} name="currency" label="Currency" value={FIRST_CURRENCY} required maxlength={3} />
  </>
);

const ChangeFields = ({ id, use: { budget, limit } }: { id: string; use: budgets.BudgetUse }) => (
  <>
    {(["period", "currency"] as const).map((name) => (
      <input type="hidden" name={name} value={budget[name]} />
    ))}
    <input type="hidden" name="of" value={budget.project} />
    <p>
      {whose(budget.project)}, in {budget.currency}, {howLong(budget)}.
    </p>
    <AmountField id={id} value={String(limit)} />
  </>
);

/** What the level means, with what is not known about it. */
const Level = ({ use, now }: { use: budgets.BudgetUse; now: number }) => {
  const { level, spent, limit, unknown, since, budget } = use;
  const pace = budget.period === "day" && level !== "over" && now > since ? (spent * DAY_MS) / (now - since) : 0;
  const facts = [
    level === "over" ? `${amount(spent - limit, budget.currency)} over it` : `${amount(limit - spent, budget.currency)} left`,
    pace > limit && "over it by midnight at this pace",
    unknown > 0 && `${unknown.toLocaleString("en")} ${unknown === 1 ? "use" : "uses"} without a price`,
  ].filter(Boolean);
  return <Status state={level} word={level === "within" ? "holds" : level === "near" ? "nearly used" : "used up"} why={facts.join(" · ")} />;
};

/** Spent of a budget: `unknown` when nothing that was used had a price. */
const figuresOf = ({ spent, limit, unknown, budget: { currency } }: budgets.BudgetUse): string =>
  `${spent === 0 && unknown > 0 ? "unknown" : amount(spent, currency)} / ${amount(limit, currency)}`;

type BudgetsProps = { uses: readonly budgets.BudgetUse[]; questions: readonly Question[]; visit: Visit };

export const Budgets = ({ uses, questions, visit }: BudgetsProps) => (
  <Section title="Budgets" count={uses.length}>
    {uses.length === 0 ? (
      <Empty title="No budget is set.">
        A budget says what a project may cost in a day or a month. The hub raises an alert when it is nearly used, and another when it is used up.
      </Empty>
    ) : (
      <>
        {uses.map((use) => (
          <BudgetRow
            id={`budget-${use.budget.id}`}
            name={
              <>
                {use.budget.project === ALL ? "All projects" : <Line text={use.budget.project} />}, {use.budget.period}
              </>
            }
            percent={(100 * use.spent) / use.limit}
            figures={figuresOf(use)}
            note={<Level use={use} now={visit.now} />}
            acts={questions.filter(({ name }) => name.endsWith(use.budget.id)).map((question) => <Ask question={question} visit={visit} />)}
          />
        ))}
        <SectionNote>An alert is raised at 80 and at 100 percent. Nothing is stopped: a run’s own limit is kept by its Runtime.</SectionNote>
      </>
    )}
  </Section>
);

const back = (visit: Visit): string => link("/cost", { project: visit.project });

/** What a form asks for. @throws HubError invalid_budget, role_forbidden */
function wantedOf(visit: Visit): budgets.NewBudget {
  const { form, session, projects } = visit;
  const project = form.get("of") ?? "";
  if (session.project !== null && session.project !== project) throw new HubError("role_forbidden", "this session sees another project");
  if (project.length > PROJECT_CHARS || (project !== ALL && !projects.includes(project)))
    throw new HubError("invalid_budget", "choose one of the projects");
  const period = form.get("period");
  if (period !== "day" && period !== "month") throw new HubError("invalid_budget", "a budget is for a day or a month");
  const text = fieldOf(form, "amount", AMOUNT_CHARS);
  if (!/^\d{1,7}([.]\d{1,6})?$/.test(text)) throw new HubError("invalid_budget", "the amount is a number such as 40 or 12.50");
  return { project, period, currency: fieldOf(form, "currency", 3).toUpperCase(), amount: Number(text) };
}

const set = screen({
  method: "POST",
  path: "/cost/budgets",
  role: "operator",
  run: (visit) =>
    act(visit, back(visit), async () => {
      const wanted = wantedOf(visit);
      await visit.hub.engine.write(wanted.project, (tx) => budgets.set(tx, visit.by, wanted));
      return { tone: "ok", text: `${whose(wanted.project)} may cost ${amount(wanted.amount, wanted.currency)} ${howLong(wanted)}.` };
    }),
});

const remove = screen({
  method: "POST",
  path: "/cost/budgets/remove",
  role: "operator",
  run: (visit) =>
    act(visit, back(visit), async () => {
      const id = fieldOf(visit.form, "id", 64);
      const row = await visit.hub.engine.read.budgets.find(id);
      if (!row || !mayChange(visit, row.project)) throw new HubError("budget_not_found", `there is no budget ${id}`);
      await visit.hub.engine.write(row.project, (tx) => budgets.remove(tx, visit.by, id));
      return { tone: "ok", text: `The budget of ${whose(row.project)} ${howLong(row)} is removed.` };
    }),
});

export const screens: readonly Screen[] = [set, remove];

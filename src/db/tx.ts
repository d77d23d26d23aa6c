// What a rule holds: the stores, the hub's time, new ids. One Tx per call; it is dead once the call has ended.
import { HubError } from "../protocol/errors.ts";
import type { IdPrefix } from "../protocol/ids.ts";
import { activityStore } from "./activity.ts";
import { agentStore } from "./agents.ts";
import { alertStore } from "./alerts.ts";
import { approvalStore } from "./approvals.ts";
import { auditStore } from "./audit.ts";
import { budgetStore } from "./budgets.ts";
import { commandStore } from "./commands.ts";
import { conflictStore } from "./conflicts.ts";
import { contextStore } from "./context.ts";
import { costStore } from "./costs.ts";
import type { Dialect } from "./dialect.ts";
import { eventStore } from "./events.ts";
import { forecastStore } from "./forecast.ts";
import { journalStore } from "./journal.ts";
import { leaseStore } from "./leases.ts";
import { messageStore } from "./messages.ts";
import { metaStore } from "./meta.ts";
import { opsStore } from "./ops.ts";
import { projectStore } from "./projects.ts";
import { retentionStore } from "./retention.ts";
import { runtimeStore } from "./runtimes.ts";
import { savedViewStore } from "./saved-views.ts";
import type { EventRow } from "./schema.ts";
import { searchStore } from "./search.ts";
import { sessionStore } from "./sessions.ts";
import { signinLinkStore } from "./signin-links.ts";
import { syncStore } from "./sync.ts";
import { tokenStore } from "./tokens.ts";
import { upkeepStore } from "./upkeep.ts";
import { webhookArrivalStore } from "./webhook-arrivals.ts";
import { webhookEndpointStore } from "./webhook-endpoints.ts";
import { workflowStore } from "./workflows.ts";

/** Who acted, for changes made by people: kept in the audit table beyond the event log. */
export type AuditNote = { role: string; reason?: string | undefined; origin?: string | undefined };
/** One change, as a rule reports it. Exactly one per state change. `audit` is set when a person (operator or admin) acted. */
export type NewEvent = Pick<EventRow, "project" | "topic" | "type" | "subjectId" | "actor" | "data"> & { audit?: AuditNote };
export type AppendedEvent = NewEvent & { at: number };
export type Outcome<T> = { ok: true; value: T } | { ok: false; error: unknown };
/** A rule of the hub. It awaits only `tx`, has no other effect, and may run again. */
export type Rule<T> = (tx: Tx) => Promise<T>;

/** One store per concept. A new one is added here and nowhere else. */
const STORES = {
  agents: agentStore,
  messages: messageStore,
  leases: leaseStore,
  sync: syncStore,
  conflicts: conflictStore,
  runtimes: runtimeStore,
  commands: commandStore,
  approvals: approvalStore,
  alerts: alertStore,
  events: eventStore,
  activity: activityStore,
  tokens: tokenStore,
  meta: metaStore,
  sessions: sessionStore,
  savedViews: savedViewStore,
  signinLinks: signinLinkStore,
  audit: auditStore,
  projects: projectStore,
  retention: retentionStore,
  ops: opsStore,
  context: contextStore,
  journal: journalStore,
  workflows: workflowStore,
  webhookArrivals: webhookArrivalStore,
  webhookEndpoints: webhookEndpointStore,
  search: searchStore,
  costs: costStore,
  budgets: budgetStore,
  upkeep: upkeepStore,
  forecast: forecastStore,
};
export type Stores = { [Name in keyof typeof STORES]: ReturnType<(typeof STORES)[Name]> };

/** Every concept's store over one connection's dialect. Each is made when it is first asked for: a hub that starts needs few of them. */
export function openStores(dialect: Dialect): Stores {
  const stores = {} as Stores;
  for (const [name, open] of Object.entries(STORES)) {
    Object.defineProperty(stores, name, {
      configurable: true,
      enumerable: true,
      get() {
        const store = open(dialect);
        Object.defineProperty(stores, name, { value: store, enumerable: true });
        return store;
      },
    });
  }
  return stores;
}

// The getters are defined below, one per store.
export interface Tx extends Stores {}
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: as above
export class Tx {
  readonly appended: AppendedEvent[] = [];
  #stores: Stores | undefined;
  constructor(
    stores: Stores,
    readonly now: number,
    readonly newId: (prefix: IdPrefix) => string,
  ) {
    this.#stores = stores;
  }

  /** Adds to the project's event log. The engine numbers and stores it with the rest of the call. */
  append(event: NewEvent) {
    this.appended.push({ ...event, at: this.now });
  }
  close() {
    this.#stores = undefined;
  }
  /** The stores, while the call runs. @throws ForeignAwait after it has ended */
  open(): Stores {
    if (!this.#stores) throw new ForeignAwait("the transaction has ended: a rule may await only tx");
    return this.#stores;
  }
}
for (const name of Object.keys(STORES) as (keyof Stores)[]) {
  Object.defineProperty(Tx.prototype, name, {
    get(this: Tx) {
      return this.open()[name];
    },
  });
}

/** A rule waited for something else than its transaction: a programmer's error. Do I/O before or after the write. */
export class ForeignAwait extends Error {}
/** Why storage did not answer: the first four come before anything was tried, the others leave the outcome unknown. */
export type Unavailability =
  | "queue_full"
  | "closed"
  | "busy"
  | "degraded"
  | "disk_full"
  | "io_error"
  | "file_gone"
  | "damaged"
  | "unreachable"
  | "commit_failed";

/** What each means, for the refusal's sentence; docs/storage.md says what to do. */
export const UNAVAILABLE: Record<Unavailability, string> = {
  queue_full: "too many writes are waiting",
  closed: "the hub is stopping",
  busy: "another program keeps the data file locked",
  degraded: "the last write failed and the store is not back yet",
  disk_full: "the disk is full",
  io_error: "the disk reported an error",
  file_gone: "the data file was moved or removed while the hub ran",
  damaged: "the data file is damaged",
  unreachable: "the database does not answer",
  commit_failed: "the transaction could not be committed",
};

/** The outcome is unknown or nothing was tried; the same request may be sent again. 503 with retry-after. */
export class StorageUnavailable extends HubError {
  constructor(
    readonly reason: Unavailability,
    options?: ErrorOptions,
  ) {
    super("storage_unavailable", `storage unavailable: ${UNAVAILABLE[reason]}`, { reason });
    this.cause = options?.cause;
  }
}

/** Numbers and stores what rules appended: one counter update a project. */
export async function flushEvents(appended: AppendedEvent[], { events }: Stores) {
  const byProject = Map.groupBy(appended, (event) => event.project);
  for (const project of [...byProject.keys()].sort()) {
    const added = byProject.get(project)!;
    const last = await events.takeSeqs(project, added.length);
    const numbered = added.map(({ audit, ...event }, index) => ({ audit, event: { ...event, seq: last - added.length + 1 + index } }));
    await events.insertAll(numbered.map(({ event }) => event));
    const audited = numbered.flatMap(({ audit, event: { project, seq, at, actor, type, subjectId, data } }) =>
      audit
        ? [{ project, seq, at, actor, role: audit.role, action: type, subjectId, reason: audit.reason ?? null, origin: audit.origin ?? null, data }]
        : [],
    );
    if (audited.length > 0) await events.insertAudit(audited);
  }
}

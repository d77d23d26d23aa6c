// What the package `kxm/client` gives away, and nothing else of it: the one list of names that its users may rely on. No program imports it.
export type { Agent } from "../protocol/agents.ts";
export type { ContextItem, Lineage, Packet, PacketAudit, Recalled } from "../protocol/context.ts";
export type { Improvements, JournalEntry } from "../protocol/journal.ts";
export type { Lease, LeaseDetail, LeaseGranted, LeaseState } from "../protocol/leases.ts";
export type { Message, MessageStatus } from "../protocol/messages.ts";
export type { SearchAnswer, SearchHit } from "../protocol/search.ts";
export type { PresenceAnswer, RuntimeCommand, RuntimeReport, SyncAnswer } from "../protocol/sync.ts";
export type { Conditions, WorkflowRun } from "../protocol/workflows.ts";
export { type ClientOptions, type Identity, type Registration, registerAgent } from "./calls.ts";
export { type ConnectedHub, type ConnectOptions, connectHub } from "./connect.ts";
export type { EventsQuery, StreamEvent } from "./events.ts";
export { type Connection, HubRefusal, HubTimeout, HubUnreachable } from "./http.ts";
export { type HubClient, hubClient } from "./hub-client.ts";
export { type Acquiring, type HeldLease, type Holding, LeaseLost } from "./leases.ts";
export type { Fanout, FanoutOutcome, Outgoing, Patience } from "./messages.ts";
export { type CommandResult, type RuntimeClient, type RuntimeIdentity, runtimeClient } from "./runtime-client.ts";
export { type Frame, readFrames } from "./sse.ts";
export type { Checkpoint, Finding, Waiting } from "./workflows.ts";

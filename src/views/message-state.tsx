// How far a message got, in words, dots and steps. One place, so that lists and pages say the same.
/** @jsxImportSource #jsx */
import type { MessageHead } from "../db/message-heads.ts";
import type { Child } from "./jsx/jsx-runtime.ts";
import { type DeliveryDot, DeliveryDots, type DeliveryStep } from "./ui/delivery.tsx";
import { type State, Status } from "./ui/status.tsx";
import { Ago, Clock, Lasting, NoTime, took } from "./ui/time.tsx";
import { Name } from "./ui/untrusted.tsx";

/** What of a message tells how far it got. */
export type Course = Pick<
  MessageHead,
  | "status"
  | "createdAt"
  | "expiresAt"
  | "pushedAt"
  | "deliveredAt"
  | "turnStartedAt"
  | "repliedAt"
  | "cancelledAt"
  | "endedAt"
  | "dismissedAt"
  | "recipientName"
>;

const ended = ({ status, expiresAt }: Course, now: number): "replied" | "cancelled" | "expired" | undefined =>
  status === "replied" || status === "cancelled" || status === "expired" ? status : expiresAt <= now ? "expired" : undefined;

/** Whether it still waits for a reply. Its time may be over although no sweep has noticed. */
export const isOpen = (course: Course, now: number): boolean => ended(course, now) === undefined;
/** Whether it ended unanswered and nobody has dealt with it. */
export const isDead = (course: Course): boolean => course.status === "expired" && course.dismissedAt === null;

/** The state as operators say it, and since when. */
export function stateOfMessage(course: Course, now: number): { state: State; at: number } {
  const end = ended(course, now);
  if (end === "expired") return { state: isDead(course) ? "dead letter" : "expired", at: course.endedAt ?? course.expiresAt };
  if (end) return { state: end, at: course.endedAt ?? course.createdAt };
  if (course.turnStartedAt !== null) return { state: "turn started", at: course.turnStartedAt };
  if (course.deliveredAt !== null) return { state: "delivered", at: course.deliveredAt };
  return course.pushedAt === null ? { state: "stored", at: course.createdAt } : { state: "pushed", at: course.pushedAt };
}

const MARKS = ["stored", "pushed", "delivered", "turn started", "replied"] as const;
const timesOf = ({ createdAt, pushedAt, deliveredAt, turnStartedAt, repliedAt }: Course) => [
  createdAt,
  pushedAt,
  deliveredAt,
  turnStartedAt,
  repliedAt,
];

/** The last mark that was reached. */
const reachedOf = (course: Course): number => timesOf(course).findLastIndex((at) => at !== null);

/** The chain as dots, with the state below in words and age. */
export const DeliveryCell = ({ course, now, why }: { course: Course; now: number; why?: Child }) => {
  const { state, at } = stateOfMessage(course, now);
  const reached = reachedOf(course);
  const open = isOpen(course, now);
  const dots = MARKS.map((_, index): DeliveryDot => {
    if (index <= reached) return "ok";
    if (index > reached + 1) return "";
    return open ? "now" : course.status === "cancelled" ? "" : "bad";
  });
  return (
    <>
      <div>
        <DeliveryDots dots={dots} label={`${MARKS.slice(0, reached + 1).join(", ")}${open ? "; no reply yet" : `; ${state}`}`} />
      </div>
      {open ? (
        <span class="sub">
          {state} <Ago at={at} now={now} plain />
          {why && <>, {why}</>}
        </span>
      ) : (
        <Status state={state} stack why={<Ago at={at} now={now} plain />} />
      )}
    </>
  );
};

/** A way that takes longer than this asks to be looked at, in milliseconds: to the stream, to the agent, into a turn. A reply takes what it takes. */
const SLOW_MS = [5_000, 5_000, 30_000, Number.POSITIVE_INFINITY] as const;
const NAMES = ["Stored", "Pushed", "Delivered", "Turn started", "Replied"] as const;

/** The whole chain as steps: each mark with its witness and its time, durations on the ways between. */
export function deliverySteps(course: Course, now: number): DeliveryStep[] {
  const times = timesOf(course);
  const reached = reachedOf(course);
  const open = isOpen(course, now);
  const recipient = <Name text={course.recipientName} />;
  const witnesses: Child[] = [
    "hub, fsynced",
    "written to its stream",
    <>acknowledged by {recipient}</>,
    <>said by {recipient}</>,
    <>by {recipient}</>,
  ];
  const steps = NAMES.map((name, index): DeliveryStep => {
    const at = times[index] ?? null;
    if (at === null) return missing(name, index < reached);
    const next = times.findIndex((time, later) => later > index && time !== null);
    if (next >= 0) {
      const ms = times[next]! - at;
      const slow = ms > SLOW_MS.slice(index, next).reduce((sum, limit) => sum + limit, 0);
      return { name, state: "done", witness: witnesses[index], when: <Clock at={at} ms />, leg: `${took(ms)}${slow ? ", slow" : ""}`, slow };
    }
    const leg =
      index === NAMES.length - 1 ? undefined : open ? (
        <>
          so far <Lasting since={at} now={now} />
        </>
      ) : (
        took((course.endedAt ?? course.expiresAt) - at)
      );
    return { name, state: open && index < NAMES.length - 1 ? "now" : "done", witness: witnesses[index], when: <Clock at={at} ms />, leg };
  });
  if (open || course.status === "replied") return steps;
  const word = course.status === "cancelled" ? "Cancelled" : "Expired";
  const end: DeliveryStep = { name: word, state: "bad", witness: "by the hub", when: <Clock at={course.endedAt ?? course.expiresAt} ms /> };
  return [...steps.slice(0, reached + 1), { ...end, witness: course.status === "cancelled" ? "taken back" : "no reply in time" }];
}

/** A mark without a time: either it comes later, or it was not needed because the agent fetched its mail itself. */
const missing = (name: string, passed: boolean): DeliveryStep => ({
  name,
  state: "todo",
  when: <NoTime>{passed ? "not needed" : "not yet"}</NoTime>,
});

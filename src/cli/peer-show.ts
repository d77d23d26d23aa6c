// What `kxm peer` shows. Text of other agents is set apart and made harmless, so that it cannot pass for ours or move the cursor.
import type { Agent } from "../protocol/agents.ts";
import type { Message } from "../protocol/messages.ts";
import { ago } from "./ago.ts";
import { EXIT, type Output, oneLine, visible } from "./output.ts";

/** Whether nothing can happen to the message any more. */
export const hasEnded = ({ status }: Message): boolean => status !== "queued" && status !== "delivered";

/** Prints how a message ended and returns the exit code that says it. */
export function showEnd(out: Output, message: Message): number {
  out.result({ message }, () => {
    if (message.reply) for (const line of message.reply.content.split("\n")) out.line(visible(line));
    else out.line(sentence(message));
  });
  if (message.status === "replied") return EXIT.ok;
  if (hasEnded(message)) return EXIT.failed;
  out.note(`no reply yet; \`kxm peer await ${message.id}\` goes on waiting`);
  return EXIT.timedOut;
}

/** One frame of the stream. */
export function showFrame(out: Output, data: { type?: string; message?: Message; agent?: Agent }) {
  if (data.type === undefined || data.type === "presence") {
    if (data.type === "presence" && data.agent && !out.json) out.line(out.styled("dim", `${oneLine(data.agent.name)} is ${data.agent.presence}`));
    return;
  }
  out.result(data, () => {
    const { message, type } = data;
    if (!message) return;
    if (type === "message") {
      out.line(`${out.styled("bold", oneLine(message.fromName))} asks  ${out.styled("dim", message.id)}`);
      showText(out, message.content);
    } else if (type === "reply") {
      out.line(`${out.styled("bold", oneLine(message.toName))} replies  ${out.styled("dim", message.id)}`);
      showText(out, message.reply?.content ?? "");
    } else out.line(`${sentence(message)}  ${out.styled("dim", message.id)}`);
  });
}

/** Text of an agent, set apart so that it cannot pass for ours. */
export function showText(out: Output, text: string) {
  for (const line of text.split("\n")) out.line(`  │ ${visible(line)}`);
}

/** The agents of a project; `me` is the id of this terminal. */
export function showAgents(out: Output, agents: Agent[], me: string) {
  out.table(
    agents,
    [
      { title: "NAME", value: ({ name, id }) => (id === me ? `${name} (this terminal)` : name) },
      {
        title: "STATUS",
        value: ({ presence }) => presence,
        style: ({ presence }) => (presence === "online" ? "good" : presence === "stale" ? "warn" : "dim"),
      },
      { title: "SEEN", value: ({ lastSeenAt }) => ago(lastSeenAt), align: "right" },
      { title: "MODEL", value: ({ model }) => model },
      { title: "PURPOSE", value: ({ purpose }) => purpose },
    ],
    "no agent is online here",
  );
}

/** Open requests, oldest first. */
export function showInbox(out: Output, messages: Message[]) {
  if (messages.length === 0) return out.line("nothing waits for an answer");
  for (const message of messages) {
    out.line(`${out.styled("bold", oneLine(message.fromName))}  ${ago(message.createdAt)} ago  ${out.styled("dim", message.id)}`);
    showText(out, message.content);
  }
}

/** One message with every time it has. */
export function showMessage(out: Output, message: Message) {
  out.facts([
    ["message", message.id],
    ["from", message.fromName],
    ["to", message.toName],
    ["status", sentence(message)],
    ["stored", message.createdAt],
    ["pushed", message.pushedAt],
    ["delivered", message.deliveredAt],
    ["turn started", message.turnStartedAt],
    ["replied", message.repliedAt],
    ["expires", hasEnded(message) ? undefined : message.expiresAt],
    ["thread", message.correlationId],
  ]);
  showText(out, message.content);
  if (message.reply) {
    out.line("reply");
    showText(out, message.reply.content);
  }
}

/** Where a message stands, in words. */
export function sentence({ status, toName, fromName, error }: Message): string {
  const to = oneLine(toName);
  if (status === "queued") return `waits for ${to}`;
  if (status === "delivered") return `delivered to ${to}`;
  if (status === "replied") return `answered by ${to}`;
  if (status === "cancelled") return `cancelled by ${oneLine(fromName)}`;
  return error ? oneLine(error) : status;
}

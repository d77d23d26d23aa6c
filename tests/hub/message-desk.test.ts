// What people do with messages that are not theirs.
import { describe, expect, test } from "bun:test";
import * as desk from "../../src/hub/message-desk.ts";
import { expireMessages } from "../../src/hub/message-sweep.ts";
import * as messages from "../../src/hub/messages.ts";
import { attempt, WORLDS } from "../support/engines.ts";
import { type Fleet, openFleet } from "../support/fleet.ts";

const DAY = 86_400_000;
const person = (id = "ses_ann"): desk.Person => ({ id, audit: { role: "operator", origin: "dashboard" } });
const ask = async (fleet: Fleet, content = "are you there?") => {
  const [ada, bob] = [await fleet.agent("Ada"), await fleet.agent("Bob")];
  const request = { target: bob.id, content, delivery: "followUp" as const, hops: 0, maxHops: 4, allowOffline: true, correlationId: "thread-1" };
  const { message } = await fleet.world.engine.write("p", (tx) => messages.send(tx, ada, request, 60_000));
  return { ada, bob, message };
};
const expire = async (fleet: Fleet) => {
  fleet.clock.now += 60_000;
  expect(await expireMessages(fleet.hub)).toBe(1);
};
const dead = ({ world }: Fleet) => world.engine.read.messages.countHeads("dead", "p", 10);

describe.each(WORLDS)("the message desk on %s", (_, open) => {
  test("opening a text is noted once for each session, with an audit entry", async () => {
    await using fleet = await openFleet(open);
    const { message } = await ask(fleet);
    const { engine } = fleet.world;
    for (const who of ["ses_ann", "ses_ann", "ses_ben"]) await engine.write("p", (tx) => desk.open(tx, person(who), "p", message.id));
    expect((await fleet.log()).filter((line) => line === "messages.opened")).toHaveLength(2);
    expect(await desk.isOpenTo(engine.read, "ses_ann", "p", message.id)).toBe(true);
    expect(await desk.isOpenTo(engine.read, "ses_cat", "p", message.id)).toBe(false);
    const audit = await engine.read.audit.page({ project: "p", action: "opened" }, undefined, 10);
    expect(audit.map(({ actor, role, origin, subjectId }) => [actor, role, origin, subjectId])).toEqual([
      ["ses_ben", "operator", "dashboard", message.id],
      ["ses_ann", "operator", "dashboard", message.id],
    ]);
  });

  test("a message of another project is as unknown as none", async () => {
    await using fleet = await openFleet(open);
    const { message } = await ask(fleet);
    const opened = await attempt(fleet.world.engine.write("q", (tx) => desk.open(tx, person(), "q", message.id)));
    const unknown = await attempt(fleet.world.engine.write("q", (tx) => desk.open(tx, person(), "q", "msg_none")));
    expect([opened.code, unknown.code]).toEqual(["message_not_found", "message_not_found"]);
    expect(await fleet.log("q")).toEqual([]);
  });

  test("an expired message is sent again in its sender's name, and is no dead letter any more", async () => {
    await using fleet = await openFleet(open);
    const { ada, bob, message } = await ask(fleet);
    const { engine } = fleet.world;
    expect((await attempt(engine.write("p", (tx) => desk.resend(tx, person(), "p", message.id, DAY)))).code).toBe("invalid_message_state");
    await expire(fleet);
    expect(await dead(fleet)).toBe(1);
    const again = await engine.write("p", (tx) => desk.resend(tx, person(), "p", message.id, DAY));
    expect(again).toMatchObject({ senderId: ada.id, recipientId: bob.id, recipientSeq: 2, status: "queued", correlationId: "thread-1" });
    expect([again.content, again.expiresAt]).toEqual(["are you there?", fleet.clock.now + DAY]);
    expect(await dead(fleet)).toBe(0);
    expect((await attempt(engine.write("p", (tx) => desk.resend(tx, person(), "p", message.id, DAY)))).code).toBe("invalid_message_state");
    const [entry] = await engine.read.audit.page({ project: "p" }, undefined, 1);
    expect(entry).toMatchObject({ actor: "ses_ann", action: "queued", subjectId: again.id });
  });

  test("what a workflow run sent, or a retired agent would get, is not sent again", async () => {
    await using fleet = await openFleet(open);
    const { ada, bob, message } = await ask(fleet);
    const { engine } = fleet.world;
    const prompt = { target: bob.id, content: "stage", delivery: "followUp" as const, hops: 0, maxHops: 4, allowOffline: true };
    const origin = { ttlMs: 60_000, workflowRunId: "run_none" };
    const ofRun = (await engine.write("p", (tx) => messages.sendAs(tx, { ...ada, id: "workflow:run_none" }, prompt, origin))).message;
    fleet.clock.now += 60_000;
    await engine.write("p", (tx) => messages.expireDue(tx, [message.id]));
    await engine.write("p", (tx) => tx.messages.settle({ ...ofRun, status: "expired", isOpen: 0, endedAt: tx.now, error: "x" }));
    await engine.write("p", (tx) => tx.agents.endKey(bob.id, "dead", tx.now));
    const codes = [message.id, ofRun.id].map(async (id) => (await attempt(engine.write("p", (tx) => desk.resend(tx, person(), "p", id, DAY)))).code);
    expect(await Promise.all(codes)).toEqual(["target_not_found", "invalid_message_state"]);
    expect(await dead(fleet)).toBe(2);
  });

  test("a dead letter put aside is gone from the list, once", async () => {
    await using fleet = await openFleet(open);
    const { message } = await ask(fleet);
    const { engine } = fleet.world;
    await expire(fleet);
    await engine.write("p", (tx) => desk.dismiss(tx, person(), "p", message.id));
    expect(await dead(fleet)).toBe(0);
    expect(await engine.read.messages.countHeads("expired", "p", 10)).toBe(1);
    expect((await attempt(engine.write("p", (tx) => desk.dismiss(tx, person(), "p", message.id)))).code).toBe("invalid_message_state");
    expect((await fleet.log()).at(-1)).toBe("messages.dismissed");
  });
});

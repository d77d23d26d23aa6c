// Reading messages while the store does not take writes: nobody is refused what can be read.
import { expect, test } from "bun:test";
import { StorageUnavailable } from "../../src/db/tx.ts";
import * as mailbox from "../../src/hub/mailbox.ts";
import { sqliteWorld } from "../support/engines.ts";
import { openFleet } from "../support/fleet.ts";

test("a message whose time is over is shown as expired, also when that cannot be written down", async () => {
  await using it = await openFleet(sqliteWorld);
  const [ada, bob] = [await it.register("ada"), await it.register("bob")];
  const { body } = await it.call(ada, "POST", "/v1/messages", { target: "bob", content: "x", ttlMs: 1_000 });
  it.clock.now += 1_000;
  const full = { ...it.hub, engine: { ...it.hub.engine, write: () => Promise.reject(new StorageUnavailable("disk_full")) } };
  const caller = { id: ada.id, project: "p", name: "ada" };
  const shown = await mailbox.get(full, caller, body.message.id);
  expect([shown.status, shown.error]).toEqual(["expired", "message expired before a reply was received"]);
  expect((await it.world.engine.read.messages.find(body.message.id))!.status).toBe("queued");
  expect(it.logged.map(({ event }) => event)).toContain("expiry_write_failed");
  const broken = { ...it.hub, engine: { ...it.hub.engine, write: () => Promise.reject(new Error("a bug")) } };
  await expect(mailbox.get(broken, caller, body.message.id)).rejects.toThrow("a bug");
  expect((await it.call(bob, "GET", `/v1/messages/${body.message.id}`)).body.message.status).toBe("expired");
});

// Lists kept under a name: by owner, few, replaced by name, gone with their token. On both engines.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import * as savedViews from "../../src/hub/saved-views.ts";
import * as tokens from "../../src/hub/tokens.ts";
import { newSecret } from "../../src/protocol/ids.ts";
import { SAVED_VIEWS_MAX } from "../../src/protocol/limits.ts";
import { attempt, WORLDS, type World } from "../support/engines.ts";

const BY = { actor: "ses_1", role: "operator", origin: "dashboard" };
type Who = Parameters<typeof savedViews.list>[1];
const who = (over: Partial<Who> = {}): Who => ({ role: "operator", project: null, tokenId: null, ...over });

describe.each(WORLDS)("%s saved views", (_, open) => {
  let world: World;
  beforeAll(async () => {
    world = await open();
  }, 30_000);
  afterAll(() => world[Symbol.asyncDispose]());

  const save = (owner: Who, name: string, query = "view=failed", place = "runs") =>
    world.engine.write(owner.project ?? "", (tx) => savedViews.save(tx, BY, owner, { name, place, query }));
  const names = async (owner: Who) => (await savedViews.list(world.engine.read, owner)).map(({ name }) => name);

  test("an owner is a credential with its role and project, and sees its own only", async () => {
    const owners = [
      who({ tokenId: "tok_a" }),
      who({ tokenId: "tok_b" }),
      who({ tokenId: "tok_a", role: "viewer" }),
      who({ tokenId: "tok_a", project: "shop" }),
    ];
    for (const [index, owner] of owners.entries()) await save(owner, `mine ${index}`);
    for (const [index, owner] of owners.entries()) expect(await names(owner)).toEqual([`mine ${index}`]);
    expect(await names(who({ tokenId: "tok_a", project: "*" }))).toEqual([]); // a project may be called like "all"
  });

  test("a name is taken once, whatever its case, and saving under it replaces what it was", async () => {
    const owner = who({ tokenId: "tok_names" });
    const first = await save(owner, "Broken ÄRGER");
    const again = await save(owner, "broken ärger", "q=from:planner", "messages");
    expect([first.replaced, again.replaced, again.view.id]).toEqual([false, true, first.view.id]);
    expect(await savedViews.list(world.engine.read, owner)).toMatchObject([{ name: "broken ärger", place: "messages", query: "q=from:planner" }]);
  });

  test("another owner can neither rename nor delete it", async () => {
    const [owner, other] = [who({ tokenId: "tok_owner" }), who({ tokenId: "tok_other" })];
    const { view } = await save(owner, "held");
    const before = await world.engine.read.events.lastSeq("");
    const change = (as: Who) => [
      world.engine.write("", (tx) => savedViews.rename(tx, BY, as, { id: view.id, name: "taken over" })),
      world.engine.write("", (tx) => savedViews.remove(tx, BY, as, view.id)),
    ];
    expect(await Promise.all(change(other))).toEqual([undefined, undefined]);
    expect([await names(owner), await world.engine.read.events.lastSeq("")]).toEqual([["held"], before]);
    await save(owner, "second");
    const clash = await attempt(world.engine.write("", (tx) => savedViews.rename(tx, BY, owner, { id: view.id, name: "Second" })));
    expect(clash.code).toBe("protocol_error");
    await world.engine.write("", (tx) => savedViews.rename(tx, BY, owner, { id: view.id, name: "HELD" }));
    expect(await names(owner)).toEqual(["HELD", "second"]);
    await world.engine.write("", (tx) => savedViews.remove(tx, BY, owner, view.id));
    expect(await names(owner)).toEqual(["second"]);
  });

  test("there are at most twenty, with names and filters of bounded length", async () => {
    const owner = who({ tokenId: "tok_many" });
    for (let count = 0; count < SAVED_VIEWS_MAX; count++) await save(owner, `view ${count}`);
    expect((await attempt(save(owner, "one more"))).code).toBe("protocol_error");
    expect((await save(owner, "VIEW 3")).replaced).toBe(true);
    for (const wrong of [save(owner, "  "), save(owner, "n".repeat(61)), save(owner, "view 1", "q=".padEnd(1_001, "x"))])
      expect((await attempt(wrong)).code).toBe("protocol_error");
    expect(await names(owner)).toHaveLength(SAVED_VIEWS_MAX);
  });

  test("a revoked token takes its views with it, each change is one event, and no name is in the log", async () => {
    const secret = newSecret("kxm");
    const token = await world.engine.write("", (tx) =>
      tokens.create(tx, BY, { secret, name: "desk", scope: "operator", project: null, expiresAt: null }),
    );
    const before = await world.engine.read.events.lastSeq("");
    const owner = who({ tokenId: token.id });
    const { view } = await save(owner, "secret plans");
    const [event, ...more] = await world.engine.read.events.after("", before, 10);
    expect([event, more]).toMatchObject([{ topic: "settings", type: "view.saved", subjectId: view.id, actor: "ses_1", data: { place: "runs" } }, []]);
    expect(JSON.stringify(event)).not.toContain("secret plans");
    await world.engine.write("", (tx) => tokens.revoke(tx, BY, token.id));
    expect(await names(owner)).toEqual([]);
  });
});

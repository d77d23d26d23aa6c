// Search on both engines: what becomes findable, by whom, in which order, and that it follows changes and can be made anew.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Engine } from "../../src/db/engine.ts";
import * as search from "../../src/hub/search.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { WORLDS } from "../support/engines.ts";
import { type Fleet, openFleet } from "../support/fleet.ts";
import { RUNTIME, syncEvent } from "../support/sync-events.ts";

describe.each(WORLDS)("%s search", (_, open) => {
  let it: Fleet;
  let projects = 0;
  let project: string;
  beforeAll(async () => {
    it = await openFleet(open);
  }, 30_000);
  afterAll(() => it[Symbol.asyncDispose]());

  type Agent = { id: string; key: string };
  const join = async (name: string, purpose = "works"): Promise<Agent> => {
    const { body } = await it.call(undefined, "POST", "/v1/agents/register", { name, purpose, project });
    return { id: body.agent.id, key: body.agentKey };
  };
  const send = async (from: Agent, target: string, content: string) =>
    (await it.call(from, "POST", "/v1/messages", { target, content })).body.message.id as string;
  const ask = async (q: string, more: Partial<Parameters<typeof search.find>[1]> & { limit?: number; after?: string } = {}) => {
    const { limit = 20, after, ...searcher } = more;
    await search.index(it.hub);
    return search.find(it.hub, { project, agentName: undefined, mayRead: true, ...searcher }, { q, limit, ...(after && { after }) });
  };
  const ids = async (q: string, more = {}) => (await ask(q, more)).hits.map(({ id }) => id);
  const fresh = () => {
    project = `p${++projects}`;
    it.clock.now += 1_000;
  };

  test("a message is found by words of its text and of its reply, newest first, with where they stand", async () => {
    fresh();
    const [ann, bob] = [await join("ann"), await join("bob")];
    const first = await send(ann, "bob", "The payments service is down");
    it.clock.now += 1_000;
    const second = await send(ann, "bob", "Payment again");
    expect(await ids("pay*")).toEqual([second, first]);
    expect(await ids("PAYMENTS service")).toEqual([first]);
    expect(await ids('"service is down"')).toEqual([first]);
    expect(await ids('"down is service"')).toEqual([]);
    await it.call(bob, "POST", `/v1/messages/${first}/reply`, { content: "restarted the zebra" });
    const [hit] = (await ask("zebra")).hits;
    expect(hit).toMatchObject({ kind: "message", id: first, project, from: "ann", to: "bob", status: "replied" });
    expect(hit!.snippet!.highlights.map(([start, end]) => hit!.snippet!.text.slice(start, end))).toEqual(["zebra"]);
  });

  test("qualifiers narrow by sender, recipient, kind, status and time", async () => {
    fresh();
    const [ann, bob] = [await join("ann"), await join("bob")];
    const toBob = await send(ann, "bob", "apple");
    const toAnn = await send(bob, "ann", "apple");
    expect(await ids("apple from:ann")).toEqual([toBob]);
    expect(await ids("apple to:ANN")).toEqual([toAnn]);
    expect(await ids("from:ann kind:message")).toEqual([toBob]);
    expect(await ids("apple kind:lease")).toEqual([]);
    await it.call(ann, "DELETE", `/v1/messages/${toBob}`);
    expect(await ids("apple status:cancelled")).toEqual([toBob]);
    expect(await ids("apple status:queued")).toEqual([toAnn]);
    it.clock.now += 3 * 86_400_000;
    expect(await ids("apple since:1d")).toEqual([]);
    expect(await ids("apple since:4d")).toHaveLength(2);
  });

  test("agents and leases are found, too, and their state follows", async () => {
    fresh();
    const ann = await join("ann", "Reviews gearboxes");
    expect((await ask("gear*")).hits).toMatchObject([{ kind: "agent", title: "ann", status: "online" }]);
    const { body } = await it.call(ann, "POST", "/v1/leases/branch%3Amain/acquire", {});
    expect((await ask("branch main kind:lease")).hits).toMatchObject([{ kind: "lease", title: "branch:main", status: "held", from: "ann" }]);
    await it.call(ann, "POST", "/v1/leases/branch%3Amain/release", { fencingToken: body.lease.fencingToken });
    expect((await ask("kind:lease")).hits).toMatchObject([{ status: "free" }]);
  });

  test("an agent finds only messages it sent or received; nobody finds another project's; viewers see no texts", async () => {
    fresh();
    const [ann] = [await join("ann"), await join("bob"), await join("eve")];
    const id = await send(ann, "bob", "the hidden pear");
    expect(await ids("pear", { agentName: "bob" })).toEqual([id]);
    expect(await ids("pear", { agentName: "eve" })).toEqual([]);
    expect(await ids("pear", { project: "elsewhere" })).toEqual([]);
    expect(await ids(`pear project:${project}`, { project: "elsewhere" })).toEqual([]);
    const blind = await ask("pear", { mayRead: false });
    expect(blind.hits).toHaveLength(1);
    expect(JSON.stringify(blind)).not.toContain("hidden");
  });

  test("a text that spells the words of the index gets into no search that is not its own", async () => {
    fresh();
    const [own, home] = [await join("ann"), project];
    const mark = (prefix: string, text: string) => `${prefix}x${sha256(text).slice(0, 16)}`;
    fresh();
    const mallory = await join("mallory");
    await join("bob");
    const spelled = `jostaberry ${mark("p", home)} ${mark("f", "ann")} ${mark("t", "ann")} kxjournal`;
    const id = await send(mallory, "bob", spelled);
    const other = project;
    project = home;
    expect(await ids("jostaberry")).toEqual([]);
    expect((await it.call(own, "GET", "/v1/search?q=jostaberry")).body.hits).toEqual([]);
    expect(await ids("jostaberry", { project: undefined })).toEqual([id]);
    for (const q of ["jostaberry from:ann", "jostaberry to:ann", "jostaberry kind:journal", `jostaberry project:${home}`])
      expect([q, await ids(q, { project: undefined })]).toEqual([q, []]);
    expect(await ids("jostaberry from:mallory to:bob kind:message", { project: other })).toEqual([id]);
  });

  test("what an agent may not see does not make its search look at everything", async () => {
    fresh();
    const [ann, eve] = [await join("ann"), await join("eve")];
    await join("bob");
    const mine = await send(eve, "bob", "medlar");
    for (let n = 0; n < 60; n++) await send(ann, "bob", `medlar ${n}`);
    await search.index(it.hub);
    const { find } = it.hub.engine.read.search;
    let looks = 0;
    const look = (asked: never) => {
      looks++;
      return find(asked);
    };
    const counting = { ...it.hub.engine.read, search: { ...it.hub.engine.read.search, find: look } };
    const hub = { ...it.hub, engine: { ...it.hub.engine, read: counting } } as never;
    const answer = await search.find(hub, { project, agentName: "eve", mayRead: true }, { q: "medlar", limit: 2 });
    expect([answer.hits.map(({ id }) => id), looks]).toEqual([[mine], 1]);
  });

  test("pages follow each other without gap or double, also when most of a page is hidden from the agent", async () => {
    fresh();
    const [ann, eve] = [await join("ann"), await join("eve")];
    await join("bob");
    const mine: string[] = [];
    for (let n = 0; n < 12; n++) {
      it.clock.now += 10;
      if (n % 4 === 0) mine.unshift(await send(eve, "bob", `plum ${n}`));
      else await send(ann, "bob", `plum ${n}`);
    }
    const all = await ids("plum");
    const paged: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await ask("plum", { limit: 5, ...(after && { after }) });
      paged.push(...page.hits.map(({ id }) => id));
      if (!(after = page.next)) break;
    }
    expect(paged).toEqual(all);
    expect(await ids("plum", { agentName: "eve" })).toEqual(mine);
    expect((await ask("plum", { agentName: "eve", limit: 2 })).hits.map(({ id }) => id)).toEqual(mine.slice(0, 2));
  });

  const now = (q: string, of: string | undefined = project) =>
    search.find(it.hub, { project: of, agentName: undefined, mayRead: true }, { q, limit: 5 });

  test("a search finds what was acknowledged before it, in one project and over all, and the documents can be made anew", async () => {
    fresh();
    const ann = await join("ann");
    await join("bob");
    const id = await send(ann, "bob", "a quince");
    expect(await now("quince")).toMatchObject({ hits: [{ id }], behind: 0 });
    const second = await send(ann, "bob", "a quincunx");
    expect(await now("quincunx", undefined)).toMatchObject({ hits: [{ id: second }], behind: 0 });
    await search.rebuild(it.hub, project);
    expect(await now("quince")).toMatchObject({ hits: [{ id }], behind: 0 });
  });

  test("a search does not wait for more than a thousand changes, and says how many are left", async () => {
    fresh();
    const ann = await join("ann");
    await join("bob");
    const id = await send(ann, "bob", "an early sloe");
    await it.hub.engine.write(project, async (tx) => {
      for (let n = 0; n < 1_100; n++) tx.append({ project, topic: "messages", type: "seen", subjectId: id, actor: ann.id, data: {} });
    });
    const late = await send(ann, "bob", "a late sloe");
    const first = await now("sloe");
    expect(first.hits.map((hit) => hit.id)).toEqual([id]);
    expect(first.behind).toBeGreaterThan(100);
    expect(await now("sloe")).toMatchObject({ hits: [{ id: late }, { id }], behind: 0 });
  });

  test("a document goes when its message is gone", async () => {
    fresh();
    const ann = await join("ann");
    await join("bob");
    const id = await send(ann, "bob", "soon forgotten medlar");
    await it.call(ann, "DELETE", `/v1/messages/${id}`);
    expect(await ids("medlar")).toEqual([id]);
    await it.hub.engine.write(project, (tx) => tx.messages.removeEnded([id], it.clock.now + 1).then(() => {}));
    while ((await search.sweep(it.hub)) > 0);
    expect(await ids("medlar")).toEqual([]);
  });

  test("hostile queries are text: nothing is executed, nothing fails", async () => {
    fresh();
    const ann = await join("ann");
    await join("bob");
    await send(ann, "bob", "'; drop table messages; --");
    for (const q of [
      '"',
      "*",
      "a AND",
      "NEAR(",
      "scope:x",
      "{title}: x",
      "'; drop table messages; --",
      "\\",
      "%",
      "col:umn",
      "^x",
      "x <-> y",
      "!a",
      "a:*",
      "(",
      "🙂",
      "a since:-271821-04-20",
      "a since:275760-09-13",
      "since:+275760-09-13",
      "\u202e",
    ]) {
      const { status } = await it.call(ann, "GET", `/v1/search?q=${encodeURIComponent(q)}`);
      expect([q, status]).toEqual([q, 200]);
    }
    expect(await ids("drop table")).toHaveLength(1);
    expect((await it.call(ann, "GET", "/v1/search?q=kind:x")).body.code).toBe("invalid_search_query");
  });

  test("facets count by kind whatever the query asks for, by sender within it, and say when there is more than they looked at", async () => {
    fresh();
    const [ann] = [await join("ann"), await join("bob", "a zebra")];
    for (let n = 0; n < 3; n++) await send(ann, "bob", `zebra ${n}`);
    await search.index(it.hub);
    const facets = (q: string, of = project) => search.facets(it.hub, { project: of, agentName: undefined, mayRead: false }, q);
    const all = await facets("zebra");
    expect([all.total, all.more, Object.fromEntries(all.kinds)]).toEqual([4, false, { message: 3, agent: 1 }]);
    const some = await facets("zebra kind:message from:ann");
    expect([some.total, Object.fromEntries(some.kinds), Object.fromEntries(some.senders)]).toEqual([3, { message: 3 }, { ann: 3 }]);
    expect((await facets("kind:agent")).total).toBe(2);
    expect((await facets("zebra", "nowhere")).total).toBe(0);
    expect((await facets("", "nowhere")).total).toBe(0);
    const [hit] = (await ask("zebra kind:message")).hits;
    await it.world.engine.write(project, async (tx) => {
      const known = (await tx.search.findSubject("message", hit!.id))!;
      for (let n = 0; n < search.FACET_ROWS_MAX; n++) await tx.search.insert({ ...known, docId: n + 1, subjectId: `more-${n}` });
    });
    const capped = await facets("zebra");
    expect([capped.total, capped.more]).toEqual([search.FACET_ROWS_MAX, true]);
  });

  const push = (first: number, last: number, of: string, words: (sequence: number) => string, to = it) =>
    to.call(undefined, "POST", "/v1/sync/events", {
      project,
      runtimeId: RUNTIME,
      events: Array.from({ length: last - first + 1 }, (_, index) =>
        syncEvent(first + index, {
          projectId: `prj_${project.slice(1).padStart(16, "0")}`,
          runId: of,
          payload: { status: "running", summary: words(first + index) },
        }),
      ),
    });

  test("a burst of one run is searchable to its last word without another change of the run", async () => {
    await using own = await openFleet(open); // so many documents would hide those of other tests from a sweep
    fresh();
    for (let first = 1; first <= 1_201; first += 100)
      await push(first, Math.min(first + 99, 1_201), "run_000000000000b125", (n) => `burst word${n}`, own);
    await own.call(undefined, "POST", "/v1/agents/register", { name: "ann", purpose: "after the burst", project });
    await search.index(own.hub);
    const find = (q: string) => search.find(own.hub, { project, agentName: undefined, mayRead: true }, { q, limit: 5 });
    for (const n of [1, 500, 501, 1_000, 1_001, 1_201]) expect([n, (await find(`word${n}`)).hits.length]).toEqual([n, 1]);
    expect(await find("burst kind:agent")).toMatchObject({ hits: [{ title: "ann" }], behind: 0 });
    expect(await search.index(own.hub)).toBe(0);
  });

  test("an event that came before the ones it follows is found, and so are those that fill the gap", async () => {
    fresh();
    await push(1, 1, "run_00000000000009a9", (n) => `gap word${n}`);
    await push(4, 5, "run_00000000000009a9", (n) => `gap word${n}`);
    expect((await now("word5")).hits).toHaveLength(1);
    await push(2, 3, "run_00000000000009a9", (n) => `gap word${n}`);
    for (const n of [1, 2, 3, 4, 5]) expect([n, (await now(`word${n}`)).hits.length]).toEqual([n, 1]);
  });

  test("an agent that registered again with another spelling still finds its messages", async () => {
    fresh();
    const [ann] = [await join("ann"), await join("Bob")];
    const id = await send(ann, "bob", "the damson");
    expect(await ids("damson", { agentName: "BOB" })).toEqual([id]);
    expect(await ids("damson", { agentName: "ANN" })).toEqual([id]);
    expect(await ids("damson", { agentName: "bobby" })).toEqual([]);
  });

  test("a search over all projects finds what was just sent in each of them", async () => {
    const names: string[] = [];
    for (let n = 0; n < 5; n++) {
      fresh();
      names.push(project);
      const [ann] = [await join("ann"), await join("bob")];
      await send(ann, "bob", "quagga");
    }
    const { hits, behind } = await search.find(it.hub, { project: undefined, agentName: undefined, mayRead: true }, { q: "quagga", limit: 20 });
    expect([hits.map((hit) => hit.project).sort(), behind]).toEqual([names.sort(), 0]);
  });

  test("documents of one moment find their numbers in a few looks, however many there are", async () => {
    await using own = await openFleet(open);
    const [COUNT, AT_ONCE, name] = [6_000, 100, "long"];
    const engine = own.hub.engine as { write: Engine["write"] };
    const { write } = engine;
    let looks = 0;
    const counting =
      <A extends unknown[], R>(look: (...of: A) => R) =>
      (...of: A): R => {
        looks++;
        return look(...of);
      };
    engine.write = (of, rule) =>
      write(of, (tx) => {
        const counted = { ...tx.search, isTaken: counting(tx.search.isTaken), newestIn: counting(tx.search.newestIn) };
        return rule(new Proxy(tx, { get: (target, part) => (part === "search" ? counted : Reflect.get(target, part)) }));
      });
    const told = (sequence: number) => syncEvent(sequence, { payload: { status: "running", summary: `long walk ${sequence}` } });
    for (let first = 1; first <= COUNT; first += AT_ONCE) {
      const events = Array.from({ length: AT_ONCE }, (_, index) => told(first + index));
      await own.call(undefined, "POST", "/v1/sync/events", { project: name, runtimeId: RUNTIME, events });
      await search.index(own.hub); // the clock stands: all of it is of one moment
    }
    expect(looks).toBeGreaterThan(COUNT);
    expect(looks).toBeLessThan(COUNT * 5);
    const found = await search.find(own.hub, { project: name, agentName: undefined, mayRead: true }, { q: "walk", limit: 5 });
    expect(found.hits).toHaveLength(5);
  }, 60_000);
});

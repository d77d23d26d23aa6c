// Sign-in links and sessions: once, for a minute; 12 hours of silence, 7 days of age, and the end of what they began with. On both engines.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createPresence } from "../../src/hub/presence.ts";
import * as sessions from "../../src/hub/sessions.ts";
import * as tokens from "../../src/hub/tokens.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { newSecret } from "../../src/protocol/ids.ts";
import { attempt, WORLDS, type World } from "../support/engines.ts";

const BY = { actor: "admin", role: "admin", origin: "cli" };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe.each(WORLDS)("%s sessions", (_, open) => {
  let world: World;
  beforeAll(async () => {
    world = await open();
  }, 30_000);
  afterAll(() => world[Symbol.asyncDispose]());

  const makeLink = async (over: { tokenId?: string | null; project?: string | null } = {}) => {
    const secret = newSecret("kxl");
    const link = { secret, role: "operator" as const, project: null, tokenId: null, ...over };
    await world.engine.write("", (tx) => sessions.createLink(tx, BY, link));
    return secret;
  };
  const redeem = (secret: string) => {
    const fresh = { session: newSecret("kxs"), csrf: newSecret("kxs") };
    return world.engine.write("", (tx) => sessions.redeem(tx, secret, fresh)).then((row) => ({ row, ...fresh }));
  };
  const authenticate = (secret: string, seen = createPresence()) =>
    attempt(sessions.authenticate(world.engine.read, seen, secret, world.clock.now)).then(({ value, code }) => value?.id ?? code);

  test("a link becomes one session, once", async () => {
    const link = await makeLink({ project: "shop" });
    const { row, session } = await redeem(link);
    expect(row).toMatchObject({ role: "operator", project: "shop", tokenId: null, endedAt: null });
    expect(await authenticate(session)).toBe(row.id);
    expect((await attempt(redeem(link))).code).toBe("signin_link_invalid");
  });

  test("a hundred redeemers of one link get one session", async () => {
    const link = await makeLink();
    const results = await Promise.all(Array.from({ length: 100 }, () => attempt(redeem(link))));
    expect(results.filter(({ value }) => value).length).toBe(1);
    expect(new Set(results.map(({ code }) => code))).toEqual(new Set([undefined, "signin_link_invalid"]));
  });

  test("a link is dead after a minute, to the millisecond", async () => {
    const [inTime, late] = [await makeLink(), await makeLink()];
    world.clock.now += 59_999;
    expect((await redeem(inTime)).row.role).toBe("operator");
    world.clock.now += 1;
    expect((await attempt(redeem(late))).code).toBe("signin_link_invalid");
    expect((await attempt(redeem(late))).code).toBe("signin_link_invalid"); // and it stays so
  });

  test("only hashes are stored", async () => {
    const link = await makeLink();
    const { row, session, csrf } = await redeem(link);
    const stored = JSON.stringify(await world.engine.read.sessions.find(row.id));
    for (const secret of [link, session, csrf]) {
      expect(stored).not.toContain(secret);
      expect(stored).not.toContain(secret.slice(4));
    }
    expect(stored).toContain(sha256(session));
  });

  test("a session ends after 12 hours of silence; use keeps it, also use that is not written yet", async () => {
    const { session, row } = await redeem(await makeLink());
    const seen = createPresence();
    world.clock.now += 12 * HOUR_MS - 1;
    expect(await authenticate(session, seen)).toBe(row.id);
    world.clock.now += 12 * HOUR_MS - 1;
    expect(await authenticate(session, seen)).toBe(row.id); // only in memory so far
    await world.engine.write("", (tx) => sessions.writeSeen(tx, seen.takeUnwritten()));
    world.clock.now += 12 * HOUR_MS - 1;
    expect(await authenticate(session)).toBe(row.id); // from the store alone
    world.clock.now += 1;
    expect(await authenticate(session)).toBe("session_required");
  });

  test("a session ends at 7 days, however busy it is", async () => {
    const { session, row } = await redeem(await makeLink());
    const seen = createPresence();
    for (let hours = 10; hours < 7 * 24; hours += 10) {
      world.clock.now += 10 * HOUR_MS;
      expect(await authenticate(session, seen)).toBe(row.id);
    }
    world.clock.now = row.createdAt + 7 * DAY_MS - 1;
    expect(await authenticate(session, seen)).toBe(row.id);
    world.clock.now += 1;
    expect(await authenticate(session, seen)).toBe("session_required");
  });

  test("signing out ends it; revoking its token ends it and the links that token made", async () => {
    const [first, second] = [await redeem(await makeLink()), await redeem(await makeLink())];
    await world.engine.write("", (tx) => sessions.end(tx, BY, first.row.id));
    await world.engine.write("", (tx) => sessions.end(tx, BY, first.row.id));
    expect(await authenticate(first.session)).toBe("session_required");
    expect(await authenticate(second.session)).toBe(second.row.id);

    const token = await world.engine.write("", (tx) =>
      tokens.create(tx, BY, { secret: newSecret("kxm"), name: "laptop", scope: "operator", project: null, expiresAt: null }),
    );
    const signedIn = await redeem(await makeLink({ tokenId: token.id }));
    const waiting = await makeLink({ tokenId: token.id });
    await world.engine.write("", (tx) => tokens.revoke(tx, BY, token.id));
    expect(await authenticate(signedIn.session)).toBe("session_required");
    expect((await attempt(redeem(waiting))).code).toBe("signin_link_invalid");
    expect(await authenticate(second.session)).toBe(second.row.id);
  });

  const makeToken = (expiresAt: number | null) =>
    world.engine.write("", (tx) => tokens.create(tx, BY, { secret: newSecret("kxm"), name: "laptop", scope: "operator", project: null, expiresAt }));

  test("a session does not outlive the token it began with", async () => {
    const token = await makeToken(world.clock.now + HOUR_MS);
    const { session, row } = await redeem(await makeLink({ tokenId: token.id }));
    const late = await makeLink({ tokenId: (await makeToken(world.clock.now + 30_000)).id });
    world.clock.now += 30_000;
    expect((await attempt(redeem(late))).code).toBe("signin_link_invalid");
    world.clock.now += HOUR_MS - 30_001;
    expect(await authenticate(session)).toBe(row.id);
    world.clock.now += 1;
    expect(await authenticate(session)).toBe("session_required");
  });

  test("a link or session that was under way while its token was revoked comes to nothing", async () => {
    const token = await makeToken(null);
    await world.engine.write("", (tx) => tokens.revoke(tx, BY, token.id)); // after the caller was identified, before its write
    expect((await attempt(makeLink({ tokenId: token.id }))).code).toBe("invalid_auth");
    const fresh = { session: newSecret("kxs"), csrf: newSecret("kxs") };
    const begin = world.engine.write("", (tx) => sessions.begin(tx, { role: "operator", project: null, tokenId: token.id }, fresh));
    expect((await attempt(begin)).code).toBe("invalid_auth");
    expect(await authenticate(fresh.session)).toBe("session_required");
  });

  test("another admin token ends what began with the one before, and nothing else", async () => {
    const start = (token: string | undefined) =>
      world.engine.write("", (tx) => sessions.followAdminToken(tx, token === undefined ? undefined : sha256(token)));
    const own = await redeem(await makeLink({ tokenId: (await makeToken(null)).id }));
    await start("first");
    const [signedIn, waiting] = [await redeem(await makeLink()), await makeLink()];
    for (const same of ["first", "first", undefined]) await start(same);
    expect(await authenticate(signedIn.session)).toBe(signedIn.row.id);
    await start("second");
    expect(await authenticate(signedIn.session)).toBe("session_required");
    expect((await attempt(redeem(waiting))).code).toBe("signin_link_invalid");
    expect(await authenticate(own.session)).toBe(own.row.id);
    const later = await redeem(await makeLink());
    await start("second");
    expect(await authenticate(later.session)).toBe(later.row.id);
  });

  test("a form's secret counts for its own session only", async () => {
    const [mine, other] = [await redeem(await makeLink()), await redeem(await makeLink())];
    expect(() => sessions.requireCsrf(mine.row, mine.csrf)).not.toThrow();
    for (const wrong of [other.csrf, mine.session, "", mine.csrf.slice(1)])
      expect(() => sessions.requireCsrf(mine.row, wrong)).toThrow("does not belong");
  });

  test("an unknown, empty or foreign cookie is nobody", async () => {
    const { session } = await redeem(await makeLink());
    for (const secret of ["", "kxs_", newSecret("kxs"), session.slice(0, -1), `${session}x`])
      expect(await authenticate(secret)).toBe("session_required");
  });

  test("what is over is deleted in bounded steps, what is not stays", async () => {
    const old = await Promise.all([1, 2, 3].map(async () => redeem(await makeLink())));
    await makeLink();
    world.clock.now += 7 * DAY_MS;
    const young = await redeem(await makeLink());
    const purge = (limit: number) =>
      world.engine.write("", async (tx) => (await tx.sessions.purge(tx.now, limit)) + (await tx.signinLinks.purge(tx.now, limit)));
    let removed = 0;
    for (let step = await purge(2); step > 0; step = await purge(2)) {
      expect(step).toBeLessThanOrEqual(2 + 2);
      removed += step;
    }
    expect(removed).toBeGreaterThanOrEqual(old.length + 1);
    for (const { row } of old) expect(await world.engine.read.sessions.find(row.id)).toBeUndefined();
    expect(await authenticate(young.session)).toBe(young.row.id);
    expect((await world.engine.read.sessions.open(world.clock.now, 10)).map(({ id }) => id)).toEqual([young.row.id]);
  });
});

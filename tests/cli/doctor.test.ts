// What `kxm doctor` makes of a project's outbox.
import { expect, test } from "bun:test";
import { examineOutbox } from "../../src/cli/doctor.ts";

const project = { projectKey: "shop", projectId: "prj_0123456789", name: "shop", state: "ok", pending: 0, acked: 3, refused: {} };

test("an outbox that was sent, or waits without trouble, is good", () => {
  expect(examineOutbox(project, true)).toEqual([{ good: true, what: "Project shop: everything is sent." }]);
  expect(examineOutbox({ ...project, pending: 1, paused: true }, true)).toEqual([
    { good: true, what: "Project shop: 1 event waits to be sent; it is paused." },
  ]);
  const away = { ...project, state: "no_hub", pending: 4, lastError: "no_hub: nothing listens there" };
  expect(examineOutbox(away, false)[0]!.good).toBe(true); // it reports to no hub, which is said once for all projects
});

test("what the hub refused, and what cannot get there, needs attention, each with its reason", () => {
  const parked = { ...project, state: "blocked", pending: 2, refused: { sync_sequence_reused: 1_200 }, lastError: "invalid_auth: no" };
  const said = examineOutbox({ ...parked, nextAttemptAt: "2026-01-02T03:04:05.000Z" }, true);
  expect(said.map(({ good }) => good)).toEqual([false, false]);
  expect(said[0]!.what).toContain("refused 1,200 events (sync_sequence_reused)");
  expect(said[0]!.what).toContain("kxm runtime sync-retry");
  expect(said[1]!.what).toBe("Project shop: 2 events wait to be sent: invalid_auth: no; tried again at 2026-01-02T03:04:05.000Z.");
  expect(examineOutbox({ ...project, state: "store_unavailable", lastError: "disk full" }, false)[0]).toMatchObject({ good: false });
});

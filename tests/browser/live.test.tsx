/** @jsxImportSource #jsx */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { Act, Button } from "../../src/views/ui/button.tsx";
import { ConfirmDialog } from "../../src/views/ui/dialog.tsx";
import { Command, FlashBeside } from "../../src/views/ui/feedback.tsx";
import { FilterBar, Suggestions } from "../../src/views/ui/filter.tsx";
import { TextField } from "../../src/views/ui/form.tsx";
import { Inbox, InboxItem } from "../../src/views/ui/inbox.tsx";
import { LeaseRow } from "../../src/views/ui/lease.tsx";
import { Live } from "../../src/views/ui/live.tsx";
import { Ref } from "../../src/views/ui/reference.tsx";
import { Status } from "../../src/views/ui/status.tsx";
import { BulkBar, Table } from "../../src/views/ui/table.tsx";
import { Ago } from "../../src/views/ui/time.tsx";
import { CHROMIUM, eventually, isLive, launch, liveState, open, type Watched } from "./browser.ts";
import { NOW, type StoriesServer, serveStories } from "./stories-server.tsx";

const SLOW_MS = 60_000;
setDefaultTimeout(SLOW_MS);
const text = (page: Page, selector: string) => page.locator(selector).first().textContent();

describe.skipIf(!CHROMIUM)("a live page in Chromium", () => {
  let browser: Browser;
  let server: StoriesServer;
  let watched: Watched;
  let rows: string[];
  let runs: number;

  const Runs = () => (
    <Live id="runs" topic={["runs", "approvals"]} href="/ui/runs">
      <p id="runs-count">{runs} runs</p>
      <BulkBar id="bulk" action="/runs/bulk" csrf="t">
        <Button type="submit">Cancel</Button>
      </BulkBar>
      <Table
        caption="Runs"
        rows={rows}
        id={(row) => `run-${row}`}
        pick={{ bulk: "bulk", value: (row) => row, label: (row) => row }}
        columns={[
          { head: "Run", kind: "main", cell: (row) => <Ref href={`#${row}`}>{row}</Ref> },
          { head: "Note", cell: (row) => <input aria-label={`Note on ${row}`} id={`note-${row}`} name="note" /> },
        ]}
      />
      <details id="more">
        <summary>More</summary>
        <p>{runs} in detail</p>
      </details>
      <textarea aria-label="Reply" id="reply"></textarea>
    </Live>
  );
  const Messages = () => (
    <Live id="messages" topic="messages" href="/ui/messages">
      <p>{runs} messages</p>
    </Live>
  );

  beforeAll(async () => {
    browser = await launch();
  }, SLOW_MS);
  afterAll(() => browser?.close());
  beforeEach(async () => {
    server = serveStories();
    rows = ["one", "two", "three"];
    runs = 3;
    server.fragments.set("/ui/runs", Runs);
    server.fragments.set("/ui/messages", Messages);
    watched = await open(browser, `${server.url}/live`);
    await isLive(watched.page);
  });
  afterEach(async () => {
    await watched.close();
    await server.stop();
  });

  test("a signal refetches the regions of its topic and no other, within half a second", async () => {
    const { page, complaints } = watched;
    runs = 4;
    const sent = performance.now();
    server.send({ event: "approvals", id: "g1.8", data: { at: NOW } });
    await eventually(
      () => text(page, "#runs-count"),
      (shown) => shown === "4 runs",
      "the region",
    );
    expect(performance.now() - sent).toBeLessThan(500);
    expect(server.fetched).toEqual(["/ui/runs"]);
    expect(await text(page, "#messages")).toBe("3 messages");
    expect(await liveState(page)).toMatch(/^Live\d+\.\d s behind$/);
    expect(complaints).toEqual([]);
  });

  test("a burst of signals collapses, and the last one is never lost", async () => {
    const { page } = watched;
    for (let i = 0; i < 200; i++) {
      runs++;
      server.send({ event: "runs", id: `g1.${8 + i}` });
    }
    await eventually(
      () => text(page, "#runs-count"),
      (shown) => shown === "203 runs",
      "the last state",
    );
    expect(server.fetched.length).toBeLessThan(6);
  });

  test("focus, selection, half-typed text, open details, picks and scroll survive, while rows move", async () => {
    const { page, complaints } = watched;
    rows = Array.from({ length: 60 }, (_, i) => `r${i}`);
    server.send({ event: "runs" });
    await page.waitForSelector("#run-r59");
    await page.click("#more summary");
    await page.fill("#reply", "half a sen");
    await page.check("#run-r7 [data-pick]");
    await page.fill("#note-r30", "typed here");
    await page.locator("#note-r30").evaluate((input: HTMLInputElement) => input.setSelectionRange(2, 5));
    const scrolled = await page.evaluate(() => scrollY);
    expect(scrolled).toBeGreaterThan(100);
    const top = () => page.locator("#note-r30").evaluate((input) => Math.round(input.getBoundingClientRect().top));
    const before = await top();
    rows = ["new", ...rows.toSpliced(3, 1).reverse()];
    runs = 61;
    server.send({ event: "runs" });
    await eventually(
      () => text(page, "#runs-count"),
      (shown) => shown === "61 runs",
      "the region",
    );
    const state = await page.evaluate(() => {
      const input = document.activeElement as HTMLInputElement;
      return { id: input.id, value: input.value, selection: [input.selectionStart, input.selectionEnd] };
    });
    expect(state).toEqual({ id: "note-r30", value: "typed here", selection: [2, 5] });
    expect(await page.inputValue("#reply")).toBe("half a sen");
    expect(await page.getAttribute("#more", "open")).toBe("");
    expect(await text(page, "#more p")).toBe("61 in detail");
    expect(await page.locator("[data-pick]:checked").evaluateAll((boxes) => boxes.map((box) => (box as HTMLInputElement).value))).toEqual(["r7"]);
    expect(await text(page, "[data-count]")).toBe("1 selected");
    expect(await page.locator("#run-r3").count()).toBe(0);
    // The focused row moved in the list; the reader still looks at about the same place.
    expect(Math.abs((await top()) - before)).toBeLessThan(400);
    expect(complaints).toEqual([]);
  });

  test("p pauses: nothing moves, waiting changes are counted, and going on catches up", async () => {
    const { page } = watched;
    await page.keyboard.press("p");
    expect(await liveState(page)).toBe("Paused");
    runs = 9;
    server.send({ event: "runs" });
    server.send({ event: "messages" });
    await eventually(
      () => liveState(page),
      (state) => state === "Paused2 waiting",
      "the indicator",
    );
    expect(server.fetched).toEqual([]);
    expect(await text(page, "#runs-count")).toBe("3 runs");
    await page.keyboard.press("p");
    await eventually(
      () => text(page, "#runs-count"),
      (shown) => shown === "9 runs",
      "the region",
    );
    expect(await text(page, "#announce")).toBe("Updates: Live");
  });

  test("a lost stream says so, comes back from where it was, and refetches everything", async () => {
    const { page } = watched;
    server.send({ event: "messages", id: "g1.40" });
    await eventually(
      () => server.fetched.length,
      (n) => n === 1,
      "the fragment",
    );
    server.refuse = true;
    server.drop();
    await eventually(
      () => liveState(page),
      (state) => state?.startsWith("Reconnectingtry") ?? false,
      "the indicator",
    );
    runs = 5;
    server.refuse = false;
    await isLive(page);
    expect(server.streams.at(-1)).toBe("/ui/events?project=atlas&after=g1.40");
    await eventually(
      () => text(page, "#runs-count"),
      (shown) => shown === "5 runs",
      "the region",
    );
    await eventually(
      () => text(page, "#messages"),
      (shown) => shown === "5 messages",
      "the other region",
    );
  });

  test("a session that ended is said to have ended, what was typed stays, and pressing leads to the sign-in page", async () => {
    const { page } = watched;
    await page.fill("#reply", "half a sen");
    server.refuse = true;
    server.signedOut = true;
    server.drop();
    await eventually(
      () => liveState(page),
      (state) => state === "Signed outsign in again",
      "the indicator",
    );
    expect(await page.inputValue("#reply")).toBe("half a sen");
    await page.click(".side [data-live]");
    await page.waitForURL("**/still");
  });

  test("the hub's clock is the last word on what time it is", async () => {
    const { page } = watched;
    server.fragments.set("/ui/runs", () => (
      <p>
        <Ago at={NOW - 5_000} now={NOW} />
      </p>
    ));
    await page.reload();
    await isLive(page);
    expect(await text(page, "[data-ago]")).toMatch(/^\d s ago$/);
    server.send({ event: "beat", data: { now: NOW + 3_600_000 } });
    await eventually(
      () => text(page, "[data-ago]"),
      (age) => age === "1 h ago",
      "the age",
    );
  });

  test("a reset refetches everything", async () => {
    const { page } = watched;
    runs = 6;
    server.send({ event: "reset" });
    await eventually(
      () => text(page, "#messages"),
      (shown) => shown === "6 messages",
      "a region",
    );
    await eventually(
      () => text(page, "#runs-count"),
      (shown) => shown === "6 runs",
      "the other region",
    );
  });

  test("a fragment that fails keeps what was there, and the page does not claim to be live until it succeeds", async () => {
    const { page } = watched;
    server.status = 500;
    runs = 7;
    server.send({ event: "runs" });
    await eventually(
      () => liveState(page),
      (state) => state === "Reconnectingsome parts are older",
      "the indicator",
    );
    expect(await text(page, "#runs-count")).toBe("3 runs");
    server.status = 200;
    server.send({ event: "runs" });
    await eventually(
      () => text(page, "#runs-count"),
      (shown) => shown === "7 runs",
      "the region",
    );
    await isLive(page);
  });

  test("the keys: rows, picking, the row's own button, places", async () => {
    const { page, complaints } = watched;
    const pressed: string[] = [];
    await page.exposeFunction("pressed", (what: string) => pressed.push(what));
    server.fragments.set("/ui/runs", () => (
      <Live id="runs" topic="runs" href="/ui/runs">
        <Inbox>
          {["one", "two"].map((id) => (
            <InboxItem
              id={`item-${id}`}
              tone="attn"
              icon="person"
              title={<Ref href={`#${id}`}>{id}</Ref>}
              why="waits"
              pick={{ bulk: "bulk", value: id, label: id }}
              acts={<Button hotkey="a">{`Approve ${id}`}</Button>}
            />
          ))}
        </Inbox>
      </Live>
    ));
    await page.reload();
    await isLive(page);
    await page.evaluate(() =>
      document.addEventListener("click", ({ target }) => {
        const button = (target as Element).closest("[data-key]");
        if (button) (window as unknown as { pressed: (what: string) => void }).pressed(button.textContent ?? "");
      }),
    );
    await page.keyboard.press("a");
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("two");
    await page.keyboard.press("x");
    await page.keyboard.press("a");
    await eventually(
      () => pressed.length,
      (n) => n === 1,
      "one button pressed",
    );
    expect(pressed[0]).toStartWith("Approve two");
    expect(await page.isChecked("#item-two [data-pick]")).toBe(true);
    await page.keyboard.press("k");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/live#one");
    await page.keyboard.press("?");
    await page.waitForSelector("#keysheet[open]");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("runt");
    expect(await page.locator("#palette-list [role=option]:visible").allTextContents()).toEqual(["Runtimesg t"]);
    await page.keyboard.press("Enter");
    await page.waitForURL("**/runtimes");
    await page.goBack();
    await isLive(page);
    await page.keyboard.press("g");
    await page.keyboard.press("l");
    await page.waitForURL("**/leases");
    // Two pages of these tests do not exist; that is all there is to complain about.
    expect(complaints.filter((complaint) => !complaint.includes("404"))).toEqual([]);
  });

  test("completions of a filter: the arrows choose, Tab inserts, Escape closes, Enter searches for what is typed", async () => {
    const { page, complaints } = watched;
    server.fragments.set("/ui/complete", () => (
      <Suggestions
        of={[
          { inserts: "status:", shows: "status:" },
          { inserts: "status:uncertain", shows: "status:uncertain", count: 1 },
        ]}
      />
    ));
    server.fragments.set("/ui/runs", () => <FilterBar action="/runs" placeholder="words" completions="/ui/complete" />);
    server.fragments.delete("/ui/messages");
    server.hidden.add("/ui/complete");
    await page.reload();
    await page.keyboard.press("/");
    const last = page.waitForEvent("requestfinished", (request) => /complete\?q=refund(\+|%20)sta$/.test(request.url()));
    await page.keyboard.type("refund sta");
    await last; // a list that comes later begins with none chosen
    await page.waitForSelector("#filter-completions [role=option]");
    expect(await page.getAttribute("#filter-q", "aria-expanded")).toBe("true");
    await page.keyboard.press("ArrowDown");
    expect(await page.getAttribute("#filter-q", "aria-activedescendant")).toBe("completion-0");
    await page.keyboard.press("ArrowDown");
    expect(await page.getAttribute("#filter-q", "aria-activedescendant")).toBe("completion-1");
    await page.keyboard.press("Tab");
    expect(await page.inputValue("#filter-q")).toBe("refund status:uncertain");
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("filter-q");
    const late = page.waitForEvent("requestfinished", (request) => request.url().endsWith("%3Auncertain"));
    await page.keyboard.press("Escape"); // before the list of what was inserted has come, which must not open it again
    await late;
    await page.waitForTimeout(0);
    expect(await page.locator("#filter-completions [role=option]").count()).toBe(0);
    await page.keyboard.type(" x");
    await page.waitForSelector("#filter-completions [role=option]");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Backspace");
    await page.keyboard.press("Backspace");
    await page.waitForSelector("#filter-completions [role=option]");
    await page.keyboard.press("Escape");
    expect(await page.locator("#filter-completions [role=option]").count()).toBe(0);
    expect(await page.getAttribute("#filter-q", "aria-expanded")).toBe("false");
    expect(complaints).toEqual([]);
    server.fragments.set("/runs", () => <p id="searched">searched</p>);
    server.hidden.add("/runs");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/runs?q=refund+status%3Auncertain");
  });

  test("a confirmed act closes its dialog, a refused one keeps it with what was typed, a flash can be dismissed", async () => {
    const { page, complaints } = watched;
    let refuse = true;
    server.acts.set("/leases/db/release", async () => {
      server.status = refuse ? 422 : 200;
      return (
        <>
          <p id="lease">{refuse ? "still held" : "released"}</p>
          <FlashBeside tone={refuse ? "bad" : "ok"} text={refuse ? "A reason is needed" : "Released"} />
        </>
      );
    });
    server.fragments.set("/ui/runs", () => (
      <>
        <p id="lease">held</p>
        <Button opens="force">Force release…</Button>
        <ConfirmDialog
          id="force"
          title="Force release db:migrations, token 17?"
          action="/leases/db/release"
          csrf="t"
          confirm="Force release"
          cancel="Leave it"
          target="#lease"
        >
          <TextField id="why" name="why" label="Reason" />
        </ConfirmDialog>
      </>
    ));
    server.fragments.delete("/ui/messages");
    await page.reload();
    await page.click("text=Force release…");
    await page.fill("#why", "captain is away");
    await page.click("#force .dialog__foot >> text=Force release");
    await page.waitForSelector("#flash .flash--bad");
    expect(await page.locator("#force[open]").count()).toBe(1);
    expect(await page.inputValue("#why")).toBe("captain is away");
    refuse = false;
    await page.click("#force .dialog__foot >> text=Force release");
    await page.waitForSelector("#force:not([open])", { state: "attached" });
    expect(await text(page, "#lease")).toBe("released");
    await page.click("#flash [data-dismiss] >> nth=0");
    expect(await page.locator("#flash .flash").allTextContents()).toEqual(["Released"]);
    expect(complaints.filter((complaint) => !complaint.includes("422"))).toEqual([]);
  });

  test("a command is copied and says so", async () => {
    const { page } = watched;
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    server.fragments.set("/ui/runs", () => <Command text="kxm open" />);
    await page.reload();
    await page.click("[data-copy]");
    await eventually(
      () => text(page, "[data-copy] span"),
      (label) => label === "Copied",
      "the label",
    );
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("kxm open");
    await eventually(
      () => text(page, "[data-copy] span"),
      (label) => label === "Copy",
      "the label afterwards",
    );
  });

  test("an act posts its token, and its answer replaces it in place", async () => {
    const { page, complaints } = watched;
    const posted: { token: string | null; body: string }[] = [];
    server.acts.set("/approvals/apr_1/decision", async (request) => {
      posted.push({ token: request.headers.get("x-csrf-token"), body: await request.text() });
      return <p id="decided">Approved</p>;
    });
    server.fragments.set("/ui/runs", () => (
      <div id="act">
        <Act action="/approvals/apr_1/decision" csrf="from the form" target="#act" fields={{ hash: "9f2c" }}>
          <Button kind="primary" type="submit" name="decision" value="approve">
            Approve
          </Button>
        </Act>
      </div>
    ));
    await page.reload();
    await page.click("text=Approve >> visible=true");
    await page.waitForSelector("#decided");
    expect(posted).toEqual([{ token: "token-of-this-session", body: "csrf=from+the+form&hash=9f2c&decision=approve" }]);
    expect(complaints).toEqual([]);
  });
});

describe.skipIf(!CHROMIUM)("time on a page", () => {
  test(
    "ages tick from the hub's clock, a status turns when its evidence is too old, a lease runs out",
    async () => {
      const server = serveStories();
      const browser = await launch();
      server.fragments.set("/ui/time", () => (
        <div>
          <Status state="online" bound={45_000} why={<Ago at={NOW - 40_000} now={NOW} />} />
          <LeaseRow id="lease" resource="branch:main" token={1} holder="implementer" expiresAt={NOW + 90_000} ttl={100_000} now={NOW} />
        </div>
      ));
      const context = await browser.newContext();
      const page = await context.newPage();
      // The browser's own clock is a year off, and then it is the test's to move.
      await page.clock.install({ time: NOW - 365 * 86_400_000 });
      await page.goto(`${server.url}/still`);
      const state = () =>
        page.evaluate(() => ({
          age: document.querySelector("[data-ago]")?.textContent,
          stale: document.querySelector(".status[data-bound]")?.classList.contains("status--stale"),
          left: document.querySelector("[data-left]")?.textContent,
          ring: document.querySelector(".ring")?.className,
        }));
      expect(await state()).toEqual({ age: "40 s ago", stale: false, left: "1:30", ring: "ring" });
      await page.clock.runFor(10_000);
      expect(await state()).toEqual({ age: "50 s ago", stale: true, left: "1:20", ring: "ring" });
      await page.clock.runFor(65_000);
      expect(await state()).toEqual({ age: "1 min ago", stale: true, left: "0:15", ring: "ring ring--soon" });
      await page.clock.runFor(20_000);
      expect(await state()).toEqual({ age: "2 min ago", stale: true, left: "lapsed", ring: "ring ring--out" });
      await browser.close();
      await server.stop();
    },
    SLOW_MS,
  );
});

// The palette's answers over a real hub: by letters, by id, only agents, only actions, and never from another project.
import { expect, test } from "bun:test";
import { openDashboard } from "../support/dashboard.ts";
import { attributesOf, markupOf, textsOf } from "../support/html.ts";
import { pushRun, register } from "../support/lived-in.ts";
import { send } from "../support/mail.ts";
import { PAYLOADS } from "./payloads.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
const asked = (q: string, more = "") => `/ui/palette?q=${encodeURIComponent(q)}${more}`;

test("a few letters find places, agents by their beginning, runs by title, and actions", async () => {
  await using it = await open();
  await register(it, "reviewer");
  await register(it, "planner");
  await pushRun(it, "run_0123456789abcdef", [
    { type: "run.created", payload: { displayTitle: "Prepare the review", workflowId: "w", status: "created" } },
  ]);
  const { cookie } = await it.signIn();
  const found = async (q: string) => textsOf((await it.get(asked(q, "&project=shop"), { cookie })).html, "[role=option] > span:not(.palette__hint)");
  expect(await found("rev")).toEqual(["reviewer", "Prepare the review", "Search for “ rev”"]);
  expect(await found("mess")).toEqual(["Messages", "Message an agent…", "Search for “ mess”"]);
  expect(await found("@p")).toEqual(["planner"]);
  expect(await found(">start")).toEqual(["Start a run…"]);
  expect((await found("")).slice(0, 2)).toEqual(["Message an agent…", "Start a run…"]);
  expect(await found("zzz")).toEqual(["Search for “ zzz”"]);
});

test("ids of ours lead straight to their page, in the session's projects only", async () => {
  await using it = await open();
  const [ann, bea] = [await register(it, "ann"), await register(it, "bea")];
  const { id } = await send(it, ann, bea);
  const hrefs = async (q: string, cookie: string) => attributesOf((await it.get(asked(q), { cookie })).html, "[role=option]", "href").slice(0, 1);
  const [mine, other] = [await it.signIn("viewer", "shop"), await it.signIn("viewer", "bank")];
  expect(await hrefs(id, mine.cookie)).toEqual([`/messages/${id}?project=shop`]);
  expect(await hrefs(ann.id, mine.cookie)).toEqual([`/agents/${ann.id}?project=shop`]);
  expect(await hrefs(id, other.cookie)).toEqual([`/search?project=bank&q=${id}`]);
  expect(textsOf((await it.get(asked("ann"), { cookie: other.cookie })).html, "[aria-label=Agents] a")).toEqual([]);
});

test("lists that somebody saved are found by name, by that person only", async () => {
  await using it = await open();
  const [me, other] = [await it.signIn("operator"), await it.signIn("viewer")];
  await it.post("/views", { csrf: me.csrf, name: "Broken builds", place: "runs", query: "view=failed" }, me);
  const hrefs = async (cookie: string) => attributesOf((await it.get(asked("broken"), { cookie })).html, "[aria-label='Saved lists'] a", "href");
  expect(await hrefs(me.cookie)).toEqual(["/runs?view=failed"]);
  expect(await hrefs(other.cookie)).toEqual([]);
});

test("viewers are offered no acts", async () => {
  await using it = await open();
  const { cookie } = await it.signIn("viewer");
  expect(textsOf((await it.get(asked(">"), { cookie })).html, "[role=option] > span")).toEqual([
    "Look at dead letters",
    "Saved lists",
    "Connect an agent",
    "Read the API reference",
  ]);
});

test("names, titles and what is typed are only text", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  await register(it, "plain");
  const plain = markupOf((await it.get(asked(""), { cookie })).html);
  for (const element of ["bdi", "span", "p"]) plain.elements.add(element);
  for (const [index, payload] of PAYLOADS.entries()) {
    await register(it, `x${index} ${payload}`.slice(0, 60).trim());
    for (const q of [payload, `x${index}`]) {
      const { elements, attributes } = markupOf((await it.get(asked(q), { cookie })).html);
      expect([q, [...elements].filter((name) => !plain.elements.has(name))]).toEqual([q, []]);
      for (const attribute of attributes) expect(attribute).not.toMatch(/^on|^style$|^srcdoc$|^data-hx|^hx-on/);
    }
  }
});

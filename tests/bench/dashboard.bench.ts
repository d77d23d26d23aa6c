// From an event of a run to the dashboard: a real Runtime appends one, pushes it to a real hub, an open page hears of it and fetches what it shows.
// Goal: 99 of 100 within 500 ms, of which the Runtime waits 200 ms for more events of the same burst.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { readFrames } from "../../src/client/sse.ts";
import { startHub, TOKEN } from "../runtime/hub-process.ts";
import { startRuntime, until } from "../runtime/runtime-process.ts";
import { PROJECT_ID, temporaryFolder } from "../runtime/support.ts";

const ROUNDS = 200;
const PAUSE_MS = 60;
const FIXTURE = join(import.meta.dir, "../runtime/appending-runtime-fixture.ts");

using folder = temporaryFolder();
await using hub = await startHub(folder.path);
const state = folder.file("state");
const checkout = folder.file("checkout");
for (const path of [state, checkout]) mkdirSync(path);
await using runtime = await startRuntime(state, { KXM_URL: hub.url, KXM_PROJECT: "demo", KXM_TOKEN: TOKEN }, FIXTURE);
const client = await runtime.client();
const { projectKey } = await client.register({ root: checkout, projectId: PROJECT_ID, name: "Demo" });
const { runId } = await client.post(`/v1/projects/${projectKey}/append`);
await until(() => hub.call("GET", `/v1/runs/${PROJECT_ID}/${runId}`).catch(() => undefined), "the run at the hub");

const { url } = await hub.call("POST", "/v1/signin-links", {});
const signed = await fetch(new URL(url, hub.url), { redirect: "manual" });
const cookie = signed.headers.getSetCookie()[0]!.split(";")[0]!;
const stream = await fetch(`${hub.url}/ui/events?project=demo`, { headers: { cookie } });

let heard = Promise.withResolvers<void>();
const listening = (async () => {
  for await (const { event } of readFrames(stream)) if (event === "runs") heard.resolve();
})().catch(() => {}); // the hub is ended at the end

/** Appends one event and waits until the page that follows the run shows its sequence. */
async function round(sequence: number): Promise<{ signal: number; shown: number }> {
  const began = performance.now();
  heard = Promise.withResolvers();
  await client.post(`/v1/projects/${projectKey}/runs/${runId}/append/1`);
  for (;;) {
    await heard.promise;
    heard = Promise.withResolvers();
    const signal = performance.now() - began;
    const page = await (await fetch(`${hub.url}/runs/${PROJECT_ID}/${runId}?project=demo`, { headers: { cookie } })).text();
    if (page.includes(`came as event ${sequence}`)) return { signal, shown: performance.now() - began };
  }
}

const times: { signal: number; shown: number }[] = [];
for (let sequence = 2; sequence < 2 + ROUNDS; sequence++) {
  times.push(await round(sequence));
  await Bun.sleep(PAUSE_MS);
}
for (const what of ["signal", "shown"] as const) {
  const sorted = times.map((time) => time[what]).sort((a, b) => a - b);
  const at = (part: number) => `${Math.round(sorted[Math.ceil(sorted.length * part) - 1]!)} ms`;
  console.log(
    `${`event to dashboard, ${what === "signal" ? "the page hears of it" : "the page shows it"}`.padEnd(56)} p50 ${at(0.5)}, p99 ${at(0.99)}`,
  );
}
await runtime.kill("SIGTERM");
await hub.kill();
await listening;

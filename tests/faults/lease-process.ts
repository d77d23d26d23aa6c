// A hub over one store, reduced to its leases, to be killed and paused: takes calls as JSON lines. Its clock is the newest time that a caller named.
import { writeSync } from "node:fs";
import { openEngine } from "../../src/db/open.ts";
import { openHub } from "../../src/hub/hub.ts";
import * as leases from "../../src/hub/leases.ts";
import { silent } from "../../src/hub/log.ts";
import { defaultSettings } from "../../src/hub/settings.ts";
import { newId } from "../../src/protocol/ids.ts";
import type { Ask } from "./lease-history.ts";
import { askHub, fenceOf } from "./lease-service.ts";

export type LeaseCall = { n: number; name: string } & ({ ask: Ask } | { sweep: number } | { fence: true });

const clock = { now: 0 };
const engine = await openEngine({ path: process.argv[2]!, clock: () => clock.now, newId });
const hub = openHub({ engine, clock: () => clock.now, settings: defaultSettings(), log: silent, stopping: new AbortController().signal });
const say = (line: unknown) => writeSync(1, `${JSON.stringify(line)}\n`);
say({ ready: true });
for await (const line of console) if (line !== "") void answer(JSON.parse(line) as LeaseCall);

async function answer(call: LeaseCall) {
  if ("ask" in call) clock.now = Math.max(clock.now, call.ask.now);
  if ("sweep" in call) clock.now = Math.max(clock.now, call.sweep);
  say({ n: call.n, told: await toldOf(call) });
}

async function toldOf(call: LeaseCall) {
  if ("ask" in call) return askHub(hub, call.name, call.ask);
  return "sweep" in call ? leases.expireLapsed(hub) : fenceOf(hub, call.name);
}

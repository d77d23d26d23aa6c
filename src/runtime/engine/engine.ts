// The engine as the supervisor knows it: one per process, over all open projects.
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { Engine, EngineParts, MakeEngine, Project } from "../contract.ts";
import { HubAgent } from "../hub-agent.ts";
import { Workers } from "../worker/workers.ts";
import { commandEffects } from "./effects.ts";
import { hubLeases } from "./leases.ts";
import { ProjectEngine } from "./project-engine.ts";
import { routesOf } from "./routes.ts";

/** Makes the engine. Nothing runs before a project is opened. */
export const makeEngine: MakeEngine = (parts) => engineMaker()(parts);

/** @param timing of leases and of workers after a failure; shorter only in tests */
export const engineMaker =
  (timing: { ttlMs?: number; renewMs?: number; workerWaits?: { firstMs: number; maxMs: number } } = {}): MakeEngine =>
  (parts) => {
    const engines = new Map<string, ProjectEngine>();
    const workers = new Map<string, Workers>();
    const of = (project: Project): ProjectEngine => {
      const engine = engines.get(project.key);
      if (!engine) throw new RuntimeRefusal("store_unavailable", `project ${project.name} is not open`);
      return engine;
    };
    const engine: Engine = {
      effects: commandEffects(parts, of),
      opened: (project) => {
        engines.get(project.key)?.close();
        const { clock, machine, newId, log } = parts;
        const leases = hubLeases(leaseAgent(parts, project), { log, clock, ...timing });
        const { store, prompts, root, folder } = project;
        const opened = new ProjectEngine(project, {
          store,
          prompts,
          root,
          folder,
          env: process.env,
          clock,
          machine,
          newId,
          log,
          leases,
          redactor: parts.redactor,
        });
        engines.set(project.key, opened);
        opened.recover();
        void workers.get(project.key)?.close("leave");
        const hands = new Workers(project, parts, timing.workerWaits);
        workers.set(project.key, hands);
        hands.open();
      },
      closed: (project) => {
        engines.get(project.key)?.close();
        engines.delete(project.key);
        void workers.get(project.key)?.close("leave");
        workers.delete(project.key);
      },
      routes: routesOf({ engines, workers }),
      report: () => {
        const slots = { running: 0, queued: 0, total: 0 };
        for (const one of engines.values()) {
          const { running, queued, total } = one.slots();
          slots.running += running;
          slots.queued += queued;
          slots.total += total;
        }
        const harnesses = parts.machine.programs.reports(process.env).map(({ id, version, state }) => ({ id, state, ...(version && { version }) }));
        return { slots, ...(harnesses.length > 0 && { harnesses }) };
      },
      stop: async (withinMs) => {
        const suspended = Promise.all([
          ...[...engines.values()].map((one) => one.suspend()),
          ...[...workers.values()].map((one) => one.close("suspend")),
        ]);
        const late = Promise.withResolvers<void>();
        const callOff = parts.clock.after(withinMs, late.resolve);
        await Promise.race([suspended, late.promise]);
        callOff();
        for (const one of engines.values()) one.close();
        engines.clear();
        workers.clear();
      },
    };
    return engine;
  };

/** Who holds leases for the gates of a checkout: another checkout is another holder, so the hub keeps them apart. */
const leaseAgent = (parts: EngineParts, project: Project): HubAgent =>
  new HubAgent({
    hub: () => parts.hub(project),
    name: `runtime-${parts.runtimeId.slice(-8)}-${project.key.slice(0, 6)}`,
    purpose: `Holds leases for the gates of runs of ${project.name}`.slice(0, 256),
    folder: `${parts.folder}/agents`,
    remember: parts.remember,
  });

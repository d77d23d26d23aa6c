// Workflow definitions: parsed and checked as a whole, all problems at once. A set with one bad definition is refused as it stands.
import { canonical, sha256 } from "../../protocol/canonical.ts";
import { nearest } from "../../protocol/nearest.ts";
import {
  AREAS,
  type Area,
  type EvidencePlace,
  type EvidencePolicy,
  normalizeKey,
  type StageDefinition,
  TERMINAL,
  type TransitionRule,
  type WorkflowDefinition,
} from "../../protocol/workflows.ts";
import { type Places, placesOf } from "./definition-places.ts";

/** One thing wrong with a set: where, and what. */
export type DefinitionProblem = { path: string; message: string; line: number };
export type Definitions = ReadonlyMap<string, WorkflowDefinition>;
/** `remarks`: members that nothing reads. They refuse no set, as other programs may keep notes in it, but each may be a mistyped one. */
export type ParsedDefinitions = { definitions: Definitions; problems: DefinitionProblem[]; remarks: DefinitionProblem[] };

type Source = Record<string, unknown>;
type Finding = Omit<DefinitionProblem, "line">;
/** Reads members of one object, collects what is wrong with them and keeps in mind which it was asked for. */
class Reader {
  readonly known = new Set<string>();
  constructor(
    readonly source: Source,
    readonly path: string,
    readonly problems: Finding[],
    readonly all: Reader[],
  ) {
    all.push(this);
  }
  member(name: string): unknown {
    this.known.add(name);
    return Object.hasOwn(this.source, name) ? this.source[name] : undefined;
  }
  /** A reader of a part. @param name the part's place in this one, such as `.filter` */
  part(source: Source, name: string): Reader {
    return new Reader(source, this.path + name, this.problems, this.all);
  }
  fail(name: string, message: string): undefined {
    this.problems.push({ path: name ? `${this.path}.${name}` : this.path, message });
    return undefined;
  }
  /** What nothing asked for. */
  unknown(): Finding[] {
    return Object.keys(this.source)
      .filter((name) => !this.known.has(name))
      .map((name) => {
        const close = nearest(name, [...this.known]);
        return { path: `${this.path}.${name}`, message: `is not read by anything${close ? `: did you mean ${close}?` : ""}` };
      });
  }
  /** Notes that a member is missing, and goes on with a value in its place. */
  missing<T>(name: string, instead: T, message = "is required"): T {
    this.fail(name, message);
    return instead;
  }
  optionalText(name: string, max: number, min = 1): string | undefined {
    const value = this.member(name);
    if (value === undefined || value === null) return undefined;
    if (typeof value !== "string") return this.fail(name, "must be a string");
    const trimmed = value.trim();
    if (trimmed.length < min || trimmed.length > max) return this.fail(name, `must have ${min} to ${max} characters`);
    return trimmed;
  }
  text(name: string, max: number, fallback?: string): string {
    if (this.member(name) === undefined && fallback === undefined) this.fail(name, "is required");
    return this.optionalText(name, max) ?? fallback ?? "";
  }
  optionalInteger(name: string, min: number, max: number): number | undefined {
    const value = this.member(name);
    if (value === undefined || value === null) return undefined;
    if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max)
      return this.fail(name, `must be an integer between ${min} and ${max}`);
    return value as number;
  }
  oneOf<W extends string>(name: string, words: readonly W[], fallback?: W): W | undefined {
    const value = this.member(name);
    if (value === undefined || value === null) return fallback;
    return words.includes(value as W) ? (value as W) : this.fail(name, `must be one of ${words.join(", ")}`);
  }
  object(name: string): Reader | undefined {
    const value = this.member(name);
    if (value === undefined || value === null) return undefined;
    if (typeof value !== "object" || Array.isArray(value)) return this.fail(name, "must be an object");
    return this.part(value as Source, `.${name}`);
  }
  uniqueTexts(name: string, count: { min: number; max: number }, length: number, fold = (text: string) => text.trim()): string[] | undefined {
    const value = this.member(name);
    if (value === undefined || value === null) return undefined;
    if (!Array.isArray(value) || value.length < count.min || value.length > count.max)
      return this.fail(name, `must be a list of ${count.min} to ${count.max} items`);
    const items = value.map((item) => (typeof item === "string" ? fold(item) : ""));
    if (items.some((item) => item === "" || item.length > length)) return this.fail(name, `every item must be a string of 1 to ${length} characters`);
    if (new Set(items).size !== items.length) return this.fail(name, "items must be unique");
    return items;
  }
}

/**
 * Parses the JSON array of definitions.
 * @param environment where secretEnv and signalSecretEnv are looked up
 * @returns the definitions, or none and every problem found
 */
export function parseDefinitions(json: string, environment: Readonly<Record<string, string | undefined>>): ParsedDefinitions {
  const problems: Finding[] = [];
  const readers: Reader[] = [];
  let places: Places | undefined;
  const lined = (finding: Finding): DefinitionProblem => ({ ...finding, line: (places ??= placesOf(json)).line(finding.path) });
  let list: unknown;
  try {
    list = JSON.parse(json);
  } catch (error) {
    const { syntax = { line: 1, message: (error as Error).message } } = placesOf(json);
    return { definitions: new Map(), problems: [{ path: "$", line: syntax.line, message: `is not valid JSON: ${syntax.message}` }], remarks: [] };
  }
  if (!Array.isArray(list)) problems.push({ path: "$", message: "must be an array of definitions" });
  const definitions = new Map<string, WorkflowDefinition>();
  (Array.isArray(list) ? list : []).forEach((entry, index) => {
    const path = `$[${index}]`;
    if (typeof entry !== "object" || entry === null || Array.isArray(entry)) return void problems.push({ path, message: "must be an object" });
    const definition = readDefinition(new Reader(entry as Source, path, problems, readers), environment);
    if (definitions.has(definition.id)) problems.push({ path: `${path}.id`, message: `is used twice: ${definition.id}` });
    definitions.set(definition.id, definition);
  });
  const remarks = readers.flatMap((reader) => reader.unknown()).map(lined);
  return { definitions: problems.length > 0 ? new Map() : definitions, problems: problems.map(lined), remarks };
}

/** Identity of a definition on its runs: over the parsed form, without secrets. */
export const definitionHash = ({ secret: _, signalSecret: __, ...shown }: WorkflowDefinition): string => sha256(canonical(shown));

function readDefinition(reader: Reader, environment: Readonly<Record<string, string | undefined>>): WorkflowDefinition {
  const filter = reader.object("filter");
  const definition: WorkflowDefinition = {
    id: reader.text("id", 64),
    source: reader.oneOf("source", ["jira", "github", "generic"] as const, "generic") ?? "generic",
    project: reader.text("project", 128),
    target: reader.text("target", 80),
    secret:
      readSecret(reader, "secret", environment) ??
      (reader.member("secret") === undefined && reader.member("secretEnv") === undefined
        ? reader.missing("secret", "", "or secretEnv is required")
        : ""),
    signalSecret: readSecret(reader, "signalSecret", environment),
    event: reader.optionalText("event", 128),
    filter: filter && { path: filter.text("path", 256), equals: filter.text("equals", 512) },
    delivery: reader.oneOf("delivery", ["followUp", "steer"] as const, "followUp") ?? "followUp",
    ttlMs: reader.optionalInteger("ttlMs", 1000, 604_800_000),
    promptTemplate: reader.text("promptTemplate", 20_000),
    maxTransitions: reader.optionalInteger("maxTransitions", 1, 200),
    reproOracle: readPlace(reader, "reproOracle"),
    planHash: readPlace(reader, "planHash"),
    requirePlanHash: reader.uniqueTexts("requirePlanHash", { min: 0, max: 32 }, 64),
    stages: readStages(reader),
  };
  checkReferences(reader, definition);
  return JSON.parse(JSON.stringify(definition)); // members that are undefined are dropped, as the hash wants it
}

function readSecret(reader: Reader, name: "secret" | "signalSecret", environment: Readonly<Record<string, string | undefined>>): string | undefined {
  const [own, fromEnvironment] = [reader.member(name), reader.member(`${name}Env`)];
  if (own !== undefined && fromEnvironment !== undefined) return reader.fail(name, `give ${name} or ${name}Env, not both`);
  if (fromEnvironment === undefined) return reader.optionalText(name, 512, 16);
  const value = typeof fromEnvironment === "string" ? environment[fromEnvironment]?.trim() : undefined;
  if (value === undefined) {
    const shown = /^[A-Z][A-Z0-9_]{0,63}$/.test(String(fromEnvironment)) ? ` (${fromEnvironment})` : ""; // anything else may be a secret put there by mistake
    return reader.fail(`${name}Env`, `names an environment variable that is not set${shown}`);
  }
  return value.length >= 16 && value.length <= 512 ? value : reader.fail(`${name}Env`, "names a value that must have 16 to 512 characters");
}

function readPlace(reader: Reader, name: string): EvidencePlace | undefined {
  const place = reader.object(name);
  return place && { stageId: place.text("stageId", 64), evidenceKey: normalizeKey(place.text("evidenceKey", 128)) };
}

function readStages(reader: Reader): StageDefinition[] {
  const list = reader.member("stages");
  if (!Array.isArray(list) || list.length < 1 || list.length > 32) {
    reader.fail("stages", "must be a list of 1 to 32 stages");
    return [];
  }
  return list.map((entry, index) => readStage(reader.part((entry ?? {}) as Source, `.stages[${index}]`), reader));
}

function readStage(stage: Reader, definition: Reader): StageDefinition {
  const id = stage.text("id", 64);
  const requiredEvidence = stage.uniqueTexts("requiredEvidence", { min: 0, max: 32 }, 128, normalizeKey) ?? [];
  return {
    id,
    label: stage.text("label", 128, id),
    instructions: stage.text("instructions", 4000),
    requiredEvidence,
    maxAttempts: stage.optionalInteger("maxAttempts", 1, 20) ?? 3,
    autoResumeLimit: stage.optionalInteger("autoResumeLimit", 1, 20),
    area: stage.oneOf<Area>("area", AREAS),
    maxTransitions: stage.optionalInteger("maxTransitions", 1, 100),
    on: readTransitions(stage),
    evidencePolicies: readPolicies(stage, requiredEvidence, definition),
  };
}

function readTransitions(stage: Reader): Record<string, TransitionRule> | undefined {
  const on = stage.object("on");
  if (!on) return undefined;
  return Object.fromEntries(
    Object.entries(on.source).map(([outcome, rule]) => {
      on.member(outcome);
      if (outcome.length < 1 || outcome.length > 64) on.fail(outcome, "an outcome has 1 to 64 characters");
      if (typeof rule === "string") return [outcome, { target: rule.trim() }];
      const detail = on.object(outcome);
      return [outcome, { target: detail?.text("target", 64) ?? "", maxTransitions: detail?.optionalInteger("maxTransitions", 1, 100) }];
    }),
  );
}

const POLICY_MEMBERS = ["kind", "minProducers", "eligibleAgents", "acceptedStatuses", "degradation"];
function readPolicies(stage: Reader, requiredEvidence: string[], definition: Reader): Record<string, EvidencePolicy> | undefined {
  const policies = stage.object("evidencePolicies");
  if (!policies) return undefined;
  const target = String(definition.member("target") ?? "")
    .trim()
    .toLowerCase();
  return Object.fromEntries(
    Object.keys(policies.source).map((name) => {
      const key = normalizeKey(name);
      const policy = policies.object(name) ?? policies.part({}, `.${name}`);
      for (const member of Object.keys(policy.source)) {
        policy.known.add(member);
        const close = POLICY_MEMBERS.includes(member) ? undefined : nearest(member, POLICY_MEMBERS);
        if (!POLICY_MEMBERS.includes(member)) policy.fail(member, `is not a member of an evidence policy${close ? `: did you mean ${close}?` : ""}`);
      }
      if (!requiredEvidence.includes(key)) policy.fail("", "its key must be one of requiredEvidence");
      if (policy.member("kind") !== "peer-reply") policy.fail("kind", "must be peer-reply");
      const minProducers = policy.optionalInteger("minProducers", 1, 8) ?? policy.missing("minProducers", 1);
      const eligibleAgents = policy.uniqueTexts("eligibleAgents", { min: 1, max: 16 }, 80) ?? policy.missing("eligibleAgents", []);
      if (eligibleAgents.some((agent) => agent.toLowerCase() === target)) policy.fail("eligibleAgents", "must not include the coordinator");
      if (eligibleAgents.length > 0 && minProducers > eligibleAgents.length) policy.fail("minProducers", "is more than there are eligible agents");
      const accepted = policy.member("acceptedStatuses");
      if (accepted !== undefined && JSON.stringify(accepted) !== '["replied"]') policy.fail("acceptedStatuses", 'must be ["replied"]');
      const degradation = policy.object("degradation");
      const lower = degradation?.optionalInteger("minProducers", 1, Math.max(1, minProducers - 1));
      if (degradation && (lower === undefined || lower >= minProducers))
        degradation.fail("minProducers", "must be at least 1 and below the policy's minProducers");
      return [
        key,
        {
          kind: "peer-reply",
          minProducers,
          eligibleAgents,
          acceptedStatuses: ["replied"],
          degradation: lower === undefined ? undefined : { minProducers: lower },
        },
      ];
    }),
  );
}

/** Rules that need the whole definition: unique stages, known targets, bounded loops, places that exist. */
function checkReferences(reader: Reader, { stages, maxTransitions, reproOracle, planHash, requirePlanHash }: WorkflowDefinition) {
  const order = new Map(stages.map((stage, index) => [stage.id, index]));
  if (order.size !== stages.length) reader.fail("stages", "stage ids must be unique");
  let hasBackEdge = false;
  stages.forEach((stage, index) => {
    for (const [outcome, { target }] of Object.entries(stage.on ?? {})) {
      const at = order.get(target);
      const path = `stages[${index}].on.${outcome}`;
      if (target === TERMINAL) continue;
      if (at === undefined) reader.fail(path, `leads to an unknown stage: ${target}`);
      else if (at > index + 1) reader.fail(path, "may lead forward only to the very next stage");
      else if (at <= index) hasBackEdge = true;
    }
  });
  if (hasBackEdge && maxTransitions === undefined) reader.fail("maxTransitions", "is required because a transition leads back");
  for (const [name, place] of Object.entries({ reproOracle, planHash })) {
    if (!place) continue;
    const stage = stages.find(({ id }) => id === place.stageId);
    if (!stage) reader.fail(`${name}.stageId`, `is not a stage: ${place.stageId}`);
  }
  for (const id of requirePlanHash ?? []) if (!order.has(id)) reader.fail("requirePlanHash", `names an unknown stage: ${id}`);
}

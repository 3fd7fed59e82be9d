import { ConfigError, type ConfigProblem } from "../errors.js";
import type { Field } from "./field.js";
import { codeLabels, type Labels } from "./labels.js";
import { type OptionReader, optionReader } from "./reader.js";
import { BREAKER_FIELDS, GLOBAL_FIELDS, SCOPE_FIELDS } from "./schema.js";
import { SCHEDULING_FIELDS } from "./schema-scheduling.js";
import { SOURCE_FIELDS } from "./schema-source.js";
import { isPlainObject } from "./values.js";

/** What every governor is told of its scope, by the rules of a client's options. */

const SCOPE_OPTIONS = ["scope", "sources", "global", "breaker", "selector", "leaseTtlMs", "scheduling", "prices"];

/** A whole scope may be given as a client has it: what concerns its calls alone is nothing to a governor. */
const OF_CALLS = ["retry", "backpressure", "failover", "deadlineMs", "leaseRenewal"];

const SCOPE: Field<string> = { kind: "name", fallback: "", required: true, text: "Name of the scope" };
const PRICE: Field<number> = { kind: "number", fallback: 0, min: 0, max: 1e12, text: "Price of a source" };
const { maxConcurrency, rpm, tpm, limitRule, strict, burstS, burstTokensS } = GLOBAL_FIELDS;
const { name, model, weight, priority, estTokens, tpmCharge, ttftTimeoutMs } = SOURCE_FIELDS;
/** What the rules read; addresses and the like are nothing to a governor. Sources made by hand have no time-out. */
const SOURCE_RULES: Readonly<Record<string, Field>> = {
  name,
  model: { ...model, required: false },
  weight,
  priority,
  estTokens,
  tpmCharge,
  ttftTimeoutMs: { ...without(ttftTimeoutMs, "above"), min: 0 },
  maxConcurrency,
  rpm,
  tpm,
  limitRule,
  strict,
  burstS,
  burstTokensS,
};

/** Below this every renewal would come too late. */
const LEAST_LEASE_TTL_MS = 100;
const LEASE_TTL: Field<number> = {
  kind: "duration",
  fallback: 30_000,
  min: LEAST_LEASE_TTL_MS,
  max: 86_400_000,
  text: "When the permits of a dead worker come back",
};

export interface GovernorKind {
  /** `RedisGovernor`: begins every key in a problem. */
  readonly title: string;
  readonly ownOptions: readonly string[];
  /** What is wrong with its own options; those of a scope are judged here. */
  readonly ownProblems: (given: Readonly<Record<string, unknown>>) => readonly ConfigProblem[];
  readonly sourcesRequired: boolean;
}

/** Throws ConfigError with every problem at once. From JavaScript anything may come. */
export function checkGovernorOptions(options: unknown, kind: GovernorKind): void {
  const { title, ownOptions, ownProblems, sourcesRequired } = kind;
  const given: Record<string, unknown> = isPlainObject(options) ? options : {};
  const reader = optionReader(titled(codeLabels(given), title));
  reader.refuseUnknown(given, [...SCOPE_OPTIONS, ...ownOptions, ...OF_CALLS], "");
  reader.field("scope", SCOPE, given.scope);
  if (sourcesRequired || given.sources !== undefined) checkSources(reader, given.sources);
  reader.object("global", GLOBAL_FIELDS, given.global, true);
  reader.object("breaker", BREAKER_FIELDS, given.breaker, true);
  reader.object("scheduling", SCHEDULING_FIELDS, given.scheduling, true);
  reader.field("selector", SCOPE_FIELDS.selector, given.selector);
  reader.field("leaseTtlMs", LEASE_TTL, given.leaseTtlMs);
  checkPrices(reader, given.prices);
  const problems = [...reader.problems, ...ownProblems(given)];
  if (problems.length > 0) throw new ConfigError(problems);
}

function checkSources(reader: OptionReader, given: unknown): void {
  if (!Array.isArray(given)) {
    reader.report("sources", "is not a list", "Give a list of sources.");
    return;
  }
  const names = new Set<unknown>();
  for (const [at, source] of (given as readonly unknown[]).entries()) {
    const path = `sources[${at}]`;
    if (typeof source !== "object" || source === null) {
      reader.report(path, "is not an object", "Give an object with at least a name.");
      continue;
    }
    const values = source as Readonly<Record<string, unknown>>;
    if (typeof values.name === "string" && names.has(values.name))
      reader.report(`${path}.name`, "is the name of another source, too", "Give each source a name of its own.");
    names.add(values.name);
    for (const [option, field] of Object.entries(SOURCE_RULES))
      reader.field(`${path}.${option}`, field, values[option]);
  }
}

function checkPrices(reader: OptionReader, given: unknown): void {
  if (given === undefined) return;
  if (!isPlainObject(given)) {
    reader.report("prices", "is not an object", "Give an object with a price for each source's name.");
    return;
  }
  for (const [source, price] of Object.entries(given)) reader.field(`prices.${source}`, PRICE, price);
}

function titled(labels: Labels, title: string): Labels {
  return { ...labels, key: (path) => `${title}.${labels.key(path)}` };
}

function without<T>(field: Field<T>, key: keyof Field<T>): Field<T> {
  const { [key]: _, ...rest } = field;
  return rest as Field<T>;
}

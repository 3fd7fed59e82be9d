import { didYouMean } from "../domain/did-you-mean.js";
import type { ConfigProblem } from "../errors.js";
import { type EnvReading, type GivenText, parseGiven, showUnknown, textOf } from "./env-reading.js";
import type { Field } from "./field.js";
import { PROCESS_LATER } from "./schema-later.js";
import { PROCESS_FIELDS, type ProcessSettings } from "./schema-process.js";
import { accepted, printable } from "./values.js";

export interface ProcessReading {
  readonly settings: ProcessSettings;
  /** What was given for each setting. */
  readonly given: ReadonlyMap<keyof ProcessSettings, GivenText>;
  /** Settings that were given and are reported as broken. */
  readonly broken: ReadonlySet<keyof ProcessSettings>;
}

/** The settings of the process alone, for commands that need no source. */
export interface ProcessInspection {
  readonly settings: ProcessSettings;
  /** Everything that is wrong with them. */
  readonly problems: readonly ConfigProblem[];
  /** Settings that are not what the user meant. */
  readonly broken: ReadonlySet<string>;
}

const LATER_FIELDS = PROCESS_LATER.map(({ field }) => field);
const KNOWN: ReadonlyMap<string, Field> = new Map(
  [...Object.values<Field>(PROCESS_FIELDS), ...LATER_FIELDS].map((field) => [field.env ?? "", field]),
);
/** Ours, but no settings of the library. */
const OTHER_NAMES = new Set(["PGW_DEBUG", "PGW_INSTALL_SERVICES", "PGW_TELEMETRY_PG_DSN_FILE"]);

/** Reads the `PGW_…` settings. */
export function readProcess(reading: EnvReading): ProcessReading {
  const given = new Map<keyof ProcessSettings, GivenText>();
  const broken = new Set<keyof ProcessSettings>();
  const values: Record<string, unknown> = {};
  for (const [option, field] of Object.entries<Field>(PROCESS_FIELDS)) {
    const name = option as keyof ProcessSettings;
    values[name] = field.fallback;
    const text = textOf(reading, field.env ?? "", field);
    if (text === undefined) continue;
    given.set(name, text);
    const parsed = parseGiven(reading, field, text, accepted(field, "seconds"));
    if (parsed) values[name] = parsed.value;
    else broken.add(name);
  }
  readLater(reading);
  refuseUnknown(reading, broken);
  const process = { settings: values as unknown as ProcessSettings, given, broken };
  judgeProcess(reading, process, (option) => PROCESS_FIELDS[option].env ?? option);
  return process;
}

/** Rules between the settings of the process; `nameOf` = how the user writes them. */
export function judgeProcess(reading: EnvReading, process: ProcessReading, nameOf: NameOf): void {
  checkBackendsAgree(reading, process.given, nameOf);
  requireDsn(reading, process, nameOf);
  noteIdlePlaces(reading, process, nameOf);
}

/** The setting of a name in the environment. */
export function settingOf(name: string | undefined): keyof ProcessSettings | undefined {
  const found = Object.entries<Field>(PROCESS_FIELDS).find(([, { env }]) => env !== undefined && env === name);
  return found?.[0] as keyof ProcessSettings | undefined;
}

type NameOf = (option: keyof ProcessSettings) => string;

/** Names of settings of the process in the environment. */
export function processNames(): Iterable<string> {
  return KNOWN.keys();
}

function readLater(reading: EnvReading): void {
  for (const { field, today } of PROCESS_LATER) {
    const text = textOf(reading, field.env ?? "", field);
    if (text === undefined || parseGiven(reading, field, text, accepted(field, "seconds")) === undefined) continue;
    reading.notes.push({ key: text.key, level: "note", text: today });
  }
}

function refuseUnknown(reading: EnvReading, broken: Set<keyof ProcessSettings>): void {
  for (const name of Object.keys(reading.env)) {
    const isForeign = !name.startsWith("PGW_") || name.startsWith("PGW__") || name.slice(4).includes("__");
    if (isForeign || reading.env[name] === undefined || KNOWN.has(name) || OTHER_NAMES.has(name)) continue;
    const meant = didYouMean(name, KNOWN.keys());
    const value = showUnknown(reading, name, KNOWN.get(meant ?? ""));
    const problem = "is not a known setting";
    const option = settingOf(meant);
    // What was meant for a setting is not in force there.
    if (option !== undefined) broken.add(option);
    if (meant) reading.problems.push({ key: printable(name), value, problem, remedy: `Did you mean ${meant}?` });
    else reading.notes.push({ key: printable(name), level: "warning", text: `${problem} and has no effect` });
  }
}

function checkBackendsAgree(
  reading: EnvReading,
  given: ReadonlyMap<keyof ProcessSettings, GivenText>,
  nameOf: NameOf,
): void {
  const limiter = given.get("limiterBackend");
  const breaker = given.get("breakerBackend");
  const fallback = PROCESS_FIELDS.limiterBackend.fallback;
  const limiterName = limiter?.text.trim() ?? fallback;
  // They are decided in one step: who names the one means both.
  const breakerName = breaker?.text.trim() ?? limiterName;
  const known = PROCESS_FIELDS.limiterBackend.choices ?? [];
  if (limiterName === breakerName || !known.includes(limiterName) || !known.includes(breakerName)) return;
  reading.problems.push({
    key: nameOf("breakerBackend"),
    value: breakerName + (breaker ? "" : " (default)"),
    problem: `differs from ${nameOf("limiterBackend")} = ${limiterName}${limiter ? "" : " (default)"}`,
    remedy: "Limits and breakers are decided in one step: give both the same backend.",
  });
}

function requireDsn(reading: EnvReading, { given, settings, broken }: ProcessReading, nameOf: NameOf): void {
  const isNamed = settings.telemetryBackends?.includes("postgres") === true && !broken.has("telemetryBackends");
  if (!isNamed || given.has("postgresDsn") || broken.has("postgresDsn")) return;
  reading.problems.push({
    key: nameOf("postgresDsn"),
    problem: `is not set, although ${nameOf("telemetryBackends")} names postgres`,
    remedy: `Give ${accepted(PROCESS_FIELDS.postgresDsn, "seconds")}.`,
  });
}

function noteIdlePlaces(
  reading: EnvReading,
  { given, settings: { telemetryBackends: backends }, broken }: ProcessReading,
  nameOf: NameOf,
): void {
  if (broken.has("telemetryBackends")) return;
  const places = [
    { option: "sqlitePath", backend: "sqlite", on: backends?.includes("sqlite") ?? true },
    { option: "jsonlPath", backend: "jsonl", on: backends?.includes("jsonl") ?? false },
    { option: "postgresDsn", backend: "postgres", on: backends?.includes("postgres") ?? false },
  ] as const;
  for (const { option, backend, on } of places) {
    const text = given.get(option);
    if (on || text === undefined) continue;
    const what = `has no effect while ${nameOf("telemetryBackends")} doesn't name ${backend}`;
    reading.notes.push({ key: text.key, level: "warning", text: what });
  }
}

import { didYouMean } from "../domain/did-you-mean.js";
import { nearFlatName, readScopeKey, type ScopeKey, type SourceId, scopesIn } from "./env-keys.js";
import { type EnvReading, type GivenText, parseGiven, show, showUnknown, textOf } from "./env-reading.js";
import type { Field } from "./field.js";
import { fieldOf } from "./labels.js";
import { FLAT_NAMES } from "./schema.js";
import type { LaterField } from "./schema-later.js";
import { accepted, printable } from "./values.js";

export interface ScopeReading {
  /** Option path → parsed value, e.g. `sources[0].rpm` → 60. */
  readonly values: Map<string, unknown>;
  /** Option path → what was given for it. */
  readonly given: Map<string, GivenText>;
  /** Option paths that are reported as broken. */
  readonly broken: Set<string>;
  /** `QWEN__1` of each source, in their order. */
  readonly prefixes: readonly string[];
}

interface NamedKey {
  readonly key: string;
  readonly read: ScopeKey;
}

/** Reads everything below `{SCOPE}__`, and the flat names `{SCOPE}_…`. */
export function readScope(reading: EnvReading, scope: string): ScopeReading {
  const keys = scopeKeys(reading, scope);
  const prefixes = sourcePrefixes(keys);
  const read = {
    values: new Map<string, unknown>(),
    given: new Map<string, GivenText>(),
    broken: new Set<string>(),
    prefixes,
  };
  const laterKeys = new Map<string, string[]>();
  for (const { key, read: named } of keys) {
    if (named.kind === "source") readValue(reading, read, key, pathOf(prefixes, named, named.option), named.field);
    if (named.kind === "option") readValue(reading, read, key, named.path, named.field);
    if (named.kind === "later") readLater(reading, key, named.later, laterKeys);
    if (named.kind === "unknown") refuse(reading, read, key, named);
  }
  for (const [text, names] of laterKeys) reading.notes.push({ key: names.join(", "), level: "note", text });
  readFlatNames(reading, read, scope);
  return read;
}

function scopeKeys({ env }: EnvReading, scope: string): NamedKey[] {
  const start = `${scope}__`;
  const names = new Map<string, ScopeKey>();
  for (const name of Object.keys(env).sort()) {
    if (!name.startsWith(start) || env[name] === undefined) continue;
    const withoutFile = name.endsWith("_FILE") ? name.slice(0, -"_FILE".length) : name;
    const base = readScopeKey(scope, withoutFile.slice(start.length));
    const isSecretFile = withoutFile !== name && "field" in base && base.field.secret === true;
    if (isSecretFile) names.set(withoutFile, base);
    else names.set(name, readScopeKey(scope, name.slice(start.length)));
  }
  return [...names].map(([key, read]) => ({ key, read }));
}

function prefixOf({ provider, number }: SourceId): string {
  return `${provider}__${number}`;
}

function sourcePrefixes(keys: readonly NamedKey[]): string[] {
  const sources = new Map<string, SourceId>();
  for (const { read } of keys) {
    const source = read.kind === "source" ? read : read.kind === "option" ? undefined : sourceOf(read);
    if (source) sources.set(prefixOf(source), source);
  }
  return [...sources].sort(([, a], [, b]) => compareSources(a, b)).map(([prefix]) => prefix);
}

function sourceOf(read: Extract<ScopeKey, { kind: "later" | "unknown" }>): SourceId | undefined {
  return read.source;
}

function compareSources(a: SourceId, b: SourceId): number {
  if (a.provider !== b.provider) return a.provider < b.provider ? -1 : 1;
  return Number(a.number) - Number(b.number) || (a.number < b.number ? -1 : 1);
}

function pathOf(prefixes: readonly string[], source: SourceId, option: string): string {
  return `sources[${prefixes.indexOf(prefixOf(source))}].${option}`;
}

interface MutableScope extends ScopeReading {
  readonly values: Map<string, unknown>;
}

function readValue(reading: EnvReading, read: MutableScope, key: string, path: string, field: Field): void {
  const text = textOf(reading, key, field);
  if (text === undefined) {
    read.broken.add(path);
    return;
  }
  read.given.set(path, text);
  const parsed = parseGiven(reading, field, text, accepted(field, "seconds"));
  if (parsed) read.values.set(path, parsed.value);
  else read.broken.add(path);
}

function refuse(
  reading: EnvReading,
  read: MutableScope,
  key: string,
  named: Extract<ScopeKey, { kind: "unknown" }>,
): void {
  const value = showUnknown(reading, key, named.meant);
  reading.problems.push({ key: printable(key), value, problem: named.problem, remedy: named.remedy });
  // The key that was meant is not reported as missing on top of it.
  if (named.source && named.option) read.broken.add(pathOf(read.prefixes, named.source, named.option));
}

function readLater(
  reading: EnvReading,
  key: string,
  { field, treatment, today }: LaterField,
  notes: Map<string, string[]>,
): void {
  const text = textOf(reading, key, field);
  if (text === undefined) return;
  if (treatment === "refused" && field.available === undefined) {
    reading.problems.push({ key: printable(key), value: text.shown, problem: today, remedy: "Leave it out." });
    return;
  }
  if (parseGiven(reading, field, text, accepted(field, "seconds")) === undefined || treatment === "refused") return;
  notes.set(today, [...(notes.get(today) ?? []), text.key]);
}

/** The names of the system this design comes from; a structured name wins. */
function readFlatNames(reading: EnvReading, read: MutableScope, scope: string): void {
  for (const [name, { path }] of Object.entries(FLAT_NAMES)) {
    const key = `${scope}_${name}`;
    const field = fieldOf(path.replace("[]", "[0]"));
    if (field === undefined || reading.env[key] === undefined) continue;
    // n retries are n + 1 attempts.
    const shift = name === "MAX_RETRIES" ? 1 : 0;
    const flat: Field = { ...field, min: (field.min ?? 0) - shift, max: (field.max ?? 0) - shift };
    const text = { key, text: reading.env[key], shown: show(reading, flat, reading.env[key]) };
    const parsed = parseGiven(reading, flat, text, accepted(flat, "seconds"));
    const paths = path.includes("[]") ? read.prefixes.map((_, index) => path.replace("[]", `[${index}]`)) : [path];
    for (const each of paths) applyFlat(reading, read, each, text, parsed && Number(parsed.value) + shift);
  }
  noteNearFlatNames(reading, scope);
}

function applyFlat(
  reading: EnvReading,
  read: MutableScope,
  path: string,
  text: GivenText,
  value: number | undefined,
): void {
  const structured = read.given.get(path);
  if (structured === undefined) {
    read.given.set(path, text);
    if (value === undefined) read.broken.add(path);
    else read.values.set(path, value);
    return;
  }
  if (value === undefined || read.broken.has(path) || read.values.get(path) === value) return;
  const what = `${text.shown} is overruled by ${structured.key} = ${structured.shown}`;
  reading.notes.push({ key: text.key, level: "warning", text: what });
}

function noteNearFlatNames({ env, notes }: EnvReading, scope: string): void {
  const start = `${scope}_`;
  for (const name of Object.keys(env)) {
    if (!name.startsWith(start) || env[name] === undefined) continue;
    const meant = nearFlatName(name.slice(start.length));
    if (meant === undefined) continue;
    notes.push({ key: printable(name), level: "warning", text: `is not read; did you mean ${start}${meant}?` });
  }
}

/** What to do about a scope that no key describes. */
export function missingScopeRemedy(reading: EnvReading, scope: string): string {
  const found = scopesIn(reading.env);
  const meant = didYouMean(scope, found);
  const names = ["BASE_URL", "API_KEY", "MODEL"].map((field) => `${scope}__{PROVIDER}__1__${field}`);
  const set = `Set ${names.join(", ")} in the environment or in .env.`;
  if (meant) return `Did you mean scope ${printable(meant)}? Else: ${set}`;
  return found.length === 0 ? set : `${set} Scopes found: ${found.join(", ")}.`;
}

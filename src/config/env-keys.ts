import { didYouMean } from "../domain/did-you-mean.js";
import type { Field } from "./field.js";
import { fieldOf, parsePath } from "./labels.js";
import { EMBEDDING_FIELDS, FLAT_NAMES, GROUPS, OCR_FIELDS, SCOPE_FIELDS } from "./schema.js";
import { type LaterField, SCOPE_LATER, SOURCE_LATER } from "./schema-later.js";
import { PROCESS_FIELDS } from "./schema-process.js";
import { SOURCE_FIELDS } from "./schema-source.js";

/** What a name below `{SCOPE}__` stands for. */
export type ScopeKey =
  | {
      readonly kind: "source";
      readonly provider: string;
      readonly number: string;
      readonly option: string;
      readonly field: Field;
    }
  | { readonly kind: "option"; readonly path: string; readonly field: Field }
  | { readonly kind: "later"; readonly later: LaterField; readonly source?: SourceId }
  | UnknownKey;

export interface SourceId {
  readonly provider: string;
  readonly number: string;
}

export interface UnknownKey {
  readonly kind: "unknown";
  readonly problem: string;
  readonly remedy: string;
  /** The source it belongs to and the option it was probably meant to be. */
  readonly source?: SourceId;
  readonly option?: string;
  readonly meant?: Field;
}

interface Named {
  readonly option: string;
  readonly field: Field;
}

function byEnvName(fields: Readonly<Record<string, Field>>): ReadonlyMap<string, Named> {
  const entries = Object.entries(fields).filter(([, field]) => field.env !== undefined);
  return new Map(entries.map(([option, field]) => [field.env ?? "", { option, field }]));
}

const SOURCE_KEYS = byEnvName(SOURCE_FIELDS);
const SCOPE_KEYS = byEnvName({ ...SCOPE_FIELDS, ...EMBEDDING_FIELDS, ...OCR_FIELDS });
const GROUP_KEYS = new Map(Object.entries(GROUPS).map(([group, { fields }]) => [group, byEnvName(fields)]));

function laterKey(list: readonly LaterField[] | undefined, name: string): LaterField | undefined {
  return list?.find(({ field }) => field.env === name);
}

const SOURCE_NAMES = [...SOURCE_KEYS.keys(), ...SOURCE_LATER.map(({ field }) => field.env ?? "")];

/** Everything that may stand behind `{SCOPE}__` apart from sources. */
const SCOPE_NAMES = [
  ...SCOPE_KEYS.keys(),
  ...[...GROUP_KEYS].flatMap(([group, keys]) => [...keys.keys()].map((name) => `${group}__${name}`)),
  ...Object.entries(SCOPE_LATER).flatMap(([group, list]) => list.map(({ field }) => `${group}__${field.env}`)),
];

/** Reads the part of a name behind `{SCOPE}__`. */
export function readScopeKey(scope: string, rest: string): ScopeKey {
  const parts = rest.split("__");
  const [first = "", second = "", third = ""] = parts;
  if (parts.length === 3) return readSourceKey(scope, first, second, third);
  if (parts.length === 2) {
    const named = GROUP_KEYS.get(first)?.get(second);
    const later = laterKey(Object.hasOwn(SCOPE_LATER, first) ? SCOPE_LATER[first] : undefined, second);
    if (named)
      return {
        kind: "option",
        path: `${GROUPS[first as keyof typeof GROUPS].option}.${named.option}`,
        field: named.field,
      };
    if (later) return { kind: "later", later };
  }
  const named = parts.length === 1 ? SCOPE_KEYS.get(first) : undefined;
  return named ? { kind: "option", path: named.option, field: named.field } : unknownScopeKey(scope, rest, parts);
}

function readSourceKey(scope: string, provider: string, number: string, name: string): ScopeKey {
  const prefix = `${scope}__${provider}__`;
  if (!/^\d{1,9}$/.test(number)) {
    return unknown("has no number after the provider", `Write ${prefix}1__${name}.`);
  }
  if (!/^[A-Za-z0-9.-]+(_[A-Za-z0-9.-]+)*$/.test(provider) || `${provider}_${number}`.length > 64) {
    return unknown(
      "has a provider name that can't be used",
      "Use letters, digits, dots, dashes and single underscores.",
    );
  }
  const named = SOURCE_KEYS.get(name);
  if (named) return { kind: "source", provider, number, ...named };
  const source = { provider, number };
  const later = laterKey(SOURCE_LATER, name);
  if (later) return { kind: "later", later, source };
  const meant = didYouMean(name, SOURCE_NAMES);
  const remedy = meant ? `Did you mean ${prefix}${number}__${meant}?` : `A source has ${SOURCE_NAMES.join(", ")}.`;
  const known = SOURCE_KEYS.get(meant ?? "");
  return {
    ...unknown("is not a known key", remedy),
    source,
    ...(known && { option: known.option, meant: known.field }),
  };
}

function unknownScopeKey(scope: string, rest: string, parts: readonly string[]): ScopeKey {
  const last = parts.at(-1) ?? "";
  if (parts.length === 2 && SOURCE_KEYS.has(last)) {
    return unknown("has no number after the provider", `Write ${scope}__${parts[0]}__1__${last}.`);
  }
  const meant = didYouMean(rest, SCOPE_NAMES);
  if (meant) return unknown("is not a known key", `Did you mean ${scope}__${meant}?`);
  const forms = `${scope}__{PROVIDER}__{N}__{FIELD}, ${scope}__{${[...GROUP_KEYS.keys()].join("|")}}__{FIELD}`;
  return unknown("is not a known key", `Keys look like ${forms}; docs/configuration.md lists them.`);
}

function unknown(problem: string, remedy: string): UnknownKey {
  return { kind: "unknown", problem, remedy };
}

/** The structured name of an option path; `prefixes` = `QWEN__1` of each source. */
export function envNameOf(scope: string, path: string, prefixes: readonly string[]): string {
  const parsed = parsePath(path);
  const env = fieldOf(path)?.env;
  if ("source" in parsed) {
    const prefix = `${scope}__${prefixes[parsed.source]}`;
    return env === undefined ? prefix : `${prefix}__${env}`;
  }
  if (env === undefined) return path === "sources" ? `${scope}__{PROVIDER}__1__BASE_URL` : path;
  if (env.startsWith("PGW_") || env === PROCESS_FIELDS.redisUrl.env) return env;
  const group = Object.entries(GROUPS).find(([, { option }]) => "group" in parsed && option === parsed.group);
  return group ? `${scope}__${group[0]}__${env}` : `${scope}__${env}`;
}

/** A flat name this word was probably meant to be; undefined when it is one or none is near. */
export function nearFlatName(word: string): string | undefined {
  if (Object.hasOwn(FLAT_NAMES, word) || word.startsWith("_")) return undefined;
  const meant = didYouMean(word, Object.keys(FLAT_NAMES));
  return meant !== undefined && Math.abs(meant.length - word.length) <= 2 ? meant : undefined;
}

/**
 * Names of the scopes that have at least one source key (`{SCOPE}__{PROVIDER}__{N}__…`), in the order of their names.
 */
export function scopesIn(env: Readonly<Record<string, string | undefined>>): string[] {
  const scopes = new Set<string>();
  for (const name of Object.keys(env)) {
    const [, scope, field = ""] = /^([A-Za-z0-9.-]+(?:_[A-Za-z0-9.-]+)*)__.+__\d+__(\w+)$/.exec(name) ?? [];
    // Other programs write lists the same way (`Serilog__WriteTo__0__Name`): a known field tells them apart.
    const isOurs = SOURCE_KEYS.has(field) || SOURCE_KEYS.has(field.replace(/_FILE$/, ""));
    if (scope !== undefined && scope.length <= 64 && isOurs && env[name] !== undefined) scopes.add(scope);
  }
  return [...scopes].sort();
}

import type { Field } from "./field.js";
import {
  BACKPRESSURE_FIELDS,
  BREAKER_FIELDS,
  CACHE_FIELDS,
  EMBEDDING_FIELDS,
  GLOBAL_FIELDS,
  OCR_FIELDS,
  RETRY_FIELDS,
  SCOPE_FIELDS,
} from "./schema.js";
import { PROCESS_FIELDS, REDIS_FIELDS } from "./schema-process.js";
import { SCHEDULING_FIELDS } from "./schema-scheduling.js";
import { SOURCE_FIELDS } from "./schema-source.js";
import { accepted, type Notation, quoted, showValue } from "./values.js";

/** A key with its effective value, as the user would write them. */
export interface Labels {
  /** `sources[0].rpm` in code; `LLM__QWEN__1__RPM` from the environment. */
  key(path: string): string;
  /** The value in the unit of that key, with "(default)" when nobody gave it. */
  value(path: string, value: unknown): string;
  /** The value as it was given, secrets masked; undefined when nobody gave it. */
  given(path: string): string | undefined;
  /** The same for an option that nobody knows, where the notation knows better than its name. */
  unknown?(path: string): string | undefined;
  /** The key of a place inside an option's value (`streamOptions` of a profile), where the notation knows it. */
  within?(path: string, place: string): string | undefined;
  /** What the field accepts, in the same notation. */
  accepted(field: Field): string;
}

const TELEMETRY_FIELDS: Readonly<Record<string, Field>> = {
  capture: PROCESS_FIELDS.capture,
  journal: PROCESS_FIELDS.journal,
  durability: PROCESS_FIELDS.durability,
};

const GROUP_FIELDS: Readonly<Record<string, Readonly<Record<string, Field>>>> = {
  retry: RETRY_FIELDS,
  breaker: BREAKER_FIELDS,
  backpressure: BACKPRESSURE_FIELDS,
  global: GLOBAL_FIELDS,
  scheduling: SCHEDULING_FIELDS,
  cache: CACHE_FIELDS,
  telemetryOptions: TELEMETRY_FIELDS,
  redis: REDIS_FIELDS,
};

const TOP_FIELDS: Readonly<Record<string, Field>> = {
  ...SCOPE_FIELDS,
  ...EMBEDDING_FIELDS,
  ...OCR_FIELDS,
  leaseTtlMs: PROCESS_FIELDS.leaseTtlMs,
  leaseRenewal: PROCESS_FIELDS.leaseRenewal,
  statusPath: PROCESS_FIELDS.statusPath,
};

const PLAIN_TEXT: Field = { kind: "text", fallback: "", text: "" };

export type OptionPath =
  | { readonly source: number; readonly option: string }
  | { readonly group: string; readonly option: string }
  | { readonly option: string };

/** Reads `sources[0].rpm`, `retry.maxAttempts` or `deadlineMs`. */
export function parsePath(path: string): OptionPath {
  const source = /^sources\[(\d+)\]\.(\w+)$/.exec(path);
  if (source) return { source: Number(source[1]), option: source[2] ?? "" };
  const [group, option] = path.split(".", 2);
  return option === undefined ? { option: path } : { group: group ?? "", option };
}

export function fieldOf(path: string): Field | undefined {
  const parsed = parsePath(path);
  if ("source" in parsed) return (SOURCE_FIELDS as Readonly<Record<string, Field>>)[parsed.option];
  return "group" in parsed ? GROUP_FIELDS[parsed.group]?.[parsed.option] : TOP_FIELDS[parsed.option];
}

/** A value in a notation: 30000 ms are `30` in seconds, true is `on`. */
export function written(field: Field | undefined, value: unknown, notation: Notation): string {
  if (value === undefined) return "unset";
  if (notation === "seconds" && typeof value === "boolean") return value ? "on" : "off";
  if (notation === "seconds" && field?.kind === "duration" && typeof value === "number") return String(value / 1_000);
  return showValue(field ?? PLAIN_TEXT, value);
}

/** Labels of a configuration written in code: paths and values of the given object. */
export function codeLabels(options: unknown): Labels {
  return {
    key: (path) => path,
    value(path, value) {
      const given = lookUp(options, path) !== undefined;
      return `${written(fieldOf(path), value, "ms")}${given ? "" : " (default)"}`;
    },
    given(path) {
      const value = lookUp(options, path);
      return value === undefined ? undefined : quoted(fieldOf(path) ?? PLAIN_TEXT, value);
    },
    accepted: (field) => accepted(field, "ms"),
  };
}

/** The value at `sources[0].rpm`, `retry.maxAttempts` or `deadlineMs`. */
export function lookUp(options: unknown, path: string): unknown {
  let current = options;
  for (const step of path.split(/[.[\]]+/).filter((part) => part !== "")) {
    if (typeof current !== "object" || current === null) return undefined;
    current = Object.hasOwn(current, step) ? (current as Record<string, unknown>)[step] : undefined;
  }
  return current;
}

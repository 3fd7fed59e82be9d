import type { ScopeState, SourceState } from "../../../domain/scope-state.js";

/**
 * How the state of a source is packed: the fields of its parts, one after the other, behind the version of this layout.
 * A test holds this list against a fresh state, so that no rule can remember something that is lost between two ticks.
 */
export const LAYOUT_VERSION = 2;

type Part = readonly [name: string, fields: readonly string[]];

const CUBIC = ["wMax", "cutAtMs", "kMs"];

/** Parts inside of a part come with a dot. */
export const SOURCE_PARTS: readonly Part[] = [
  ["gates", ["windowId", "windowRequests", "windowTokens", "requestTatMs", "tokenTatMs", "newestGrant"]],
  [
    "breaker",
    [
      "state",
      "epoch",
      "openUntilMs",
      "trips",
      "closedAtMs",
      "consecutiveFailures",
      "dead",
      "deadInARow",
      "probeLease",
      "probesLeft",
    ],
  ],
  ["cooldown", ["coolUntilMs", "limitedInARow", "nextGrantMs"]],
  [
    "pacer",
    [
      "attemptMs",
      "startWindow",
      "rateTatMs",
      "rateToleranceMs",
      "learnedRpm",
      "learnedTpm",
      "firstAdmittedMs",
      "bucket",
      "bucketCount",
      "earlierCount",
    ],
  ],
  ["pacer.window", CUBIC],
  ["pacer.rate", CUBIC],
  ["pacer.goodput", ["weight", "atMs", "firstAtMs", "bestPerS", "bestAtMs", "granted", "refused"]],
  ["gradient", ["baseMs", "baseAtMs"]],
  ["evidence", ["score", "atMs", "fails", "hangs"]],
  ["health", ["successes", "failures", "atMs", "ttftMs", "tpotMs", "failMs", "durationMs", "samples", "lastSuccessMs"]],
  ["", ["reclosedAtMs", "turns", "lastGrant"]],
];

export const BUCKET_FIELDS = ["index", "successes", "failures"] as const;

/** Of the scope as a whole. */
export const SCOPE_PARTS: readonly Part[] = [
  ["globalGates", ["windowId", "windowRequests", "windowTokens", "requestTatMs", "tokenTatMs", "newestGrant"]],
  ["budgets", ["retryTokens", "hedgeTokens"]],
  [
    "",
    [
      "retriesInFlight",
      "meanTokens",
      "meanPromptTokens",
      "grantsOfUpperClass",
      "turnFloor",
      "grantCount",
      "lastProgressMs",
    ],
  ],
];

export const POOL_FIELDS = ["measuredAtMs", "ttftMs", "tpotMs", "failShare"] as const;

type Field = string | number | boolean;
type Record_ = Record<string, Field>;

/** The part of a state that a name such as `pacer.window` stands for. */
export function partOf(state: object, name: string): Record_ {
  let part = state as Record<string, unknown>;
  if (name === "") return part as Record_;
  for (const step of name.split(".")) part = part[step] as Record<string, unknown>;
  return part as Record_;
}

/** The fields of a state in their order, behind the version. */
export function flatten(state: object, parts: readonly Part[]): Field[] {
  const values: Field[] = [LAYOUT_VERSION];
  for (const [name, fields] of parts) {
    const part = partOf(state, name);
    for (const field of fields) values.push(part[field]!);
  }
  return values;
}

/** Puts packed values back. Returns how many there were. */
export function restore(state: object, parts: readonly Part[], values: readonly Field[]): number {
  let at = 1;
  for (const [name, fields] of parts) {
    const part = partOf(state, name);
    for (const field of fields) {
      part[field] = values[at]!;
      at += 1;
    }
  }
  return at;
}

/** The pool's medians stand behind the fields while they are known: a tick must not see other ones than the last did. */
export function flattenScope(state: ScopeState): Field[] {
  const values = flatten(state, SCOPE_PARTS);
  const { pool } = state;
  if (pool !== null) for (const field of POOL_FIELDS) values.push(pool[field]);
  return values;
}

export function restoreScope(state: ScopeState, values: readonly Field[]): void {
  const at = restore(state, SCOPE_PARTS, values);
  if (values.length <= at) return;
  const [measuredAtMs, ttftMs, tpotMs, failShare] = values.slice(at) as [number, number, number, number];
  state.pool = { measuredAtMs, ttftMs, tpotMs, failShare };
}

/** Buckets and samples stand behind the fields, the last error at the very end. */
export function flattenSource(source: SourceState): Field[] {
  const values = flatten(source, SOURCE_PARTS);
  for (const bucket of source.breaker.buckets) values.push(bucket.index, bucket.successes, bucket.failures);
  values.push(source.gradient.samples.length);
  for (const sample of source.gradient.samples) values.push(sample);
  if (source.lastError !== null) values.push(source.lastError.code, source.lastError.message);
  return values;
}

export function restoreSource(source: SourceState, values: readonly Field[]): void {
  let at = restore(source, SOURCE_PARTS, values);
  for (const bucket of source.breaker.buckets) {
    bucket.index = values[at] as number;
    bucket.successes = values[at + 1] as number;
    bucket.failures = values[at + 2] as number;
    at += BUCKET_FIELDS.length;
  }
  const samples = values[at] as number;
  for (let n = 1; n <= samples; n += 1) source.gradient.samples.push(values[at + n] as number);
  at += samples + 1;
  if (values.length > at) source.lastError = { code: values[at] as string, message: values[at + 1] as string };
}

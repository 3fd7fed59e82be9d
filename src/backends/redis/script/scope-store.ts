import { gateRules, type StoreClock } from "../../../domain/gates/gate.js";
import { lowerLimit } from "../../../domain/scheduling/pacer.js";
import {
  newScopeState,
  newSourceRecord,
  type ScopeState,
  type SourceRecord,
  type SourceState,
} from "../../../domain/scope-state.js";
import { commonLimits, type FleetSetup } from "./common-limits.js";
import { CLOCK_FIELD, LIMITS_FIELD, LIMITS_ID_FIELD, SCOPE_FIELD, STATE_KEY } from "./keys.js";
import {
  flattenScope,
  flattenSource,
  LAYOUT_VERSION,
  type Packed,
  progressOf,
  restoredSource,
  restoreScope,
} from "./layout.js";
import { inParts, LeaseStore } from "./lease-store.js";
import { type ScopeClock, scopeClock } from "./scope-clock.js";
import { SizeStore } from "./size-store.js";
import { loadWorkers, saveWorkers } from "./worker-store.js";

/** The state of a scope during one tick, and what it takes to write it back. */
export interface LoadedScope {
  readonly state: ScopeState;
  readonly leases: LeaseStore;
  readonly clock: ScopeClock;
  save(ttlMs: number): void;
}

/** Reads everything a tick may look at. What another version, or somebody else, has written counts as never written. */
export function loadScope(prefix: string, own: FleetSetup, server: StoreClock): LoadedScope {
  const names = own.sources.map((source) => source.name);
  // Not spread: Lua hands only some thousand values on at once.
  const stored = readState(prefix, SCOPE_FIELDS.concat(names));
  const clock = scopeClock(server, stored[CLOCK_FIELD]);
  const { nowMs } = clock;
  const { setup, changed } = commonLimits(own, clock.isNew ? {} : stored, nowMs);
  const leases = new LeaseStore(prefix, nowMs, names);
  const sizes = new SizeStore(prefix);
  // Moments of a clock that nobody knows any more mean nothing.
  const recordOf = (name: string) => sourceRecord(clock.isNew ? undefined : stored[name], nowMs);
  const state = newScopeState(setup, nowMs, leases, (model) => sizes.bookOf(model), recordOf);
  for (const source of state.sources.values()) {
    applyLearnedLimits(source);
    const { breaker } = source;
    // A probe ends with its lease, whoever took that out: another process may not know the source.
    if (breaker.probeLease !== "" && leases.get(breaker.probeLease) === undefined) breaker.probeLease = "";
  }
  const scope = clock.isNew ? undefined : stored[SCOPE_FIELD];
  const values = scope === undefined ? null : unpackedValues(scope);
  if (values !== null) restoreScope(state, values);
  const workers: Record<string, string> = {};
  if (setup.scheduling.fairness)
    for (const [name, worker] of loadWorkers(prefix, workers)) state.workers.set(name, worker);
  return {
    state,
    leases,
    clock,
    save(ttlMs) {
      const always = [CLOCK_FIELD, clock.packed, ...changed];
      saveState(prefix, state, always, leases.touched, stored, ttlMs);
      leases.save(ttlMs);
      sizes.save(ttlMs);
      if (setup.scheduling.fairness) saveWorkers(prefix, state.workers, workers, ttlMs);
    },
  };
}

const SCOPE_FIELDS: string[] = [CLOCK_FIELD, LIMITS_ID_FIELD, LIMITS_FIELD, SCOPE_FIELD];

/** When the scope last made progress, without all that a tick looks at: those who wait in vain ask for it. */
export function loadProgress(prefix: string, server: StoreClock): { lastProgressMs: number; nowMs: number } {
  const stored = readState(prefix, [CLOCK_FIELD, SCOPE_FIELD]);
  const { nowMs, isNew } = scopeClock(server, stored[CLOCK_FIELD]);
  const values = isNew || stored[SCOPE_FIELD] === undefined ? null : unpackedValues(stored[SCOPE_FIELD]);
  return { lastProgressMs: values === null ? Number.NEGATIVE_INFINITY : progressOf(values), nowMs };
}

function readState(prefix: string, fields: readonly string[]): Record<string, string> {
  const stored: Record<string, string> = {};
  inParts(fields, (part) => {
    const values = redis.call("HMGET", prefix + STATE_KEY, ...part) as (string | false)[];
    for (let n = 0; n < part.length; n += 1) {
      const value = values[n];
      if (typeof value === "string") stored[part[n]!] = value;
    }
  });
  return stored;
}

function sourceRecord(packed: string | undefined, nowMs: number): SourceRecord {
  const values = packed === undefined ? null : unpackedValues(packed);
  if (values !== null) return restoredSource(values);
  const record = newSourceRecord(nowMs);
  // Epochs count from the moment a source became known: a Redis that was emptied begins none that was there before.
  record.breaker.epoch = Math.floor(nowMs);
  return record;
}

/** null: another layout, or nothing that can be read. */
function unpackedValues(packed: string): Packed | null {
  let values: Packed = [];
  attempt(() => {
    values = cmsgpack.unpack(packed) as Packed;
  });
  return type(values) === "table" && values[0] === LAYOUT_VERSION ? values : null;
}

/** Limits that headers told are kept with the pacer; the rates follow from them. */
function applyLearnedLimits(source: SourceState): void {
  const { config, pacer } = source;
  if (pacer.learnedRpm === 0 && pacer.learnedTpm === 0) return;
  const rpm = lowerLimit(config.rpm, pacer.learnedRpm);
  const tpm = lowerLimit(config.tpm, pacer.learnedTpm);
  source.rules = gateRules({ ...config, rpm, tpm });
}

/** Whatever changes a source comes with a lease of it. */
function saveState(
  prefix: string,
  state: ScopeState,
  always: readonly string[],
  touched: Record<string, boolean>,
  stored: Record<string, string>,
  ttlMs: number,
): void {
  const key = prefix + STATE_KEY;
  const changed: string[] = [...always];
  for (const name in touched) {
    const packed = cmsgpack.pack(flattenSource(state.sources.get(name)!));
    if (packed !== stored[name]) changed.push(name, packed);
  }
  const scope = cmsgpack.pack(flattenScope(state));
  if (scope !== stored[SCOPE_FIELD]) changed.push(SCOPE_FIELD, scope);
  redis.call("HSET", key, ...changed);
  redis.call("PEXPIRE", key, ttlMs);
}

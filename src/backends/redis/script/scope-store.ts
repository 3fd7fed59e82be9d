import type { StoreClock } from "../../../domain/gates/gate.js";
import { newScopeState, newSourceRecord, type ScopeState, type SourceRecord } from "../../../domain/scope-state.js";
import { commonLimits, type FleetSetup } from "./common-limits.js";
import { CLOCK_FIELD, LIMITS_FIELD, LIMITS_ID_FIELD, SCOPE_FIELD, STATE_KEY } from "./keys.js";
import { type LaterParts, laterParts, packedSource } from "./later-parts.js";
import { flattenScope, LAYOUT_VERSION, type Packed, progressOf, restoreScope } from "./layout.js";
import { inParts, LeaseStore } from "./lease-store.js";
import { type ScopeClock, scopeClock } from "./scope-clock.js";
import { SizeStore } from "./size-store.js";
import { judgedSource } from "./source-layout.js";
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
  const parts: PartsBySource = {};
  const recordOf = (name: string) => {
    // Moments of a clock that nobody knows any more mean nothing.
    const packed = clock.isNew ? undefined : stored[name];
    const record = (packed === undefined ? null : knownSource(parts, name, packed)) ?? unknownSource(nowMs);
    endLostProbe(record, leases);
    return record;
  };
  const state = newScopeState(setup, nowMs, leases, (model) => sizes.bookOf(model), recordOf);
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
      const key = prefix + STATE_KEY;
      redis.call("HSET", key, ...always, ...changedState(state, leases.touched, parts, stored));
      redis.call("PEXPIRE", key, ttlMs);
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

type PartsBySource = Record<string, LaterParts>;
type Judged = Parameters<typeof judgedSource>;

/** null: another layout, or nothing that can be read. */
function knownSource(parts: PartsBySource, name: string, packed: string): SourceRecord | null {
  return readSource(parts, name, ...(attemptTo(cmsgpack.unpack, packed) as unknown as ReadSource));
}

type ReadSource = [isReadable: boolean, version: number, learned: string, trouble: string, ...Judged];

function readSource(
  parts: PartsBySource,
  name: string,
  isReadable: boolean,
  version: number,
  learned: string,
  trouble: string,
  ...judged: Judged
): SourceRecord | null {
  if (!isReadable || version !== LAYOUT_VERSION) return null;
  const source = judgedSource(...judged);
  parts[name] = laterParts(source, learned, trouble);
  return source;
}

function unknownSource(nowMs: number): SourceRecord {
  const record = newSourceRecord(nowMs);
  // Epochs count from the moment a source became known: a Redis that was emptied begins none that was there before.
  record.breaker.epoch = Math.floor(nowMs);
  return record;
}

/** A probe ends with its lease, whoever took that out: another process may not know the source. */
function endLostProbe({ breaker }: SourceRecord, leases: LeaseStore): void {
  if (breaker.state === "closed" || breaker.probeLease === "") return;
  if (leases.get(breaker.probeLease) === undefined) breaker.probeLease = "";
}

/** null: another layout, or nothing that can be read. */
function unpackedValues(packed: string): Packed | null {
  let values: Packed = [];
  attempt(() => {
    values = cmsgpack.unpack(packed) as Packed;
  });
  return type(values) === "table" && values[0] === LAYOUT_VERSION ? values : null;
}

/** Whatever changes a source comes with a lease of it. */
function changedState(
  state: ScopeState,
  touched: Record<string, boolean>,
  parts: PartsBySource,
  stored: Record<string, string>,
): string[] {
  const changed: string[] = [];
  for (const name in touched) {
    const packed = packedSource(state.sources.get(name)!, parts[name]);
    if (packed !== stored[name]) changed.push(name, packed);
  }
  const scope = cmsgpack.pack(flattenScope(state));
  if (scope !== stored[SCOPE_FIELD]) changed.push(SCOPE_FIELD, scope);
  return changed;
}

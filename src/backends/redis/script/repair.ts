import type { StoreClock } from "../../../domain/gates/gate.js";
import { leaseEndMs } from "../../../domain/leases.js";
import { newScopeState, type ScopeSetup, type SourceState } from "../../../domain/scope-state.js";
import { areLimits } from "./common-limits.js";
import {
  CLOCK_FIELD,
  GRANTS_KEY,
  LEASES_KEY,
  LIMITS_FIELD,
  LIMITS_ID_FIELD,
  SCOPE_FIELD,
  SIZES_KEY,
  STATE_KEY,
  sourceLeasesKey,
  WORKERS_KEY,
} from "./keys.js";
import { flattenScope, LAYOUT_VERSION, type Values } from "./layout.js";
import { LEASE_TYPES } from "./lease-layout.js";
import { LeaseStore, packedLease, score, unpackedLease } from "./lease-store.js";
import { scopeClock } from "./scope-clock.js";
import { SizeStore } from "./size-store.js";
import { judgedValues, LEARNED_AT, learnedValues, TROUBLE_AT, troubleValues } from "./source-layout.js";

/**
 * Takes out of a scope's keys whatever no tick can have written, and counts it: keys of another type, values that can't be
 * read. What is taken out counts as never written. Asked for when a tick failed over the state, and when a scope begins
 * with leases that are there already.
 */
export function repair(prefix: string, setup: ScopeSetup, server: StoreClock, ttlMs: number): number {
  const names = setup.sources.map(({ name }) => name);
  let dropped = 0;
  for (const key of [STATE_KEY, GRANTS_KEY, WORKERS_KEY, SIZES_KEY]) dropped += dropOtherType(prefix + key, "hash");
  for (const key of [LEASES_KEY].concat(names.map((name) => sourceLeasesKey(name))))
    dropped += dropOtherType(prefix + key, "zset");
  const clock = redis.call("HGET", prefix + STATE_KEY, CLOCK_FIELD);
  const { nowMs } = scopeClock(server, typeof clock === "string" ? clock : undefined);
  dropped += dropFields(prefix + STATE_KEY, stateCheck(setup, nowMs, new LeaseStore(prefix, nowMs, names)));
  dropped += dropFields(prefix + WORKERS_KEY, (_, text) => isLike(unpacked(text), WORKER_TYPES));
  dropped += dropFields(prefix + SIZES_KEY, (_, text) => isLike(unpacked(text), SIZE_TYPES));
  dropped += dropFields(prefix + GRANTS_KEY, (_, text) => isLike(allUnpacked(text), LEASE_TYPES));
  return dropped + reviseLeases(prefix, names, setup.leaseTtlMs, nowMs, ttlMs);
}

const WORKER_TYPES = ["number", "boolean", "number", "number"];
const SIZE_TYPES = ["number", "number", "number", "number", "number"];

function dropOtherType(key: string, wanted: string): number {
  const { ok } = redis.call("TYPE", key) as { ok: string };
  if (ok === wanted || ok === "none") return 0;
  redis.call("DEL", key);
  return 1;
}

function dropFields(key: string, isGood: (field: string, text: string) => boolean): number {
  const stored = redis.call("HGETALL", key) as string[];
  let dropped = 0;
  for (let at = 0; at < stored.length; at += 2) {
    if (isGood(stored[at]!, stored[at + 1]!)) continue;
    redis.call("HDEL", key, stored[at]!);
    dropped += 1;
  }
  return dropped;
}

function unpacked(text: string): unknown {
  let value: unknown;
  attempt(() => {
    value = cmsgpack.unpack(text);
  });
  return value;
}

/** Of what was packed without a frame. */
function allUnpacked(text: string): unknown[] | undefined {
  const values: unknown[] = [...attemptTo(cmsgpack.unpack, text)];
  return values.shift() === true ? values : undefined;
}

/** A fresh state shows what a packed one looks like; fields of sources that are unknown here are another process's. */
function stateCheck(setup: ScopeSetup, nowMs: number, leases: LeaseStore): (field: string, text: string) => boolean {
  const sizes = new SizeStore("");
  const state = newScopeState(setup, nowMs, leases, (model) => sizes.bookOf(model));
  return (field, text) => {
    // A clock that can't be read begins anew by itself.
    if (field === CLOCK_FIELD) return true;
    if (field === LIMITS_ID_FIELD) return isLike(unpacked(text), ["string", "number"]);
    if (field === LIMITS_FIELD) return areLimits(unpacked(text));
    if (field === SCOPE_FIELD) return isPacked(unpacked(text), flattenScope(state));
    const source = state.sources.get(field);
    return source === undefined || isPackedSource(allUnpacked(text), source);
  };
}

function isPackedSource(values: unknown, source: SourceState): boolean {
  if (!isPacked(values, judgedValues(source, "", ""))) return false;
  const learned = unpacked((values as Values)[LEARNED_AT] as string);
  const trouble = unpacked((values as Values)[TROUBLE_AT] as string);
  return isPart(learned, learnedValues(source)) && isPart(trouble, troubleValues(source));
}

/** What stands at the end while it is known. */
const MOST_MORE = 4;

function isPacked(values: unknown, example: Values): boolean {
  if (type(values) !== "table") return false;
  const packed = values as Values;
  const more = packed.length - example.length;
  return packed[0] === LAYOUT_VERSION && more <= MOST_MORE && isPart(packed, example);
}

function isPart(values: unknown, example: Values): boolean {
  if (type(values) !== "table") return false;
  const packed = values as Values;
  if (packed.length < example.length) return false;
  const types = example.map((value) => type(value));
  return startsLike(packed, types) && example.every((value, at) => isAlike(packed[at]!, value));
}

/** Of a list: numbers alone, and as many; an empty one may be filled. */
function isAlike(value: Values[number], example: Values[number]): boolean {
  if (type(example) !== "table") return true;
  const list = value as readonly number[];
  const known = example as readonly number[];
  return (
    (known.length === 0 || list.length === known.length) &&
    list.every((item) => type(item) === "number" && !Number.isNaN(item))
  );
}

function isLike(values: unknown, types: readonly string[]): boolean {
  return type(values) === "table" && startsLike(values as Values, types);
}

function startsLike(values: Values, types: readonly string[]): boolean {
  for (let at = 0; at < types.length; at += 1) {
    const value = values[at];
    if (type(value) !== types[at] || Number.isNaN(value)) return false;
  }
  return true;
}

/** No permit ends later than its time to live says, and each is counted in both of its sets. */
function reviseLeases(
  prefix: string,
  names: readonly string[],
  leaseTtlMs: number,
  nowMs: number,
  ttlMs: number,
): number {
  const all = prefix + LEASES_KEY;
  const grants = prefix + GRANTS_KEY;
  const latest = score(leaseEndMs(nowMs, leaseTtlMs));
  let revised = 0;
  // Of whom only the place in the line is left.
  for (const key of [all].concat(names.map((name) => prefix + sourceLeasesKey(name)))) {
    for (const leaseId of redis.call("ZRANGEBYSCORE", key, `(${latest}`, "+inf") as string[]) {
      redis.call("ZADD", key, latest, leaseId);
      revised += 1;
    }
  }
  const stored = redis.call("HGETALL", grants) as string[];
  for (let at = 0; at < stored.length; at += 2) {
    const leaseId = stored[at]!;
    const lease = unpackedLease(leaseId, stored[at + 1]!);
    if (lease === null) continue;
    const latestMs = leaseEndMs(nowMs, lease.grant.leaseTtlMs);
    if (lease.expiresAtMs > latestMs) {
      lease.expiresAtMs = latestMs;
      redis.call("HSET", grants, leaseId, packedLease(lease));
      revised += 1;
    }
    // Of a source that is unknown here it is the one key that nobody could declare (ADR 0064).
    const own = prefix + sourceLeasesKey(lease.grant.source);
    for (const key of [all, own]) {
      redis.call("ZADD", key, score(lease.expiresAtMs), leaseId);
      redis.call("PEXPIRE", key, ttlMs);
    }
  }
  return revised;
}

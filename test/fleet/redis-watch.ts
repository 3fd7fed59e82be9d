import { setTimeout as sleep } from "node:timers/promises";
import { GRANTS_KEY, STATE_KEY } from "../../src/backends/redis/script/keys.js";
import { type Packed, restoreScope } from "../../src/backends/redis/script/layout.js";
import { MemoryLeases } from "../../src/domain/memory-leases.js";
import { BREAKER_DEFAULTS, SCHEDULING_DEFAULTS } from "../../src/domain/scope.js";
import { newScopeState, type ScopeState } from "../../src/domain/scope-state.js";
import { NO_LIMITS } from "../../src/domain/source.js";
import type { RedisServer } from "../services/redis.js";
import { wholeSource } from "../support/source-layout.js";
import type { Crew } from "./crew.js";
import { Finding } from "./finding.js";
import type { Sighting } from "./leases-judge.js";

/** One look at everything of the scope at one moment. Numbers as text: JSON knows no infinity. */
const LOOK = `
local function texts(values)
  local list = {}
  for n = 1, #values do
    local value = values[n]
    if type(value) == 'table' then list[n] = texts(value)
    else list[n] = type(value) == 'number' and string.format('n%.17g', value) or 't' .. tostring(value) end
  end
  return list
end
local prefix = ARGV[1]
local time = redis.call('TIME')
local out = { now = time[1] * 1000 + time[2] / 1000, leases = {}, immortal = {}, state = {} }
local ids = redis.call('ZRANGE', prefix .. 'l', 0, -1, 'WITHSCORES')
for n = 1, #ids, 2 do
  local packed = redis.call('HGET', prefix .. ARGV[3], ids[n])
  local lease = packed and { cmsgpack.unpack(packed) } or {}
  table.insert(out.leases, { ids[n], ids[n + 1], lease[2] or '', lease[4] and true or false })
end
for _, key in ipairs(redis.call('KEYS', prefix .. '*')) do
  if redis.call('PTTL', key) < 0 then table.insert(out.immortal, key) end
end
local fields = redis.call('HGETALL', prefix .. ARGV[2])
for n = 1, #fields, 2 do
  local values = { cmsgpack.unpack(fields[n + 1]) }
  -- Of a source two parts are packed in it, and there is more than one value; all else is a list.
  if #values == 1 then values = values[1] else values[2], values[3] = cmsgpack.unpack(values[2]), cmsgpack.unpack(values[3]) end
  out.state[fields[n]] = texts(values)
end
return cjson.encode(out)`;

/** Every key with everything in it, as texts. */
const CONTENTS = `
local out = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local values
  if kind == 'hash' then values = redis.call('HGETALL', key)
  elseif kind == 'zset' then values = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'set' then values = redis.call('SMEMBERS', key)
  elseif kind == 'list' then values = redis.call('LRANGE', key, 0, -1)
  else values = { redis.call('GET', key) } end
  table.insert(values, 1, key)
  table.insert(out, table.concat(values, '\\n'))
end
return out`;

interface Look {
  readonly now: number;
  /** Id, expiry, source, whether it is a probe. `{}` when there are none. */
  readonly leases: readonly (readonly [string, string, string, boolean])[] | Record<string, never>;
  readonly immortal: readonly string[] | Record<string, never>;
  readonly state: Readonly<Record<string, Texts>>;
}

/** `{}` where a list is empty. */
type Texts = readonly (string | Texts | Record<string, never>)[];

const LOOK_EVERY_MS = 150;
/** Much longer than between two looks. */
const GONE_AFTER_MS = 1_000;
const CONTENTS_EVERY_MS = 1_500;
/** What a permit of the dead may last beyond its TTL (spec 02 §3). */
const GRACE_MS = 1_000;

export interface WatchOptions {
  readonly redis: RedisServer;
  readonly crew: Crew;
  readonly sources: readonly string[];
  readonly prefix: string;
  readonly leaseTtlMs: number;
  /** Called with everything that is in Redis, now and then. */
  onContents(text: string): void;
}

/** Looks into Redis again and again, from outside: the witness of permits, probes, keys and counters. */
export class RedisWatch {
  readonly dead = new Finding("permits of the dead are back within TTL + 1 s");
  readonly probes = new Finding("one probe lease at a time of a source");
  readonly keys = new Finding("no key without TTL");
  readonly counters = new Finding("no counter negative or no number");
  readonly rest = new Finding("nothing is left when all have ended");
  readonly sightings = new Map<string, Sighting>();
  /** How many grants Redis had counted at a moment. */
  readonly counts: { readonly atMs: number; readonly count: number }[] = [];
  #running: Promise<void> | null = null;
  #stopped = false;

  constructor(private readonly options: WatchOptions) {}

  start(): void {
    this.#running = this.#watch();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  /** Scripts since the last start of Redis, and what one took in it on average. */
  async scripts(): Promise<{ readonly count: number; readonly meanUs: number }> {
    const told = String(await this.options.redis.command("INFO", "commandstats"));
    const [, count = "0", meanUs = "0"] = /cmdstat_evalsha:calls=(\d+),.*?usec_per_call=([\d.]+)/.exec(told) ?? [];
    return { count: Number(count), meanUs: Number(meanUs) };
  }

  /** After the last process has ended and every permit has had its time. */
  async lookAtRest(): Promise<void> {
    const look = await this.#look();
    this.#judge(look);
    const alive = listed(look.leases).filter(([, expiry]) => Number(expiry) > look.now);
    this.rest.check(alive.length === 0, () => `${alive.length} permits are still held`);
  }

  async #watch(): Promise<void> {
    let contentsMs = 0;
    while (!this.#stopped) {
      // Without an answer it is being restarted, or frozen.
      const look = await this.#look().catch(() => null);
      if (look !== null) this.#judge(look);
      if (Date.now() - contentsMs > CONTENTS_EVERY_MS) {
        contentsMs = Date.now();
        await this.#read().catch(() => {});
      }
      await sleep(LOOK_EVERY_MS);
    }
  }

  async #read(): Promise<void> {
    for (const text of (await this.options.redis.command("EVAL", CONTENTS, 0)) as string[])
      this.options.onContents(text);
  }

  async #look(): Promise<Look> {
    const { redis, prefix } = this.options;
    return JSON.parse(String(await redis.command("EVAL", LOOK, 0, prefix, STATE_KEY, GRANTS_KEY))) as Look;
  }

  #judge(look: Look): void {
    const { now } = look;
    const probes = new Map<string, number>();
    for (const [id, expiry, source, probe] of listed(look.leases)) {
      const sighting = this.sightings.get(id) ?? { source, firstMs: now, lastMs: now };
      this.sightings.set(id, sighting);
      if (Number(expiry) <= now) continue;
      // It was gone, and was given anew under its id.
      if (now - sighting.lastMs > GONE_AFTER_MS) sighting.firstMs = now;
      sighting.lastMs = now;
      if (probe) probes.set(source, (probes.get(source) ?? 0) + 1);
      this.#judgeOwner(id, now);
    }
    for (const source of this.options.sources) {
      const count = probes.get(source) ?? 0;
      this.probes.check(count <= 1, () => `${count} live probes of ${source}`);
    }
    const immortal = listed(look.immortal);
    this.keys.check(immortal.length === 0, () => `no TTL: ${immortal.join(", ")}`);
    for (const [field, texts] of Object.entries(look.state)) this.#judgeState(field, texts, now);
  }

  #judgeOwner(id: string, now: number): void {
    const owner = this.options.crew.grants.get(id)?.pid;
    const { killedAtMs = null } = this.options.crew.lives.find(({ pid }) => pid === owner) ?? {};
    if (killedAtMs === null) return;
    const lateMs = now - (killedAtMs + this.options.leaseTtlMs + GRACE_MS);
    this.dead.check(
      lateMs <= 0,
      () => `permit ${id} of killed process ${owner} lives ${Math.ceil(lateMs)} ms too long`,
    );
  }

  #judgeState(field: string, texts: Texts, nowMs: number): void {
    // Others hold what is no state: the clock, the limits that processes have told.
    if (field !== "*" && !this.options.sources.includes(field)) return;
    const counters = field === "*" ? scopeCounters(texts) : sourceCounters(texts);
    for (const [name, value] of counters) {
      if (name === "grantCount") this.counts.push({ atMs: nowMs, count: value });
      this.counters.check(value >= 0 && value < Infinity, () => `${field}: ${name} is ${value}`);
    }
  }
}

function listed<T>(list: readonly T[] | Record<string, never>): readonly T[] {
  return Array.isArray(list) ? (list as readonly T[]) : [];
}

function luaValues(texts: Texts): Packed {
  return texts.map((text) => {
    if (typeof text !== "string") return luaValues(listed(text));
    return text.startsWith("n") ? luaNumber(text.slice(1)) : text.slice(1);
  });
}

function luaNumber(text: string): number {
  if (/inf/.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
  return /nan/.test(text) ? Number.NaN : Number(text);
}

function emptyState(): ScopeState {
  const setup = {
    sources: [],
    global: NO_LIMITS,
    breaker: BREAKER_DEFAULTS,
    selector: "health_aware" as const,
    scheduling: SCHEDULING_DEFAULTS,
    leaseTtlMs: 1,
  };
  return newScopeState(setup, 0, new MemoryLeases());
}

/** Whatever counts something; moments are no counters. */
function scopeCounters(texts: Texts): [string, number][] {
  const state = emptyState();
  restoreScope(state, luaValues(texts));
  const { globalGates, budgets, retriesInFlight, grantsOfUpperClass, grantCount } = state;
  return [
    ...Object.entries({ retriesInFlight, grantsOfUpperClass, grantCount, retryTokens: budgets.retryTokens }),
    ["windowRequests", globalGates.windowRequests],
    ["windowTokens", globalGates.windowTokens],
  ];
}

function sourceCounters(texts: Texts): [string, number][] {
  const source = wholeSource(luaValues(texts));
  const { gates, breaker, cooldown, pacer, evidence, health } = source;
  const { trips, consecutiveFailures, deadInARow, probesLeft, stretches } = breaker;
  const { admitted, bucketCount, earlierCount, goodput, learnedRpm, learnedTpm } = pacer;
  return [
    ...Object.entries({ trips, consecutiveFailures, deadInARow, probesLeft }),
    ...Object.entries({ admitted, bucketCount, earlierCount, learnedRpm, learnedTpm }),
    ...Object.entries({ granted: goodput.granted, refused: goodput.refused, weight: goodput.weight }),
    ...Object.entries({ successes: health.successes, failures: health.failures, samples: health.samples }),
    ["windowRequests", gates.windowRequests],
    ["windowTokens", gates.windowTokens],
    ["limitedInARow", cooldown.limitedInARow],
    ["fails", evidence.fails],
    ["hangs", evidence.hangs],
    ["turns", source.turns],
    ...stretches.successes.map((count): [string, number] => ["stretch.successes", count]),
    ...stretches.failures.map((count): [string, number] => ["stretch.failures", count]),
  ];
}

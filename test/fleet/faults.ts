import { setTimeout as sleep } from "node:timers/promises";
import type { FaultOptions, LedgerOutcome } from "../../src/testing/provider/server.js";
import type { RandomStream } from "../../src/testing/seeded-random.js";
import type { RedisServer } from "../services/redis.js";
import type { Crew } from "./crew.js";
import type { Upstream } from "./sources.js";

/** Where faults happen, and what the judge must know of them. */
export interface Arena {
  readonly redis: RedisServer;
  readonly crew: Crew;
  readonly upstreams: readonly Upstream[];
  readonly leaseTtlMs: number;
  readonly next: RandomStream;
  /** When Redis lost everything (epoch ms). */
  readonly restarts: number[];
  readonly busy: Set<Upstream>;
}

/** A kind of fault, by its id in the catalogue of faults. */
export interface Fault {
  readonly id: string;
  readonly what: string;
  /** It counts as fired when a provider's ledger has this outcome; absent: when it was injected. */
  readonly seenAs?: LedgerOutcome;
  /** Goes on from the start, or is never injected more often than this. */
  readonly always?: true;
  readonly atMostEveryMs?: number;
  /** Ends when the fault is over. false: there was nothing to strike. */
  inject?(arena: Arena): Promise<boolean>;
}

export const draw = (next: RandomStream, from: number, to: number): number =>
  from + Math.floor((next() / 2 ** 32) * (to - from));

function any<T>(next: RandomStream, from: readonly T[]): T | undefined {
  return from[draw(next, 0, from.length)];
}

/** Somebody is left who works. */
async function freezeOne({ crew, next, leaseTtlMs }: Arena, end: "wake" | "kill"): Promise<boolean> {
  const { active } = crew;
  const victim = any(next, active);
  if (victim === undefined || active.length < 2) return false;
  crew.freeze(victim);
  await sleep(draw(next, 1.4 * leaseTtlMs, 2.4 * leaseTtlMs));
  if (end === "wake") crew.wake(victim);
  else crew.kill(victim);
  return true;
}

async function worsenOne(arena: Arena, faults: FaultOptions, fromMs: number, toMs: number): Promise<boolean> {
  return onOne(arena, async (upstream) => {
    upstream.worsen(faults);
    await sleep(draw(arena.next, fromMs, toMs));
    upstream.restore();
  });
}

/** Of the providers that live, one that nothing else is done to; rather one that has something to do. */
async function onOne(arena: Arena, work: (upstream: Upstream) => Promise<void>): Promise<boolean> {
  const { upstreams, busy, next } = arena;
  const free = upstreams.filter((one) => one.plan.name !== "dead" && !busy.has(one));
  const working = free.filter(({ provider }) => provider.stats().inProgress > 0);
  const upstream = any(next, working.length > 0 ? working : free);
  if (upstream === undefined) return false;
  busy.add(upstream);
  await work(upstream);
  busy.delete(upstream);
  return true;
}

const HUNG_429 = { status: 429, headers: { "retry-after": "1" }, chunks: [{ utf8: '{"error"' }], end: "hang" } as const;
/** What a window may hold more after a restart is known for one in it. */
const RESTART_EVERY_MS = 65_000;
/** Shorter than what is left of a permit that was just about to be renewed. */
const REDIS_PAUSE_MS = [300, 800] as const;

/** Long ones first: each is to have happened once in a short run too. */
export const FAULTS: readonly Fault[] = [
  { id: "F51", what: "a process frozen beyond its permits, then woken", inject: (arena) => freezeOne(arena, "wake") },
  {
    id: "F31",
    what: "Redis killed, back empty",
    atMostEveryMs: RESTART_EVERY_MS,
    async inject({ redis, restarts }) {
      restarts.push(Date.now());
      await redis.restart();
      return true;
    },
  },
  {
    id: "F50",
    what: "a process killed",
    async inject({ crew, next }) {
      const { active } = crew;
      const victim = any(next, active);
      if (victim === undefined || active.length < 2) return false;
      crew.kill(victim);
      return true;
    },
  },
  { id: "F50f", what: "a process frozen, then killed", inject: (arena) => freezeOne(arena, "kill") },
  {
    id: "F66",
    what: "a source down (503), so that its breaker opens",
    seenAs: "outage",
    inject: (arena) =>
      onOne(arena, async ({ provider }) => {
        const refused = (): number => provider.stats().outcomes.outage ?? 0;
        const before = refused();
        await provider.setOutage("503");
        await sleep(draw(arena.next, 1_500, 3_000));
        // As many as it takes to open a breaker.
        for (let waited = 0; refused() < before + 5 && waited < 20; waited += 1) await sleep(100);
        await provider.setOutage("off");
      }),
  },
  {
    id: "F18",
    what: "a storm of 429s",
    seenAs: "rate_limited",
    inject: (arena) => worsenOne(arena, { rateLimitRate: 0.8, rateLimitRetryAfterMs: 300 }, 800, 1_600),
  },
  {
    id: "F3",
    what: "a source that falls silent",
    seenAs: "hang",
    inject: (arena) => worsenOne(arena, { hangRate: 0.5 }, 500, 900),
  },
  {
    id: "F19",
    what: "429s whose body never ends",
    seenAs: "scripted",
    inject: (arena) => onOne(arena, async ({ provider }) => provider.script(HUNG_429, 3)),
  },
  {
    id: "F34",
    what: "all connections to Redis cut",
    async inject({ redis }) {
      await redis.command("CLIENT", "KILL", "TYPE", "normal");
      await redis.command("CLIENT", "KILL", "TYPE", "pubsub");
      return true;
    },
  },
  {
    id: "F35",
    what: "the scripts of Redis flushed",
    async inject({ redis }) {
      await redis.command("SCRIPT", "FLUSH");
      return true;
    },
  },
  {
    id: "F32",
    what: "Redis frozen for a moment",
    async inject({ redis, next }) {
      redis.pause();
      await sleep(draw(next, ...REDIS_PAUSE_MS));
      redis.resume();
      return true;
    },
  },
  { id: "F7", what: "connections of a source reset", seenAs: "reset", always: true },
  { id: "F8", what: "answers cut", seenAs: "cut", always: true },
  { id: "F20", what: "a source that fails one time in four", seenAs: "error", always: true },
  { id: "F21", what: "a dead source (401)", seenAs: "unauthorized", always: true },
];

/**
 * Injects every kind in turn, in an order of the seed's, one each `everyMs` or so, until the moment; waits for the last ones.
 */
export async function strike(arena: Arena, everyMs: number, untilMs: number): Promise<ReadonlyMap<string, number>> {
  const injected = new Map<string, number>();
  const running = new Set<Promise<void>>();
  const lastMs = new Map<string, number>();
  for (let round = 0; Date.now() < untilMs; round += 1) {
    for (const fault of orderOf(round, arena.next)) {
      if (Date.now() >= untilMs) break;
      const { atMostEveryMs = 0 } = fault;
      if (Date.now() - (lastMs.get(fault.id) ?? 0) < atMostEveryMs) continue;
      lastMs.set(fault.id, Date.now());
      const one = fault.inject!(arena).then((struck) => {
        if (struck) injected.set(fault.id, (injected.get(fault.id) ?? 0) + 1);
        running.delete(one);
      });
      running.add(one);
      await sleep(draw(arena.next, everyMs / 2, everyMs * 1.5));
    }
  }
  await Promise.all(running);
  return injected;
}

/** The first round as they stand here. */
function orderOf(round: number, next: RandomStream): readonly Fault[] {
  const bag = FAULTS.filter(({ inject }) => inject !== undefined);
  if (round === 0) return bag;
  for (let left = bag.length - 1; left > 0; left -= 1) {
    const other = draw(next, 0, left + 1);
    [bag[left], bag[other]] = [bag[other]!, bag[left]!];
  }
  return bag;
}

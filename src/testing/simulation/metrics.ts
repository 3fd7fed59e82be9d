import { nominalCapacity } from "./capacity.js";
import type { AttemptRecord, CallEnd } from "./records.js";
import type { World } from "./world.js";

/** What one run came to. Shares are of 1, times in ms; null = not asked for by the scenario. */
export interface Metrics {
  /** Answered calls over what the sources could answer meanwhile (spec 10), for as long as calls waited. */
  readonly capacity: number;
  readonly makespanMs: number;
  readonly attempts: number;
  /** Of all attempts. */
  readonly limitedShare: number;
  /** Attempts that brought no answer, the refused ones included. */
  readonly wastedShare: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly firstTokenP99Ms: number;
  /** Of the class that goes first; null without classes. */
  readonly highFirstTokenP99Ms: number | null;
  readonly lost: number;
  readonly lostShare: number;
  readonly failures: Readonly<Record<string, number>>;
  /** From the end of the watched fault until 80 % of the capacity is back; Infinity = not before the end. */
  readonly recoveryMs: number | null;
  readonly intoBroken: number | null;
  readonly isolation: { readonly attempts: number; readonly afterMs: number } | null;
  readonly intoDead: number | null;
  /** Over the workers, while all of them have calls waiting. */
  readonly jain: number;
  readonly ticksPerCall: number;
  readonly eventsPerCall: number;
  readonly attemptsPerCall: number;
}

/** Successful starts are counted in steps of this length. */
const STEP_MS = 5_000;
const RECOVERED_SHARE = 0.8;
const DEAD_KEY_COUNTED_MS = 600_000;

export function measure(world: World, firstEmptyMs: number): Metrics {
  const { attempts, ends, scenario, observer } = world;
  const answered = ends.filter(({ failure }) => failure === null);
  const makespanMs = ends.reduce((latest, { endMs }) => Math.max(latest, endMs), 0);
  const latencies = sorted(answered.map(({ startMs, endMs }) => endMs - startMs));
  const limited = attempts.filter(({ outcome }) => outcome === "rate_limited").length;
  const useful = attempts.filter(({ outcome }) => outcome === "success").length;
  const { deadSource } = scenario;
  return {
    capacity: usedCapacity(world),
    makespanMs,
    attempts: attempts.length,
    limitedShare: limited / attempts.length,
    wastedShare: (attempts.length - useful) / attempts.length,
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    firstTokenP99Ms: firstTokenP99(answered),
    highFirstTokenP99Ms:
      scenario.highShare === undefined ? null : firstTokenP99(answered.filter(({ priority }) => priority === 0)),
    lost: ends.length - answered.length,
    lostShare: (ends.length - answered.length) / ends.length,
    failures: countBy(ends.flatMap(({ failure }) => (failure === null ? [] : [failure]))),
    ...watchedMetrics(world),
    intoDead:
      deadSource === undefined
        ? null
        : attempts.filter(({ source, startMs }) => source === deadSource && startMs < DEAD_KEY_COUNTED_MS).length,
    jain: jainIndex(world, firstEmptyMs),
    ticksPerCall: observer.ticks / ends.length,
    eventsPerCall: observer.events / ends.length,
    attemptsPerCall: attempts.length / ends.length,
  };
}

/**
 * Spec 10 integrates the nominal capacity over time and leaves open how long: until the last call is sent for the first
 * time. From then on nobody waits, and the half minute that the longest answers still take would count as if the
 * scheduler had left the sources idle. An attempt counts at its start, where it is charged.
 */
export function usedCapacity({
  attempts,
  scenario,
  workload,
}: Pick<World, "scenario" | "workload"> & {
  readonly attempts: readonly Pick<AttemptRecord, "callIndex" | "startMs" | "outcome">[];
}): number {
  const firstSendMs = new Map<number, number>();
  for (const { callIndex, startMs } of attempts) {
    if (!firstSendMs.has(callIndex)) firstSendMs.set(callIndex, startMs);
  }
  let untilMs = 0;
  for (const startMs of firstSendMs.values()) untilMs = Math.max(untilMs, startMs);
  const used = attempts.filter(({ outcome, startMs }) => outcome === "success" && startMs <= untilMs).length;
  return used / nominalCapacity(scenario, workload).callsUntil(untilMs);
}

function watchedMetrics(world: World): Pick<Metrics, "recoveryMs" | "intoBroken" | "isolation"> {
  const { watched } = world.scenario;
  if (watched === undefined) return { recoveryMs: null, intoBroken: null, isolation: null };
  const { source, fromMs, toMs } = watched;
  const isWatched = (attempt: AttemptRecord): boolean => source === "*" || attempt.source === source;
  const inside = world.attempts.filter((a) => isWatched(a) && a.startMs >= fromMs && a.startMs < toMs);
  const opened = world.observer.changes.find(
    (change) => change.state === "open" && change.source === source && change.atMs >= fromMs,
  );
  const isolation =
    opened === undefined
      ? null
      : { attempts: inside.filter((a) => a.startMs <= opened.atMs).length, afterMs: opened.atMs - fromMs };
  return { recoveryMs: recovery(world, isWatched, toMs), intoBroken: inside.length, isolation };
}

/** The end of the first step in which enough attempts began that then succeeded. */
function recovery(world: World, isWatched: (attempt: AttemptRecord) => boolean, fromMs: number): number {
  const nominal = nominalCapacity(world.scenario, world.workload);
  const { source } = world.scenario.watched!;
  const rate = source === "*" ? nominal.totalRate : nominal.rateOf(source);
  const needed = (RECOVERED_SHARE * rate * STEP_MS) / 1_000;
  const counts: number[] = [];
  for (const attempt of world.attempts) {
    if (attempt.startMs < fromMs || attempt.outcome !== "success" || !isWatched(attempt)) continue;
    const step = Math.floor((attempt.startMs - fromMs) / STEP_MS);
    counts[step] = (counts[step] ?? 0) + 1;
  }
  const first = counts.findIndex((count) => (count ?? 0) >= needed);
  return first < 0 ? Infinity : (first + 1) * STEP_MS;
}

function jainIndex({ ends, scenario }: World, firstEmptyMs: number): number {
  const served = scenario.callers.map(() => 0);
  for (const end of ends) if (end.endMs <= firstEmptyMs && end.failure === null) served[end.worker]! += 1;
  const sum = served.reduce((total, count) => total + count, 0);
  const squares = served.reduce((total, count) => total + count * count, 0);
  return squares === 0 ? 1 : (sum * sum) / (served.length * squares);
}

function firstTokenP99(ends: readonly CallEnd[]): number {
  const times = ends.flatMap(({ firstTokenMs }) => (firstTokenMs === null ? [] : [firstTokenMs]));
  return quantile(sorted(times), 0.99);
}

function sorted(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b);
}

function quantile(ascending: readonly number[], share: number): number {
  if (ascending.length === 0) return 0;
  return ascending[Math.min(ascending.length - 1, Math.floor(share * ascending.length))]!;
}

function countBy(keys: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const key of keys) counts[key] = (counts[key] ?? 0) + 1;
  return counts;
}
